import type { Access, Actor, Asker } from "../../core/access.ts";
import type { SettingFacts } from "../../core/command-services.ts";
import { ParleyError, isParleyError } from "../../core/errors.ts";
import type { FormField, FormOffer, PressResult } from "../../core/press.ts";
import type { Gateway } from "../../core/gateway.ts";
import {
  type Choice,
  declarationOf,
  mayHold,
  type Layer,
  forWords,
  settingNames,
  type LayerValues,
  type SettingName,
  type SettingValue,
  settingGroups,
  type LayeredValues,
  type SettingGroup,
  layers,
} from "../../core/layered-settings.ts";
import { type ModelChoice, canDo } from "../turn/model-choice.ts";
import {
  wordsOf,
  type Scene,
  isApplicable,
  expectMayChange,
  mayChange,
  type SettingsReader,
  isOnePlace,
} from "./settings-reader.ts";
import type { createConversationDesk } from "./conversation-writers.ts";
import { translate, currentLanguage } from "../../words/translate.ts";
import { toNotice } from "../../core/error-messages.ts";
import {
  parseSetting,
  formatSetting,
  settingChoices,
  settingDescription,
  settingGroupTitle,
  settingLabel,
  toRoleBudget,
} from "../../core/setting-values.ts";

/** What somebody sees of the settings, and where. */
export interface SettingsView {
  readonly all: LayeredValues;
  /** The values that apply where no layer has one, in words. */
  readonly defaults: Readonly<Partial<Record<SettingName, string>>>;
  readonly asker: Asker;
}

/** The longest value in a list, in characters, because prompts may have thousands. */
const maxShownChars = 80;

/** Lists in Markdown the settings in force, with a line and the layer for each. */
export function describeSettings(view: SettingsView): string {
  return groups
    .map((group) => {
      const lines = settingNames
        .filter((name) => declarationOf(name).group === group && hasLayer(name, view))
        .map((name) => `- \`${name}\`: ${inForce(name, view)}`);
      return lines.length === 0 ? "" : [`**${settingGroupTitle(group)}**`, ...lines].join("\n");
    })
    .filter((part) => part !== "")
    .join("\n\n");
}

/** Describes one setting: its meaning, the value in force, the value of each layer, and what can be typed. */
export function describeSetting(name: SettingName, view: SettingsView): string {
  const held = heldIn(name, view).map(
    ({ layer, value }) =>
      `- ${wordsOf(layer, view.asker)}: ${inline(formatSetting(name, value), Number.POSITIVE_INFINITY)}`,
  );
  return [
    translate("settings.one", { name, description: settingDescription(name) }),
    translate("settings.in-force", { value: inForce(name, view) }),
    held.length === 0 ? translate("settings.nobody") : [translate("settings.set-for"), ...held].join("\n"),
    whereAndWhat(name),
  ].join("\n\n");
}

/** Values of these kinds can be as long as a message. */
const longKinds: ReadonlySet<string> = new Set(["text", "access", "role-budgets"]);

/** The facts about settings for `/help`. The page has one person, the operator, and no `person` layer. */
export function explainSettings(view: SettingsView): SettingFacts[] {
  const { asker } = view;
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
        ...(longKinds.has(kind) ? {} : { inForce: inForce(name, view) }),
      };
    });
}

/** The values of one setting, the weakest layer first. */
function heldIn(name: SettingName, { all }: SettingsView) {
  return layers.flatMap((layer) => {
    const value: SettingValue | undefined = all[layer]?.[name];
    return value === undefined ? [] : [{ layer, value }];
  });
}

