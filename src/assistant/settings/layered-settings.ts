import type { Access, Actor } from "../../core/access.ts";
import type { AnswerRule } from "../../core/addressee.ts";
import type { CommandServices } from "../../core/command-services.ts";
import { ParleyError, isParleyError } from "../../core/errors.ts";
import type { CommandCall, IncomingEvent } from "../../core/events.ts";
import type { FormField, FormOffer, FormOption } from "../../core/forms.ts";
import type { PressResult } from "../../core/press.ts";
import type { Gateway } from "../../core/gateway.ts";
import {
  declarationOf,
  mayHold,
  resolveLayers,
  type Layer,
  forWords,
  settingNames,
  type LayerValues,
  type SettingName,
  type SettingValue,
  settingGroups,
  type LayeredValues,
  type SettingGroup,
} from "../../core/layered-settings.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { PersonOverview, Receiver } from "../../core/platform.ts";
import type { Conversations } from "../../core/storage.ts";
import { type LayeredModelChoice, type ModelChoice, canDo } from "../turn/model-choice.ts";
import type { ChatSettings } from "../turn/turn.ts";
import {
  describeInForce,
  describeSetting,
  describeSettings,
  explainSettings,
  type Defaults,
} from "./describe-settings.ts";
import {
  holdersOf,
  wordsOf,
  type Scene,
  isApplicable,
  expectMayChange,
  mayChange,
  createSettingsReader,
  type SettingsReaderOptions,
  type SettingsReader,
} from "./settings-reader.ts";
import { createPlaceRules, createThreadRules } from "./place-rules.ts";
import {
  layerModels,
  toChatSettings,
  toSpokenLanguage,
  unreadableModels,
  type DeploymentChat,
} from "./turn-settings.ts";
import { toLanguage, type Language } from "../../words/languages.ts";
import { inLanguage, translate } from "../../words/translate.ts";
import { toNotice } from "../../core/error-messages.ts";
import {
  parseSetting,
  formatSetting,
  settingChoices,
  settingDescription,
  settingGroupTitle,
  settingLabel,
} from "../../core/setting-values.ts";
import { toFenced } from "../../support/markdown-fences.ts";

interface LayeredSettingsOptions extends SettingsReaderOptions {
  readonly conversations: SettingsReaderOptions["conversations"] & Pick<Conversations, "exists" | "recent">;
  readonly inbox: Pick<Inbox, "listOpenIn">;
  readonly access: Access;
  readonly gateway: Pick<Gateway, "knownModels">;
  readonly models: ModelChoice;
  readonly isModelAllowed: (model: string) => boolean;
  readonly accessProblems: Parameters<typeof createSettingsChanger>[0]["accessProblems"];
  readonly chat: DeploymentChat;
}

/** The settings in force for a turn or command. */
export interface TurnSettings {
  readonly chat: ChatSettings;
  readonly models: LayeredModelChoice;
  /** Whether nothing is shown before the answer is complete. */
  readonly isCalm: boolean;
  /** The language of Parley's own words, if a setting names one of its languages. */
  readonly language: Language | undefined;
}

type SettingServices = Pick<CommandServices, "describeSettings" | "changeSetting" | "explainSettings">;

/** Everything behind `/settings`. Failures of the store are `store-unavailable`. */
export interface LayeredSettings {
  readonly rules: ReturnType<typeof createPlaceRules>;
  readonly answersTo: Receiver["answersTo"];
  readonly forms: SettingsForms;
  /** The settings in force for an event. If the store is unavailable, choosing a model fails. */
  forTurn(event: IncomingEvent): Promise<TurnSettings>;
  /** The services of a command call. */
  servicesFor(call: CommandCall): SettingServices;
  /** The settings in force for a person outside of conversations, in the person's language. */
  explainTo(by: Actor): Promise<Pick<PersonOverview, "language" | "settings">>;
  /** Removes what is set for a place or person. */
  erase(holder: string): Promise<void>;
}

/**
 * How many milliseconds the gateway may take to list its models or find the defaults, because platforms want
 * a form's answer within 3 s.
 */
const modelListMs = 1500;

