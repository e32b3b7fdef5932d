import type { Access, Actor } from "../../core/access.ts";
import type { CommandServices, RuleHere } from "../../core/command-services.ts";
import { ParleyError } from "../../core/errors.ts";
import type { CommandCall, IncomingEvent } from "../../core/events.ts";
import type { Gateway, ModelOperation } from "../../core/gateway.ts";
import {
  declarationOf,
  mayHold,
  resolveLayers,
  type Layer,
  type LayeredValues,
} from "../../core/layered-settings.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Platform } from "../../core/platform.ts";
import type { PersonOverview } from "../../core/receiver.ts";
import type { Conversations, ConversationSettings } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import type { LayeredModelChoice, ModelChoice } from "../turn/model-choice.ts";
import type { ChatSettings } from "../turn/turn.ts";
import { createThreadRules } from "./thread-rules.ts";
import {
  describeInForce,
  describeSetting,
  describeSettings,
  explainSettings,
  createSettingsDesk,
  modelListMs,
  type SettingsView,
} from "./settings-desk.ts";
import { createConversationDesk } from "./conversation-writers.ts";
import {
  holdersOf,
  wordsOf,
  type Scene,
  createSettingsReader,
  type SettingsReaderOptions,
  createPlaceRules,
  layerModels,
  toChatSettings,
  toSpokenLanguage,
  unreadableModels,
  type DeploymentChat,
} from "./settings-reader.ts";
import { inLanguage, translate } from "../../words/translate.ts";
import { toLanguage, type Language } from "../../words/languages.ts";
import { toFenced } from "../../core/quoting.ts";

interface LayeredSettingsOptions extends SettingsReaderOptions {
  readonly conversations: SettingsReaderOptions["conversations"] & Pick<Conversations, "existing" | "recent">;
  readonly inbox: Pick<Inbox, "openIn">;
  readonly access: Access;
  readonly gateway: Pick<Gateway, "knownModels">;
  readonly models: ModelChoice;
  readonly accessProblems: (terms: readonly string[]) => readonly string[];
  readonly chat: DeploymentChat;
  readonly platforms: ReadonlyMap<string, Platform>;
  readonly log: Log;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
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

type Overview = Pick<PersonOverview, "language" | "settings">;
type SettingServices = Pick<
  CommandServices,
  "describeSettings" | "changeSetting" | "explainSettings" | "ruleHere"
>;

export type LayeredSettings = ReturnType<typeof createLayeredSettings>;

/** Creates everything behind `/settings`. Failures of the store are `store-unavailable`. */
export function createLayeredSettings(options: LayeredSettingsOptions) {
  const { access, chat, models } = options;
  const reader = createSettingsReader(options);
  const rules = createPlaceRules(reader, access);
  const threads = createThreadRules({ ...options, rules });
  const conversation = createConversationDesk(options);
  const forms = createSettingsDesk({ ...options, reader, viewOf, conversation });

  /** Which messages are answered where a command is used. It is `undefined` where all of them are. */
  async function ruleHere({
    conversationId,
    origin,
    inRoom,
    inConversation,
  }: CommandCall): Promise<RuleHere | undefined> {
    if (origin?.channel === undefined) return undefined;
    const isInThread = inConversation;
    const known = isInThread ? await threads.ruleIn(conversationId, origin) : undefined;
    if (known !== undefined) return { ...known, isInThread };
    const { answerTo } = await rules.settingsOf(origin);
    return { answerTo, isPeoples: !isInThread || inRoom === true, isInThread };
  }

  async function viewOf(scene: Scene): Promise<SettingsView> {
    const [all, defaults] = await Promise.all([reader.read(scene), readDefaults()]);
    return { all, defaults, asker: scene };
  }

  async function readDefaults(): Promise<SettingsView["defaults"]> {
    const signal = AbortSignal.timeout(modelListMs);
    const modelFor = async (operation: ModelOperation): Promise<string> => {
      const [found] = await Promise.allSettled([models.choose(operation, undefined, signal)]);
      return found.status === "fulfilled" ? `\`${found.value}\`` : translate("settings.no-model");
    };
    return {
      "chat-model": await modelFor("chat"),
      "image-model": await modelFor("image"),
      "transcription-model": await modelFor("transcription"),
      "system-prompt": translate("settings.operators-prompt"),
      language: "`automatic`",
      "answer-length": "`normal`",
      temperature: `\`${chat.temperature}\``,
      calm: "`off`",
      "answer-to": "`addressed`",
      "answer-in": "`thread`",
      "who-may-use": translate("settings.everybody"),
    };
  }

  /** The system message as the model gets it, in a block of code. */
  function asSent(all: LayeredValues): string {
    const { systemPrompt } = toChatSettings(chat, all);
    return `\n\n${translate("settings.as-sent")}\n\n${toFenced(systemPrompt)}`;
  }

  /** The services of a command call. */
  function servicesFor(call: CommandCall): SettingServices {
    const scene = toScene(call);
    return {
      ruleHere: () => ruleHere(call),
      async describeSettings(name) {
        const view = await viewOf(scene);
        return {
          markdown:
            name === undefined
              ? describeSettings(view)
              : `${describeSetting(name, view)}${name === "system-prompt" ? asSent(view.all) : ""}`,
          forms: forms.offers(scene, scene.conversationId),
        };
      },
      async explainSettings() {
        return explainSettings(await viewOf(scene));
      },
      async changeSetting({ name, value, layer = usualLayer(scene, name) }) {
        const problems = await forms.change(layer, scene, { [name]: value });
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
        const inForce = describeInForce(name, await viewOf(scene));
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
    threads,
    forms,
    servicesFor,
    /** The settings in force for an event. If the store is unavailable, choosing a model fails. */
    async forTurn(event: IncomingEvent, known?: ConversationSettings): Promise<TurnSettings> {
      const scene = toScene(event);
      let all: LayeredValues;
      try {
        all = await reader.read(scene, known);
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
    /** The settings in force for a person outside of conversations, in the person's language. */
    async explainTo({ platform, author, origin }: Actor): Promise<Overview> {
      const scene: Scene = { platform, author, origin };
      const own = toSpokenLanguage(resolveLayers(await reader.read(scene)));
      const language = own ?? toLanguage(author.locale);
      const explain = async () => explainSettings(await viewOf(scene));
      return { language, settings: await inLanguage(language, explain) };
    },
  };
}

/** A call outside of conversations has a separate id as its conversation, which holds no settings. */
function toScene(event: IncomingEvent): Scene {
  const { platform, author, origin, conversationId } = event;
  const isInside = event.kind === "message" || event.inConversation;
  return { platform, author, origin, ...(isInside ? { conversationId } : {}) };
}
