import type { Asker } from "../../core/access.ts";
import type { SettingFacts } from "../../core/command-services.ts";
import {
  declarationOf,
  forWords,
  layers,
  resolveLayers,
  settingGroups,
  settingNames,
  type Layer,
  type LayeredValues,
  type SettingGroup,
  type SettingName,
  type SettingValue,
} from "../../core/layered-settings.ts";
import {
  formatSetting,
  settingChoices,
  settingDescription,
  settingGroupTitle,
} from "../../core/setting-values.ts";
import { isApplicable, isOnePlace, wordsOf } from "./settings-reader.ts";
import { currentLanguage, translate } from "../../words/translate.ts";

/** The values that apply where no layer has one, in words. */
export type Defaults = Readonly<Partial<Record<SettingName, string>>>;

/** The longest value in a list, in characters, because prompts may have thousands. */
const maxShownChars = 80;

/** Lists in Markdown the settings in force, with a line and the layer for each. */
export function describeSettings(all: LayeredValues, defaults: Defaults, asker: Asker): string {
  const groups = Object.keys(settingGroups) as SettingGroup[];
  return groups
    .map((group) => {
      const lines = settingNames
        .filter((name) => declarationOf(name).group === group && hasLayer(name, all, asker))
        .map((name) => `- \`${name}\`: ${inForce(name, all, defaults, asker)}`);
      return lines.length === 0 ? "" : [`**${settingGroupTitle(group)}**`, ...lines].join("\n");
    })
    .filter((part) => part !== "")
    .join("\n\n");
}

/** Describes one setting: its meaning, the value in force, the value of each layer, and what can be typed. */
export function describeSetting(
  name: SettingName,
  all: LayeredValues,
  defaults: Defaults,
  asker: Asker,
): string {
  const setting = declarationOf(name);
  const held = layers.flatMap((layer) => {
    const value = all[layer]?.[name];
    return value === undefined || !setting.layers.includes(layer)
      ? []
      : [`- ${wordsOf(layer, asker)}: ${inline(formatSetting(name, value), Number.POSITIVE_INFINITY)}`];
  });
  return [
    translate("settings.one", { name, description: settingDescription(name) }),
    translate("settings.in-force", { value: inForce(name, all, defaults, asker) }),
    held.length === 0 ? translate("settings.nobody") : [translate("settings.set-for"), ...held].join("\n"),
    whereAndWhat(name),
  ].join("\n\n");
}

/** Values of these kinds can be as long as a message. */
const longKinds: ReadonlySet<string> = new Set(["text", "access"]);

/** The facts about settings for `/help`. The page has one person, the operator, and no `person` layer. */
export function explainSettings(all: LayeredValues, defaults: Defaults, asker: Asker): SettingFacts[] {
  const existing = layers.filter((layer) => !isOnePlace(asker) || layer !== "channel");
  const meant = existing.filter((layer) => asker.origin !== undefined || layer !== "person");
  return settingNames
    .filter((name) => isApplicable(name, asker))
    .map((name) => {
      const { group, kind, layers: holding } = declarationOf(name);
      return {
        name,
        description: settingDescription(name),
        group,
        layers: meant.filter((layer) => holding.includes(layer)),
        ...(longKinds.has(kind) ? {} : { inForce: inForce(name, all, defaults, asker) }),
      };
    });
}

/** A setting in force with its layer, for example "`gpt-4o` (from this channel)". */
function inForce(name: SettingName, all: LayeredValues, defaults: Defaults, asker: Asker): string {
  const from = (layer: Layer) => wordsOf(layer, asker, "from");
  if (declarationOf(name).combines !== "override") {
    const limits = layers.flatMap((layer) => {
      const value = all[layer]?.[name];
      return value === undefined || !declarationOf(name).layers.includes(layer)
        ? []
        : [`${shown(name, value)} (${from(layer)})`];
    });
    if (limits.length > 0) return limits.join(translate("settings.and"));
    if (declarationOf(name).combines === "limit") return defaults[name] ?? translate("settings.no-limit");
  }
  const effective = resolveLayers(all)[name];
  return effective === undefined
    ? byDefault(name, defaults)
    : `${shown(name, effective.value)} (${from(effective.from)})`;
}

/** The same without Markdown, for example "gpt-4o (from this channel)". */
export function describeInForce(
  name: SettingName,
  all: LayeredValues,
  defaults: Defaults,
  asker: Asker,
): string {
  return inForce(name, all, defaults, asker).replaceAll("`", "");
}

function shown(name: SettingName, value: SettingValue): string {
  return `${inline(formatSetting(name, value), maxShownChars)}${meaningOf(name, value)}`;
}

/** The meaning of a value that is typed in English, in the person's language, for example " = Aus". */
function meaningOf(name: SettingName, value: SettingValue | undefined): string {
  if (currentLanguage() === "en") return "";
  const label = settingChoices(name).find((choice) => choice.value === value)?.label;
  return label === undefined || label.toLowerCase() === value ? "" : ` = ${label}`;
}

/** The value that applies if nobody has set one. */
function byDefault(name: SettingName, defaults: Defaults): string {
  const value = defaults[name] ?? translate("settings.not-set");
  return translate("settings.default", { value: `${value}${meaningOf(name, value.replaceAll("`", ""))}` });
}

/** A value as inline code on one line. */
function inline(text: string, maxChars: number): string {
  const line = text.replaceAll(/\s+/g, " ").replaceAll("`", "'").trim();
  return `\`${line.length <= maxChars ? line : `${line.slice(0, maxChars - 1).trimEnd()}…`}\``;
}

function whereAndWhat(name: SettingName): string {
  const setting = declarationOf(name);
  const where = setting.layers.map((layer) => `\`${forWords[layer]}\``).join(", ");
  if (setting.kind !== "choice") return translate("settings.can-be-set", { layers: where });
  const choices = setting.choices.map(({ value }) => `\`${value}\``).join(", ");
  return translate("settings.can-be-set.choices", { layers: where, choices });
}

/** Whether a layer exists here that may hold the setting. */
function hasLayer(name: SettingName, all: LayeredValues, asker: Asker): boolean {
  return isApplicable(name, asker) && declarationOf(name).layers.some((layer) => all[layer] !== undefined);
}
