import type { Access, Asker } from "../../core/access.ts";
import {
  type Layer,
  type LayeredValues,
  type LayerChange,
  type LayerValues,
  type SettingsStore,
  declarationOf,
  type SettingName,
  resolveLayers,
  type EffectiveValue,
  type EffectiveValues,
} from "../../core/layered-settings.ts";
import type { Conversations, ConversationSettings } from "../../core/storage.ts";
import { createRecent } from "../../support/recent.ts";
import { ParleyError, isParleyError } from "../../core/errors.ts";
import type { Author, Origin } from "../../core/events.ts";
import { translate } from "../../words/translate.ts";
import type { Language } from "../../words/languages.ts";
import type { PlaceSettings } from "../../core/receiver.ts";
import { toRoleBudget, automaticLanguage } from "../../core/setting-values.ts";
import type { Budget, PlaceBudgets } from "../../core/spending.ts";
import { toBudgets } from "../access/budgets.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { LayeredModelChoice, ModelChoice } from "../turn/model-choice.ts";
import type { ChatSettings } from "../turn/turn.ts";

/** How many places have their settings remembered for the time of an outage. */
const maxPlaces = 5000;
/** A message asks for the settings of its place several times. They are read once in so many ms. */
const freshMs = 1000;

export interface SettingsReaderOptions {
  readonly store: SettingsStore;
  readonly conversations: Pick<Conversations, "settings" | "saveSettings">;
  readonly access: Pick<Access, "isAdmin">;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
}

export type SettingsReader = ReturnType<typeof createSettingsReader>;

/** Reads and writes the layers. Failures throw `store-unavailable` and never look like missing settings. */
export function createSettingsReader(options: SettingsReaderOptions) {
  const { store, conversations, access, now } = options;
  const lastKnown = createRecent<{ readonly values: LayeredValues; readonly readAt: number }>(maxPlaces);

  /** When this process has last changed something. What was read before that is read again. */
  let changedAt = -Infinity;

  async function readHolders(holders: LayerHolders): Promise<LayeredValues> {
    const values = await store.read(Object.values(holders));
    return Object.fromEntries(
      Object.keys(holders).map((layer, index) => [layer, toKnownValues(values[index] ?? {})]),
    );
  }

  async function changeConversation(conversationId: string, change: LayerChange): Promise<void> {
    await conversations.saveSettings(conversationId, ({ chosen }) => {
      const { "chat-model": model, ...others } = { ...chosen, ...change };
      const kept = Object.entries(others).filter(([, value]) => value !== undefined);
      return {
        ...("chat-model" in change ? { model: model as string | undefined } : {}),
        chosen: Object.fromEntries(kept),
      };
    });
  }

  return {
    /**
     * The values of every layer of a scene.
     * @param known the settings of its conversation, if they were just read
     */
    async read(scene: Scene, known?: ConversationSettings): Promise<LayeredValues> {
      const { conversation: conversationId, ...holders } = holdersOf(scene, access);
      const [layers, conversation] = await Promise.all([
        readHolders(holders),
        conversationId === undefined ? undefined : (known ?? conversations.settings(conversationId)),
      ]);
      return conversation === undefined ? layers : { ...layers, conversation: toLayerValues(conversation) };
    },
    /**
     * The values of places, as they were at most a second ago. If the store is unavailable, it returns the
     * last known ones, because they decide whether a message is for the bot at all.
     */
    async readPlaces(place: Place): Promise<LayeredValues> {
      const holders = placeHoldersOf(place);
      const key = JSON.stringify(holders);
      const known = lastKnown.get(key);
      const age = now() - (known?.readAt ?? -Infinity);
      if (known !== undefined && known.readAt > changedAt && age >= 0 && age < freshMs) return known.values;
      try {
        const values = await readHolders(holders);
        lastKnown.set(key, { values, readAt: now() });
        return values;
      } catch (error) {
        if (known === undefined) throw error;
        return known.values;
      }
    },
    /** Changes a layer, which must exist in the scene. */
    async change(layer: Layer, scene: Scene, change: LayerChange): Promise<void> {
      const holder = holdersOf(scene, access)[layer];
      if (holder === undefined) throw new Error(`a scene without the layer ${layer}`);
      try {
        await (layer === "conversation" ? changeConversation(holder, change) : store.change(holder, change));
      } finally {
        changedAt = now();
      }
    },
  };
}

/** Values that earlier versions have stored under another name. */
function toKnownValues(values: LayerValues): LayerValues {
  const { "answer-to": answerTo, ...others } = values as { "answer-to"?: string };
  return answerTo === "every-message" ? { ...others, "answer-to": "all" } : values;
}

/** The settings of a conversation as a layer. */
function toLayerValues({ model, chosen = {} }: ConversationSettings): LayerValues {
  return model === undefined ? chosen : { ...chosen, "chat-model": model };
}

/** Who does something and where. Every event is a scene. */
export interface Scene extends Asker {
  readonly author: Author;
  /** It is absent outside of conversations. */
  readonly conversationId?: string | undefined;
}

/** The store's ids of the holders of each layer that exists in a scene. */
type LayerHolders = Readonly<Partial<Record<Layer, string>>>;

/** @param access tells the operator's own platform, which is one place, from an event of an unknown place */
export function holdersOf(scene: Scene, access: Pick<Access, "isAdmin">): LayerHolders {
  const { origin, platform, author, conversationId } = scene;
  return {
    ...placeHoldersOf(origin ?? (access.isAdmin(scene) ? { server: platform } : {})),
    person: author.id,
    ...(conversationId === undefined ? {} : { conversation: conversationId }),
  };
}

/** The part of an origin that matters for settings. */
type Place = Pick<Origin, "server" | "channel" | "channelPlace">;

