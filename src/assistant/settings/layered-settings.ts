import type { Access, Actor } from "../../core/access.ts";
import type { CommandServices } from "../../core/command-services.ts";
import { ParleyError } from "../../core/errors.ts";
import type { CommandCall, IncomingEvent } from "../../core/events.ts";
import type { FormDesk } from "../../core/forms.ts";
import type { Gateway } from "../../core/gateway.ts";
import {
  declarationOf,
  mayHold,
  resolveLayers,
  type EffectiveValues,
  type Layer,
} from "../../core/layered-settings.ts";
import type { PersonOverview } from "../../core/person-overview.ts";
import type { LayeredModelChoice, ModelChoice } from "../turn/model-choice.ts";
import type { ChatSettings } from "../turn/turn.ts";
import { createSettingsChanger, type SettingsChangerOptions } from "./change-settings.ts";
import {
  describeInForce,
  describeSetting,
  describeSettings,
  explainSettings,
  type Defaults,
} from "./describe-settings.ts";
import { holdersOf, wordsOf, type Scene } from "./layer-holders.ts";
import { createPlaceRules, type PlaceRules } from "./place-rules.ts";
import { createSettingsDesk } from "./settings-desk.ts";
import { createSettingsReader, type SettingsReaderOptions } from "./settings-reader.ts";
import {
  layerModels,
  toChatSettings,
  toSpokenLanguage,
  unreadableModels,
  type DeploymentChat,
} from "./turn-settings.ts";
import { toLanguage, type Language } from "../../words/languages.ts";
import { inLanguage, translate } from "../../words/translate.ts";

export interface LayeredSettingsOptions extends SettingsReaderOptions {
  readonly access: Access;
  readonly gateway: Pick<Gateway, "knownModels">;
  readonly models: ModelChoice;
  readonly isModelAllowed: (model: string) => boolean;
  readonly accessProblems: SettingsChangerOptions["accessProblems"];
  readonly chat: DeploymentChat;
}

/** The settings in force for one turn or command. */
export interface TurnSettings {
  readonly chat: ChatSettings;
  readonly models: LayeredModelChoice;
  /** Nothing is shown before the answer is complete. */
  readonly isCalm: boolean;
  /** The language that Parley itself speaks, where a setting names one of its languages. */
  readonly language: Language | undefined;
}

type SettingServices = Pick<CommandServices, "describeSettings" | "changeSetting" | "explainSettings">;

/** Everything that the settings of `/settings` do. Failures of the store are `store-unavailable`. */
export interface LayeredSettings {
  readonly rules: PlaceRules;
  readonly forms: FormDesk;
  /** What is in force for an event. While the store is unavailable, a choice of models that fails with that. */
  forTurn(event: IncomingEvent): Promise<TurnSettings>;
  /** The services of a command call. */
  servicesFor(call: CommandCall): SettingServices;
  /** The settings in force for a person outside of conversations, in the language that Parley speaks with them. */
  explainTo(by: Actor): Promise<Pick<PersonOverview, "language" | "settings">>;
  /** Removes what is set for a place or person. */
  erase(holder: string): Promise<void>;
}

/** How long the default models may take to find, in milliseconds: people wait for a form. */
const modelListMs = 1500;

/** @see {@link LayeredSettings} */
export function createLayeredSettings(options: LayeredSettingsOptions): LayeredSettings {
  const { access, chat, gateway, models, isModelAllowed } = options;
  const reader = createSettingsReader(options);
  const changer = createSettingsChanger({ ...options, reader });
  const forms = createSettingsDesk({ reader, changer, access, gateway, isModelAllowed, defaults });

  async function defaults(): Promise<Defaults> {
    const signal = AbortSignal.timeout(modelListMs);
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
      "answer-to": "`mentions`",
      "answer-in": "`thread`",
      "who-may-use": translate("settings.everybody"),
    };
  }

  function servicesFor(call: CommandCall): SettingServices {
    const scene = toScene(call);
    return {
      async describeSettings(name) {
        const [all, known] = await Promise.all([reader.read(scene), defaults()]);
        return {
          markdown:
            name === undefined
              ? describeSettings(all, known, scene)
              : describeSetting(name, all, known, scene),
          forms: forms.offers(scene, scene.conversationId),
        };
      },
      async explainSettings() {
        const [all, known] = await Promise.all([reader.read(scene), defaults()]);
        return explainSettings(all, known, scene);
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
        const [all, known] = await Promise.all([reader.read(scene), defaults()]);
        const inForce = describeInForce(name, all, known, scene);
        return translate("settings.saved", { place: wordsOf(layer, scene), name, value: inForce });
      },
    };
  }

  /** The layer that is meant where none is named. */
  function usualLayer(scene: Scene, name: Parameters<typeof mayHold>[1]): Layer {
    const holders = holdersOf(scene, access);
    if (scene.origin === undefined && holders.server !== undefined) return "server";
    if (mayHold("person", name)) return "person";
    return declarationOf(name).layers.findLast((layer) => holders[layer] !== undefined) ?? "channel";
  }

  return {
    rules: createPlaceRules(reader, access),
    forms,
    servicesFor,
    async forTurn(event) {
      const scene = toScene(event);
      let effective: EffectiveValues;
      try {
        effective = resolveLayers(await reader.read(scene));
      } catch (error) {
        return { chat, models: unreadableModels(models, error), isCalm: false, language: undefined };
      }
      return {
        chat: toChatSettings(chat, effective),
        models: layerModels(models, effective, scene),
        isCalm: effective.calm?.value === "on",
        language: toSpokenLanguage(effective),
      };
    },
    async explainTo({ platform, author, origin }) {
      const scene: Scene = { platform, author, origin };
      const all = await reader.read(scene);
      const language = toSpokenLanguage(resolveLayers(all)) ?? toLanguage(author.locale);
      const explain = async () => explainSettings(all, await defaults(), scene);
      return { language, settings: await inLanguage(language, explain) };
    },
    erase: (holder) => reader.erase(holder),
  };
}

/** A call outside a conversation has an id of its own there, which holds no settings. */
function toScene(event: IncomingEvent): Scene {
  const { platform, author, origin, conversationId } = event;
  const isInside = event.kind === "message" || event.inConversation;
  return { platform, author, origin, ...(isInside ? { conversationId } : {}) };
}
