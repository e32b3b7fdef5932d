import type { Asker } from "../../core/access.ts";
import { toNotice } from "../../core/error-messages.ts";
import { isParleyError } from "../../core/errors.ts";
import {
  resolveLayers,
  type EffectiveValue,
  type EffectiveValues,
  type Layer,
  type LayeredValues,
} from "../../core/layered-settings.ts";
import { automaticLanguage } from "../../core/setting-values.ts";
import type { LayeredModelChoice, ModelChoice } from "../turn/model-choice.ts";
import type { ChatSettings } from "../turn/turn.ts";
import { wordsOf } from "./settings-reader.ts";
import type { Language } from "../../words/languages.ts";
import { translate } from "../../words/translate.ts";

/** How the chat model is asked where `/settings` has no value. */
export interface DeploymentChat extends ChatSettings {
  /** The part of the system message that no setting replaces. Default: all of it. */
  readonly identity?: string;
}

/** The factor by which a long answer may be longer. */
const longFactor = 4;

const lengthInstructions = {
  short: "Keep every answer short: a few sentences at most.",
  normal: "",
  long: "Answer in detail: explain, and give examples where they help.",
} as const;

/** The languages of the catalogue by their names in the setting `language`. */
const spoken: Readonly<Record<string, Language>> = {
  English: "en",
  German: "de",
  French: "fr",
  Spanish: "es",
  Japanese: "ja",
};

/**
 * The language of Parley's own words, if a person has set a language for themselves or for the conversation.
 * A place's setting affects only answers. `undefined` means that the person's locale decides.
 */
export function toSpokenLanguage({ language }: EffectiveValues): Language | undefined {
  const isOwn = language?.from === "person" || language?.from === "conversation";
  return isOwn ? spoken[language.value] : undefined;
}

/** The headings of the layers' instructions, in their order. What is said later tends to weigh more. */
const promptHeadings = {
  server: "Instructions for this server:",
  channel: "Instructions for this channel:",
  conversation: "Instructions for this conversation:",
  person: "Instructions of the person who asks:",
} as const satisfies Record<Layer, string>;

/** How the chat model is asked with the settings of all layers. */
export function toChatSettings(chat: DeploymentChat, all: LayeredValues): ChatSettings {
  const effective = resolveLayers(all);
  const length = effective["answer-length"]?.value ?? "normal";
  const language = effective.language?.value ?? automaticLanguage;
  const prompts = (Object.keys(promptHeadings) as Layer[]).flatMap((layer) => {
    const prompt = all[layer]?.["system-prompt"];
    return prompt === undefined ? [] : [`${promptHeadings[layer]}\n${prompt}`];
  });
  const parts = [
    prompts.length === 0 ? chat.systemPrompt : (chat.identity ?? chat.systemPrompt),
    ...prompts,
    lengthInstructions[length],
    language === automaticLanguage ? "" : `Always answer in ${language}, whatever language you are asked in.`,
  ];
  return {
    maxTokens: length === "long" ? chat.maxTokens * longFactor : chat.maxTokens,
    temperature: effective.temperature?.value ?? chat.temperature,
    systemPrompt: parts.filter((part) => part !== "").join("\n\n"),
  };
}

const settingOf = {
  chat: "chat-model",
  image: "image-model",
  "image-edit": "image-model",
  transcription: "transcription-model",
} as const;

/**
 * Chooses the requested model, or else the one in the settings, or else the deployment's. If the set model is
 * not listed or allowed any more, the deployment's replaces it, with a notice.
 */
export function layerModels(
  models: ModelChoice,
  effective: EffectiveValues,
  asker: Asker,
): LayeredModelChoice {
  const notices: string[] = [];

  async function choose(...[operation, asked, signal]: Parameters<ModelChoice["choose"]>): Promise<string> {
    const set: EffectiveValue<string> | undefined = effective[settingOf[operation]];
    if (asked !== undefined || set === undefined) return models.choose(operation, asked, signal);
    // A model that draws may not be able to change pictures.
    if (operation === "image-edit" && models.find(set.value)?.capabilities.drawsInChat === false)
      return models.choose(operation, undefined, signal);
    try {
      return await models.choose(operation, set.value, signal);
    } catch (error) {
      if (!isParleyError(error, "gateway-unknown-model") && !isParleyError(error, "model-not-allowed"))
        throw error;
      const taken = await models.choose(operation, undefined, signal);
      const whose =
        set.from === "person"
          ? translate("model.set-not-taken.own")
          : translate("model.set-not-taken.place", { place: wordsOf(set.from, asker) });
      const why = toNotice(error).split(/(?<=\.)\s|(?<=。)/)[0] ?? "";
      notices.push(translate("model.set-not-taken", { why, whose, taken }));
      return taken;
    }
  }

  return {
    ...models,
    choose,
    takeNotices: () => [...new Set(notices.splice(0))],
  };
}

/** Models for a turn whose settings could not be read. Choosing one fails with `error`. */
export function unreadableModels(models: ModelChoice, error: unknown): LayeredModelChoice {
  return { ...models, choose: () => Promise.reject(error), takeNotices: () => [] };
}