/** Creates {@link LayeredSettings}. */
export function createLayeredSettings(options: LayeredSettingsOptions): LayeredSettings {
  const { access, chat, gateway, models, isModelAllowed } = options;
  const reader = createSettingsReader(options);
  const changer = createSettingsChanger({ ...options, reader });
  const rules = createPlaceRules(reader, access);
  const answersTo = createThreadRules({ ...options, rules });
  const forms = createSettingsDesk({ reader, changer, access, gateway, isModelAllowed, defaults });

  /** Which messages are answered in the thread of a scene. It is `undefined` outside of the bot's threads. */
  const ruleIn = async ({ conversationId, origin }: Scene): Promise<AnswerRule | undefined> =>
    conversationId === undefined || origin === undefined ? undefined : answersTo(conversationId, origin);

  async function defaults(scene: Scene): Promise<Defaults> {
    const signal = AbortSignal.timeout(modelListMs);
    const rule = await ruleIn(scene);
    const found = await Promise.allSettled(
      (["chat", "image", "transcription"] as const).map((operation) =>
        models.choose(operation, undefined, signal),
      ),
    );
    const [chatModel, image, transcription] = found.map((one) =>
      one.status === "fulfilled" ? `\`${one.value}\`` : translate("settings.no-model"),
    );
    return {
      ...(chatModel === undefined ? {} : { "chat-model": chatModel }),
      ...(image === undefined ? {} : { "image-model": image }),
      ...(transcription === undefined ? {} : { "transcription-model": transcription }),
      "system-prompt": translate("settings.operators-prompt"),
      language: "`automatic`",
      "answer-length": "`normal`",
      temperature: `\`${chat.temperature}\``,
      calm: "`off`",
      "answer-to": `\`${rule?.isDefault === true ? rule.answerTo : "mentions"}\``,
      "answer-in": "`thread`",
      "who-may-use": translate("settings.everybody"),
    };
  }

  /** The system message as the model gets it, in a block of code. */
  function asSent(all: LayeredValues): string {
    const { systemPrompt } = toChatSettings(chat, all);
    return `\n\n${translate("settings.as-sent")}\n\n${toFenced(systemPrompt)}`;
  }

  function servicesFor(call: CommandCall): SettingServices {
    const scene = toScene(call);
    return {
      async describeSettings(name) {
        const [all, known] = await Promise.all([reader.read(scene), defaults(scene)]);
        return {
          markdown:
            name === undefined
              ? describeSettings(all, known, scene)
              : `${describeSetting(name, all, known, scene)}${name === "system-prompt" ? asSent(all) : ""}`,
          forms: forms.offers(scene, scene.conversationId),
        };
      },
      async explainSettings() {
        const [all, known, rule] = await Promise.all([reader.read(scene), defaults(scene), ruleIn(scene)]);
        const { "answer-to": ofChannel, ...others } = all.channel ?? {};
        // `/dismiss` in a thread counts for more than its channel.
        const isSentAway = ofChannel !== undefined && rule?.answerTo === "mentions";
        return explainSettings(isSentAway ? { ...all, channel: others } : all, known, scene);
      },
      async changeSetting({ name, value, layer = usualLayer(scene, name) }) {
        const problems = await changer(layer, scene, { [name]: value });
        const problem = problems?.[name];
        if (problem !== undefined) {
          throw new ParleyError("invalid-option", `setting ${name} not changed`, {
            detail: {
              command: call.name,
              option: name,
              problem: translate("setting.problem.it", { problem: problem.replace(/[.。]$/, "") }),
            },
          });
        }
        const [all, known] = await Promise.all([reader.read(scene), defaults(scene)]);
        const inForce = describeInForce(name, all, known, scene);
        return translate("settings.saved", { place: wordsOf(layer, scene), name, value: inForce });
      },
    };
  }

  /** The layer that is meant if the caller names none. */
  function usualLayer(scene: Scene, name: Parameters<typeof mayHold>[1]): Layer {
    const holders = holdersOf(scene, access);
    if (scene.origin === undefined && holders.server !== undefined) return "server";
    if (mayHold("person", name)) return "person";
    return declarationOf(name).layers.findLast((layer) => holders[layer] !== undefined) ?? "channel";
  }

  return {
    rules,
    answersTo,
    forms,
    servicesFor,
    async forTurn(event) {
      const scene = toScene(event);
      let all: LayeredValues;
      try {
        all = await reader.read(scene);
      } catch (error) {
        return { chat, models: unreadableModels(models, error), isCalm: false, language: undefined };
      }
      const effective = resolveLayers(all);
      return {
        chat: toChatSettings(chat, all),
        models: layerModels(models, effective, scene),
        isCalm: effective.calm?.value === "on",
        language: toSpokenLanguage(effective),
      };
    },
    async explainTo({ platform, author, origin }) {
      const scene: Scene = { platform, author, origin };
      const all = await reader.read(scene);
      const language = toSpokenLanguage(resolveLayers(all)) ?? toLanguage(author.locale);
      const explain = async () => explainSettings(all, await defaults(scene), scene);
      return { language, settings: await inLanguage(language, explain) };
    },
    erase: (holder) => reader.erase(holder),
  };
}

