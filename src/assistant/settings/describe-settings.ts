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
import { formatSetting } from "../../core/setting-values.ts";
import { isApplicable, wordsOf } from "./layer-holders.ts";

/** What applies where no layer has a value, in words. */
export type Defaults = Readonly<Partial<Record<SettingName, string>>>;

/** Longest value in a list, in characters: prompts have thousands. */
const maxShownChars = 80;

/** The settings in force, one line each with the layer that they are from, in Markdown. */
export function describeSettings(all: LayeredValues, defaults: Defaults, asker: Asker): string {
  const groups = Object.keys(settingGroups) as SettingGroup[];
  return groups
    .map((group) => {
      const lines = settingNames
        .filter((name) => declarationOf(name).group === group && hasLayer(name, all, asker))
        .map((name) => `- \`${name}\`: ${inForce(name, all, defaults, asker)}`);
      return lines.length === 0 ? "" : [`**${settingGroups[group]}**`, ...lines].join("\n");
    })
    .filter((part) => part !== "")
    .join("\n\n");
}

/** One setting: what it is, what is in force, what each layer has, and what can be typed. */
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
    `**${name}**: ${setting.description}.`,
    `In force here: ${inForce(name, all, defaults, asker)}`,
    held.length === 0 ? "Nobody has set it here." : `It is set for\n${held.join("\n")}`,
    `It can be set for ${setting.layers.map((layer) => `\`${forWords[layer]}\``).join(", ")}${choicesOf(name)}. \`default\` removes it.`,
  ].join("\n\n");
}

/** Values of these kinds can be as long as a message. */
const longKinds: ReadonlySet<string> = new Set(["text", "access"]);

/** What `/help` explains of the settings. On the page, whose one person is the operator, nobody else has any. */
export function explainSettings(all: LayeredValues, defaults: Defaults, asker: Asker): SettingFacts[] {
  const existing: readonly Layer[] = asker.origin === undefined ? ["server", "conversation"] : layers;
  return settingNames
    .filter((name) => isApplicable(name, asker))
    .map((name) => {
      const { description, group, kind, layers: holding } = declarationOf(name);
      return {
        name,
        description,
        group,
        layers: existing.filter((layer) => holding.includes(layer)),
        ...(longKinds.has(kind) ? {} : { inForce: inForce(name, all, defaults, asker) }),
      };
    });
}

/** A setting in force and from where: "`gpt-4o` (from this channel)". */
function inForce(name: SettingName, all: LayeredValues, defaults: Defaults, asker: Asker): string {
  const from = (layer: Layer) => (layer === "person" ? "your own" : `from ${wordsOf(layer, asker)}`);
  if (declarationOf(name).combines === "limit") {
    const limits = layers.flatMap((layer) => {
      const value = all[layer]?.[name];
      return value === undefined || !declarationOf(name).layers.includes(layer)
        ? []
        : [`${shown(name, value)} (${from(layer)})`];
    });
    return limits.length === 0 ? (defaults[name] ?? "no limit") : limits.join(", and ");
  }
  const effective = resolveLayers(all)[name];
  return effective === undefined
    ? `${defaults[name] ?? "not set"} (default)`
    : `${shown(name, effective.value)} (${from(effective.from)})`;
}

/** The same without Markdown: "gpt-4o (from this channel)". */
export function describeInForce(
  name: SettingName,
  all: LayeredValues,
  defaults: Defaults,
  asker: Asker,
): string {
  return inForce(name, all, defaults, asker).replaceAll("`", "");
}

function shown(name: SettingName, value: SettingValue): string {
  return inline(formatSetting(name, value), maxShownChars);
}

/** A value as code, on one line. */
function inline(text: string, maxChars: number): string {
  const line = text.replaceAll(/\s+/g, " ").replaceAll("`", "'").trim();
  return `\`${line.length <= maxChars ? line : `${line.slice(0, maxChars - 1).trimEnd()}…`}\``;
}

function choicesOf(name: SettingName): string {
  const setting = declarationOf(name);
  return setting.kind === "choice"
    ? `, to ${setting.choices.map(({ value }) => `\`${value}\``).join(", ")}`
    : "";
}

/** Whether a layer that may hold it exists here. */
function hasLayer(name: SettingName, all: LayeredValues, asker: Asker): boolean {
  return isApplicable(name, asker) && declarationOf(name).layers.some((layer) => all[layer] !== undefined);
}