/** A setting in force with its layer, for example "`gpt-4o` (from this channel)". */
function inForce(name: SettingName, view: SettingsView): string {
  const { combines } = declarationOf(name);
  const held = heldIn(name, view);
  const counting = combines === "override" ? held.slice(-1) : held;
  const words = counting.map(
    ({ layer, value }) => `${shown(name, value)} (${wordsOf(layer, view.asker, "from")})`,
  );
  if (words.length > 0) return words.join(translate("settings.and"));
  if (combines === "limit") return view.defaults[name] ?? translate("settings.no-limit");
  const value = view.defaults[name] ?? translate("settings.not-set");
  return translate("settings.default", { value: `${value}${meaningOf(name, value.replaceAll("`", ""))}` });
}

/** The same without Markdown, for example "gpt-4o (from this channel)". */
export function describeInForce(name: SettingName, view: SettingsView): string {
  return inForce(name, view).replaceAll("`", "");
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
function hasLayer(name: SettingName, { all, asker }: SettingsView): boolean {
  return isApplicable(name, asker) && declarationOf(name).layers.some((layer) => all[layer] !== undefined);
}

/**
 * How many milliseconds the gateway may take to list its models or find the defaults, because platforms want
 * a form's answer within 3 s.
 */
export const modelListMs = 1500;

interface SettingsDeskOptions {
  readonly reader: SettingsReader;
  readonly access: Pick<Access, "isAdmin" | "expectAllowed">;
  readonly gateway: Pick<Gateway, "knownModels">;
  readonly models: Pick<ModelChoice, "allowed" | "choose">;
  /** Says in one sentence each what is wrong with access terms. */
  readonly accessProblems: (terms: readonly string[]) => readonly string[];
  readonly viewOf: (scene: Scene) => Promise<SettingsView>;
  readonly conversation: ReturnType<typeof createConversationDesk>;
}

/** The layers are in the order in which people want them. */
const offered: readonly Layer[] = ["person", "conversation", "channel", "server"];
const groups = Object.keys(settingGroups) as SettingGroup[];
const maxPlaceholderChars = 100;
const keyPrefix = "settings";

/** What is wrong with values, as the ends of sentences that begin with the setting's name. */
type SettingProblems = { readonly [N in SettingName]?: string };

/** The forms of `/settings`, one for each layer and group. Rights are checked at each step. */
export interface SettingsForms {
  /** What the caller may change in a conversation and around it. */
  offers(caller: Actor, conversationId: string | undefined): readonly FormOffer[];
  /** Opens a form. @throws ParleyError `not-permitted`, `store-unavailable` */
  open(key: string, caller: Actor): Promise<PressResult>;
  /**
   * Saves all fields, or none if one is wrong. Missing fields stay as they are, and empty ones are reset.
   * @throws ParleyError `not-permitted`, `store-unavailable`
   */
  submit(key: string, caller: Actor, values: Readonly<Record<string, string>>): Promise<PressResult>;
}

/** Creates the {@link SettingsForms} and what changes a layer without a form. */
export function createSettingsDesk(options: SettingsDeskOptions) {
  const { reader, access, models, viewOf } = options;

  function fieldsOf({ layer, group }: Target, view: SettingsView, scene: Scene): FormField[] {
    const { all } = view;
    return namesIn(layer, group, scene).map((name) => {
      const setting = declarationOf(name);
      const stored = all[layer]?.[name];
      const value = stored === undefined ? "" : formatSetting(name, stored);
      const { [name]: _, ...others } = all[layer] ?? {};
      const otherwise = describeInForce(name, { ...view, all: { ...all, [layer]: others } });
      const choices = optionsOf(name, value);
      return {
        name,
        label: settingLabel(name),
        description: settingDescription(name),
        value,
        ...(choices === undefined ? {} : { options: choices }),
        ...(setting.kind === "model" ? { models: setting.operation } : {}),
        maxChars: setting.kind === "text" ? setting.maxChars : 2000,
        isLong: setting.kind === "text",
        placeholder: otherwise.slice(0, maxPlaceholderChars),
      };
    });
  }

  function optionsOf(name: SettingName, current: string): readonly Choice[] | undefined {
    const setting = declarationOf(name);
    if (setting.kind === "choice") return settingChoices(name);
    if (setting.kind !== "model") return undefined;
    const ids = models
      .allowed(options.gateway.knownModels())
      .filter((model) => canDo(model, setting.operation))
      .map(({ id }) => id);
    const all = current === "" || ids.includes(current) ? ids : [current, ...ids];
    return all.length === 0 ? undefined : all.map((id) => ({ value: id, label: id }));
  }

  /** The value that a text stands for, `undefined` for none, or what is wrong with it. */
  async function parse(
    layer: Layer,
    scene: Scene,
    name: SettingName,
    text: string,
  ): Promise<ReturnType<typeof parseSetting>> {
    const setting = declarationOf(name);
    if (!mayHold(layer, name)) {
      const where = setting.layers.map((one) => forWords[one]);
      return {
        problem: translate("setting.problem.layer", { layers: where.join(translate("settings.or")) }),
      };
    }
    if (!isApplicable(name, scene))
      return { problem: translate(isOnePlace(scene) ? "setting.problem.page" : "setting.problem.no-roles") };
    const parsed = parseSetting(name, text);
    const { value } = parsed;
    if (typeof value === "object") {
      const [problem] = options.accessProblems(value.map((term) => toRoleBudget(term)?.role ?? term));
      if (problem !== undefined) return { problem };
    }
    if (setting.kind === "model" && typeof value === "string") {
      try {
        await models.choose(setting.operation, value, AbortSignal.timeout(modelListMs));
      } catch (error) {
        // A gateway that is down must not block settings. The model is checked when it is used.
        if (isParleyError(error, "gateway-unknown-model") || isParleyError(error, "model-not-allowed"))
          return { problem: translate("setting.problem.model-refused", { why: toNotice(error) }) };
      }
    }
    return parsed;
  }

  /**
   * Saves what a person typed for a layer, or nothing if a part of it is wrong. It resolves to what is wrong.
   * @throws ParleyError `not-permitted`, `store-unavailable`
   */
  async function change(
    layer: Layer,
    scene: Scene,
    typed: Readonly<Partial<Record<SettingName, string>>>,
  ): Promise<SettingProblems | undefined> {
    expectMayChange(layer, scene, access);
    if (layer === "conversation") await options.conversation.expectMayChange(scene);
    const problems: Partial<Record<SettingName, string>> = {};
    const values: Partial<Record<SettingName, SettingValue | undefined>> = {};
    for (const name of settingNames) {
      const text = typed[name];
      if (text === undefined) continue;
      const { value, problem } = await parse(layer, scene, name, text);
      if (problem === undefined) values[name] = value;
      else problems[name] = problem;
    }
    if (Object.keys(problems).length > 0) return problems;
    const before = (await reader.read(scene))[layer];
    const contradiction = contradictionIn({ ...before, ...values } as LayerValues, values);
    if (contradiction !== undefined) return contradiction;
    await reader.change(layer, scene, values);
    const changed = settingNames.filter((name) => name in values && before?.[name] !== values[name]);
    if (layer === "conversation" && changed.length > 0) void options.conversation.tell(scene, changed);
    return undefined;
  }

  const forms: SettingsForms = {
    offers(caller, conversationId) {
      const scene = { ...caller, conversationId };
      return (
        offered
          // On the page, whose only person is the operator, "me" and "this page" are the same.
          .filter(
            (layer) => (layer !== "person" || scene.origin !== undefined) && mayChange(layer, scene, access),
          )
          .flatMap((layer) =>
            groups
              .filter((group) => namesIn(layer, group, scene).length > 0)
              .map((group) => ({
                key: [keyPrefix, layer, group, conversationId ?? ""].join("/"),
                label: translate("settings.form.label", {
                  place: wordsOf(layer, scene, "title"),
                  group: settingGroupTitle(group, "in-label"),
                }),
                scope: wordsOf(layer, scene, "title"),
                layer,
                group,
              })),
          )
      );
    },
    async open(key, caller) {
      access.expectAllowed(caller);
      const target = parseKey(key);
      const scene = { ...caller, conversationId: target.conversationId };
      expectMayChange(target.layer, scene, access);
      if (target.layer === "conversation") await options.conversation.expectMayChange(scene);
      const form = {
        key,
        title: settingGroupTitle(target.group),
        introduction: translate("settings.form.introduction", { place: wordsOf(target.layer, scene) }),
        fields: fieldsOf(target, await viewOf(scene), scene),
      };
      return { kind: "form", form };
    },
    async submit(key, caller, values) {
      access.expectAllowed(caller);
      const { layer, group, conversationId } = parseKey(key);
      const scene = { ...caller, conversationId };
      const before = (await reader.read(scene))[layer] ?? {};
      // Unchanged fields are not checked, so that a model that is gone does not block the rest.
      const typed = namesIn(layer, group, scene).flatMap((name) => {
        const stored = before[name];
        const text = values[name]?.trim();
        const isSame = text === (stored === undefined ? "" : formatSetting(name, stored));
        return text === undefined || isSame ? [] : [[name, text] as const];
      });
      const problems = await change(layer, scene, Object.fromEntries(typed));
      if (problems !== undefined) return { kind: "problems", problems: toSentences(problems) };
      const view = await viewOf(scene);
      const lines = namesIn(layer, group, scene).map(
        (name) =>
          `- ${translate("settings.form.line", {
            label: settingLabel(name),
            value: describeInForce(name, view),
          })}`,
      );
      return {
        kind: "told",
        markdown: [translate("settings.form.saved", { place: wordsOf(layer, scene) }), ...lines].join("\n"),
      };
    },
  };
  return { ...forms, change };
}

interface Target {
  readonly layer: Layer;
  readonly group: SettingGroup;
  readonly conversationId: string | undefined;
}

/** Reads a form's key. @throws ParleyError `not-permitted` for a form that this version does not have */
function parseKey(key: string): Target {
  const [prefix, layer, group, ...rest] = key.split("/");
  const foundLayer = offered.find((one) => one === layer);
  const foundGroup = groups.find((one) => one === group);
  if (prefix !== keyPrefix || foundLayer === undefined || foundGroup === undefined) {
    throw new ParleyError("not-permitted", "unknown form", {
      detail: { problem: translate("settings.form.unknown") },
    });
  }
  return { layer: foundLayer, group: foundGroup, conversationId: rest.join("/") || undefined };
}

function namesIn(layer: Layer, group: SettingGroup, scene: Scene): SettingName[] {
  return settingNames.filter(
    (name) => declarationOf(name).group === group && mayHold(layer, name) && isApplicable(name, scene),
  );
}

function toSentences(problems: SettingProblems): Record<string, string> {
  return Object.fromEntries(
    Object.entries(problems).map(([name, problem]) => [
      name,
      translate("setting.problem", {
        label: settingLabel(name as SettingName),
        problem: problem.replace(/[.。]$/, ""),
      }),
    ]),
  );
}

/** Finds values of one layer that contradict each other, and reports them at the changed one. */
function contradictionIn(
  values: LayerValues,
  change: Readonly<Partial<Record<SettingName, unknown>>>,
): SettingProblems | undefined {
  for (const [own, shared] of [
    ["person-budget", "place-budget"],
    ["person-budget-month", "place-budget-month"],
  ] as const) {
    const [person, place] = [values[own], values[shared]];
    if (person === undefined || place === undefined || person <= place) continue;
    return change[own] === undefined
      ? { [shared]: translate("setting.problem.below-person", { name: own, amount: String(person) }) }
      : { [own]: translate("setting.problem.above-place", { name: shared, amount: String(place) }) };
  }
  return undefined;
}