/** A call outside of conversations has a separate id as its conversation, which holds no settings. */
function toScene(event: IncomingEvent): Scene {
  const { platform, author, origin, conversationId } = event;
  const isInside = event.kind === "message" || event.inConversation;
  return { platform, author, origin, ...(isInside ? { conversationId } : {}) };
}

interface SettingsDeskOptions {
  readonly reader: SettingsReader;
  readonly changer: SettingsChanger;
  readonly access: Pick<Access, "isAdmin" | "expectAllowed">;
  readonly gateway: Pick<Gateway, "knownModels">;
  readonly isModelAllowed: (model: string) => boolean;
  readonly defaults: (scene: Scene) => Promise<Defaults>;
}

/** The layers are in the order in which people want them. */
const offered: readonly Layer[] = ["person", "conversation", "channel", "server"];
const groups = Object.keys(settingGroups) as SettingGroup[];
const maxKeyChars = 100;
const maxPlaceholderChars = 100;
const keyPrefix = "settings";

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

/** Creates {@link SettingsForms}. */
function createSettingsDesk(options: SettingsDeskOptions): SettingsForms {
  const { reader, changer, access } = options;

  function toScene(caller: Actor, conversationId: string | undefined): Scene {
    const { platform, author, origin } = caller;
    return { platform, author, origin, conversationId };
  }

  function fieldsOf(target: Target, all: LayeredValues, defaults: Defaults, scene: Scene): FormField[] {
    const { layer, group } = target;
    return namesIn(layer, group, scene).map((name) => {
      const setting = declarationOf(name);
      const stored = all[layer]?.[name];
      const value = stored === undefined ? "" : formatSetting(name, stored);
      const { [name]: _, ...others } = all[layer] ?? {};
      const otherwise = describeInForce(name, { ...all, [layer]: others }, defaults, scene);
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

  function optionsOf(name: SettingName, current: string): readonly FormOption[] | undefined {
    const setting = declarationOf(name);
    if (setting.kind === "choice") return settingChoices(name);
    if (setting.kind !== "model") return undefined;
    const ids = options.gateway
      .knownModels()
      .filter((model) => options.isModelAllowed(model.id) && canDo(model, setting.operation))
      .map(({ id }) => id);
    const all = current === "" || ids.includes(current) ? ids : [current, ...ids];
    return all.length === 0 ? undefined : all.map((id) => ({ value: id, label: id }));
  }

  return {
    offers(caller, conversationId) {
      const scene = toScene(caller, conversationId);
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
                  place: titleOf(layer, scene),
                  group: settingGroupTitle(group, "in-label"),
                }),
                scope: titleOf(layer, scene),
                layer,
                group,
              })),
          )
          .filter(({ key }) => key.length <= maxKeyChars)
      );
    },
    async open(key, caller) {
      access.expectAllowed(caller);
      const target = parseKey(key);
      const scene = toScene(caller, target.conversationId);
      expectMayChange(target.layer, scene, access);
      const [all, defaults] = await Promise.all([reader.read(scene), options.defaults(scene)]);
      const form = {
        key,
        title: settingGroupTitle(target.group),
        introduction: translate("settings.form.introduction", { place: wordsOf(target.layer, scene) }),
        fields: fieldsOf(target, all, defaults, scene),
      };
      return { kind: "form", form };
    },
    async submit(key, caller, values) {
      access.expectAllowed(caller);
      const { layer, group, conversationId } = parseKey(key);
      const scene = toScene(caller, conversationId);
      expectMayChange(layer, scene, access);
      const before = (await reader.read(scene))[layer] ?? {};
      // Unchanged fields are not checked, so that a model that is gone does not block the rest.
      const typed = namesIn(layer, group, scene).flatMap((name) => {
        const stored = before[name];
        const text = values[name]?.trim();
        const isSame = text === (stored === undefined ? "" : formatSetting(name, stored));
        return text === undefined || isSame ? [] : [[name, text] as const];
      });
      const problems = await changer(layer, scene, Object.fromEntries(typed));
      if (problems !== undefined) return { kind: "problems", problems: toSentences(problems) };
      const [all, defaults] = await Promise.all([reader.read(scene), options.defaults(scene)]);
      const lines = namesIn(layer, group, scene).map(
        (name) =>
          `- ${translate("settings.form.line", {
            label: settingLabel(name),
            value: describeInForce(name, all, defaults, scene),
          })}`,
      );
      return {
        kind: "told",
        markdown: [translate("settings.form.saved", { place: wordsOf(layer, scene) }), ...lines].join("\n"),
      };
    },
  };

  function titleOf(layer: Layer, scene: Scene): string {
    return wordsOf(layer, scene, "title");
  }
}