/** The holders of the settings and budgets of a place. */
function placeHoldersOf({ server, channel, channelPlace = channel }: Place): LayerHolders {
  return {
    ...(server === undefined ? {} : { server }),
    ...(channelPlace === undefined ? {} : { channel: channelPlace }),
  };
}

/** Whether the whole platform is one place, like the page, without channels or other people. */
export function isOnePlace({ origin, platform }: Asker): boolean {
  return origin === undefined || origin.server === platform;
}

/** Whether a setting applies in a scene. Not every platform has roles, or channels and other people. */
export function isApplicable(name: SettingName, asker: Asker): boolean {
  const { isShared, needsRoles } = declarationOf(name);
  if (needsRoles === true && asker.origin?.roles === undefined) return false;
  return !isOnePlace(asker) || isShared !== true;
}

/** A layer in words: `for` follows "for" ("this channel"), `from` is an origin, `title` stands alone. */
export function wordsOf(layer: Layer, asker: Asker, role: "for" | "from" | "title" = "for"): string {
  return translate(`layer.${kindOf(layer, asker)}.${role}`);
}

function kindOf(layer: Layer, asker: Asker): Layer | "page" | "workspace" {
  if (layer !== "server") return layer;
  if (isOnePlace(asker)) return "page";
  return asker.origin?.server?.split(":")[1] === "team" ? "workspace" : "server";
}

/** Whether somebody may change the settings of a layer that exists in the scene. */
export function mayChange(layer: Layer, scene: Scene, access: Pick<Access, "isAdmin">): boolean {
  if (holdersOf(scene, access)[layer] === undefined) return false;
  if (layer === "person" || layer === "conversation") return true;
  return scene.origin?.isManager === true || access.isAdmin(scene);
}

/** @throws ParleyError `not-permitted` with the reason: the layer does not exist here, or no right to it */
export function expectMayChange(layer: Layer, scene: Scene, access: Pick<Access, "isAdmin">): void {
  if (mayChange(layer, scene, access)) return;
  const problem =
    holdersOf(scene, access)[layer] === undefined
      ? translate(`settings.absent.${layer}`)
      : translate("settings.not-manager", {
          server: wordsOf("server", scene),
          place: wordsOf(layer, scene),
        });
  throw new ParleyError("not-permitted", `settings of the layer ${layer} are not open to this person`, {
    detail: { problem },
  });
}

/** The rules that the managers of a server, workspace or channel made with `/settings`. */
export function createPlaceRules(
  reader: Pick<SettingsReader, "readPlaces">,
  access: Pick<Access, "isAdmin">,
) {
  return {
    /** Which messages are for the bot and where it answers. @throws ParleyError `store-unavailable` */
    async settingsOf(place: Place): Promise<PlaceSettings> {
      const effective = resolveLayers(await reader.readPlaces(place));
      return {
        answerTo: effective["answer-to"]?.value ?? "addressed",
        answerIn: effective["answer-in"]?.value ?? "thread",
      };
    },
    /** @throws ParleyError `access-denied` if a `who-may-use` list leaves them out, or `store-unavailable` */
    async expectMayUse(asker: Asker): Promise<void> {
      const { origin } = asker;
      // The list never locks out the people who may change it.
      if (origin === undefined || origin.isManager || access.isAdmin(asker)) return;
      const { server, channel } = await reader.readPlaces(origin);
      const terms = termsOf(origin);
      for (const list of [server?.["who-may-use"], channel?.["who-may-use"]]) {
        if (list === undefined || list.some((term) => terms.has(term))) continue;
        throw new ParleyError("access-denied", "refused by who-may-use", {
          detail: { because: "place", user: origin.user },
        });
      }
    },
    async budgetsFor({
      platform,
      origin,
      personId,
    }: Parameters<PlaceBudgets["budgetsFor"]>[0]): Promise<readonly Budget[]> {
      // The page, which is the operator's own platform, is its own place.
      const place: Place = origin ?? { server: platform };
      const places = await reader.readPlaces(place);
      const ids = placeHoldersOf(place);
      return (["server", "channel"] as const).flatMap((layer): Budget[] => {
        const values = places[layer] ?? {};
        const id = ids[layer];
        const person = { day: values["person-budget"], month: values["person-budget-month"] };
        const together = { day: values["place-budget"], month: values["place-budget-month"] };
        return [
          ...toBudgets({ kind: "person", id: personId }, person),
          ...(id === undefined ? [] : toBudgets({ kind: "place", id }, together)),
          ...toRoleBudgets(values["role-budgets"], origin?.roles),
        ];
      });
    },
  };
}

/** The budgets of those roles that a person has. */
function toRoleBudgets(terms: readonly string[] = [], roles: readonly string[] = []): Budget[] {
  return terms.flatMap((term): Budget[] => {
    const { role, usd, period } = toRoleBudget(term) ?? {};
    if (role === undefined || usd === undefined || period === undefined || !roles.includes(role)) return [];
    return [{ scope: { kind: "role", id: role }, period, budgetUsd: usd }];
  });
}

function termsOf({ user, server, channel, roles = [] }: Origin): ReadonlySet<string | undefined> {
  return new Set([user, server, channel, ...roles]);
}

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
const spoken: ReadonlyMap<string, Language> = new Map(
  Object.entries({
    English: "en",
    German: "de",
    French: "fr",
    Spanish: "es",
    Japanese: "ja",
  }),
);

/**
 * The language of Parley's own words, if a person has set a language for themselves or for the conversation.
 * A place's setting affects only answers. `undefined` means that the person's locale decides.
 */
export function toSpokenLanguage({ language }: EffectiveValues): Language | undefined {
  const isOwn = language?.from === "person" || language?.from === "conversation";
  return isOwn ? spoken.get(language.value) : undefined;
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