/** What a form changes. */
interface Target {
  readonly layer: Layer;
  readonly group: SettingGroup;
  readonly conversationId: string | undefined;
}

/** Reads a form's key. @throws ParleyError `not-permitted` for a form that this version does not have */
function parseKey(key: string): Target {
  const [prefix, layer, group, ...rest] = key.split("/");
  const found = { layer: offered.find((one) => one === layer), group: groups.find((one) => one === group) };
  if (prefix !== keyPrefix || found.layer === undefined || found.group === undefined) {
    throw new ParleyError("not-permitted", "unknown form", {
      detail: { problem: translate("settings.form.unknown") },
    });
  }
  const conversationId = rest.join("/");
  return {
    layer: found.layer,
    group: found.group,
    conversationId: conversationId === "" ? undefined : conversationId,
  };
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

interface SettingsChangerOptions {
  readonly reader: SettingsReader;
  readonly access: Pick<Access, "isAdmin">;
  readonly models: Pick<ModelChoice, "choose">;
  /** Says in one sentence each what is wrong with access terms. */
  readonly accessProblems: (terms: readonly string[]) => readonly string[];
}

/** What is wrong with values, as the ends of sentences that begin with the setting's name. */
type SettingProblems = { readonly [N in SettingName]?: string };

/** Saves what a person typed for a layer, or nothing if a part of it is wrong. */
type SettingsChanger = (
  layer: Layer,
  scene: Scene,
  typed: Readonly<Partial<Record<SettingName, string>>>,
) => Promise<SettingProblems | undefined>;

/**
 * Returns a function that checks and saves a change. It resolves to what is wrong, or to `undefined` if it
 * was saved. It throws ParleyErrors `not-permitted` and `store-unavailable`.
 */
function createSettingsChanger(options: SettingsChangerOptions): SettingsChanger {
  const { reader, access, models } = options;

  async function parse(
    { layer, scene }: { readonly layer: Layer; readonly scene: Scene },
    name: SettingName,
    text: string,
  ): Promise<string | SettingValue[]> {
    if (!mayHold(layer, name)) return notHeld(name);
    if (!isApplicable(name, scene)) return translate("setting.problem.page");
    const parsed = parseSetting(name, text);
    if (parsed.kind === "problem") return parsed.problem;
    if (parsed.kind === "default") return [];
    const { value } = parsed;
    const setting = declarationOf(name);
    if (setting.kind === "access" && typeof value === "object") {
      const [problem] = options.accessProblems(value);
      if (problem !== undefined) return problem;
    }
    if (setting.kind === "model" && typeof value === "string") {
      try {
        await models.choose(setting.operation, value, AbortSignal.timeout(modelListMs));
      } catch (error) {
        // A gateway that is down must not block settings. The model is checked when it is used.
        if (isParleyError(error, "gateway-unknown-model") || isParleyError(error, "model-not-allowed"))
          return translate("setting.problem.model-refused", { why: toNotice(error) });
      }
    }
    return [value];
  }

  return async (layer, scene, typed) => {
    expectMayChange(layer, scene, access);
    const problems: Partial<Record<SettingName, string>> = {};
    const change: Partial<Record<SettingName, SettingValue | undefined>> = {};
    for (const name of settingNames) {
      const text = typed[name];
      if (text === undefined) continue;
      const parsed = await parse({ layer, scene }, name, text);
      if (typeof parsed === "string") problems[name] = parsed;
      else change[name] = parsed[0];
    }
    if (Object.keys(problems).length > 0) return problems;
    const before = (await reader.read(scene))[layer];
    const contradiction = contradictionIn({ ...before, ...change } as LayerValues, change);
    if (contradiction !== undefined) return contradiction;
    await reader.change(layer, scene, change);
    return undefined;
  };
}

/** Finds values of one layer that contradict each other, and reports them at the changed one. */
function contradictionIn(
  { "person-budget": person, "place-budget": place }: LayerValues,
  change: Readonly<Partial<Record<SettingName, unknown>>>,
): SettingProblems | undefined {
  if (person === undefined || place === undefined || person <= place) return undefined;
  return change["person-budget"] === undefined
    ? { "place-budget": translate("setting.problem.below-person", { amount: String(person) }) }
    : { "person-budget": translate("setting.problem.above-place", { amount: String(place) }) };
}

function notHeld(name: SettingName): string {
  const where = declarationOf(name).layers.map((layer) => forWords[layer]);
  return translate("setting.problem.layer", { layers: where.join(translate("settings.or")) });
}
