import type { Language } from "../words/languages.ts";
import type { Attachment } from "./events.ts";
import type { FinishReason, Model } from "./gateway.ts";
import type { FormOffer } from "./forms.ts";
import type { Layer, SettingGroup, SettingName } from "./layered-settings.ts";
import type { OpenedThread, ReplyFile } from "./platform.ts";
import type { BudgetState, UsageRow } from "./spending.ts";
import type { ErasureReport } from "./storage.ts";

/** Settings that `/help` tells people. */
export interface HelpSettings {
  /** Requests of one person in a minute. 0: no limit. */
  readonly turnsPersonMinute: number;
  /** Patterns of `MODELS_ALLOWED`. Empty: all. */
  readonly allowedModels: readonly string[];
  /** Terms of `ADMINS`. */
  readonly admins: readonly string[];
  /** How long anything is kept. `undefined`: for ever. */
  readonly retentionDays: number | undefined;
}

/** One setting of `/settings`, as `/help` explains it. `inForce`: here for the caller, in Markdown, where it is short. */
export interface SettingFacts {
  readonly name: SettingName;
  readonly description: string;
  readonly group: SettingGroup;
  /** Which layers may hold it, of those that exist on this platform. */
  readonly layers: readonly Layer[];
  readonly inForce?: string;
}

/** What applies to the caller of `/help`, where it was used. `admins`: in words, those of this platform. */
export interface HelpFacts extends HelpSettings {
  /** Put before each command's name on this platform. Usually empty. */
  readonly commandPrefix: string;
  /** How people talk to the bot on this platform: one Markdown sentence or two each. */
  readonly speaking: readonly string[];
  /** The language in which this platform shows the caller the names of commands and options. */
  readonly namesIn: Language;
  /** Whether this platform offers message commands. */
  readonly hasMessageMenus: boolean;
  readonly budgets: readonly BudgetState[];
}

/** What a model answered to {@link CommandServices.complete}. */
export interface Completion {
  readonly text: string;
  /** Anything but `stop`: the text is not whole. */
  readonly reason: FinishReason;
  /** What was left out, cut or replaced, in plain sentences: also that the text is not whole, or another model's. */
  readonly notices: readonly string[];
  /** The other model that answered. */
  readonly fallback?: string;
}

/**
 * What a command may use of the assistant, bound to its call, reply and abort signal. `answer`, `draw`, `transcribe`,
 * `exportConversation` and `say` end the reply. Failures are ParleyErrors; the caller of `run` shows them.
 */
export interface CommandServices {
  /**
   * Runs a turn: asks the model with the conversation as context, and shows and stores question and answer. The message
   * that a message command was used on is quoted. Outside a conversation the turn stands alone.
   */
  answer(request: {
    readonly text: string;
    readonly image?: Attachment | undefined;
    readonly model?: string | undefined;
  }): Promise<void>;
  /**
   * Sums up what was said in the thread or channel of the call, or the conversation where only the bot and its person
   * speak, and ends the reply. `since`: Unix ms; default the last 200 messages. Long histories are cut, and the answer
   * says so. @throws ParleyError `platform-forbidden` where the bot may not read here
   */
  summarize(request: {
    readonly what?: string | undefined;
    readonly since?: number | undefined;
  }): Promise<void>;
  /**
   * Asks the chat model once, without the conversation. Nothing is shown or stored: the command shows the text with its
   * notices, or says by `reason` that it is not whole. `instructions`: the system message. `model`: default the usual
   * chat model.
   */
  complete(request: {
    readonly instructions: string;
    readonly text: string;
    readonly model?: string | undefined;
  }): Promise<Completion>;
  /** Draws `count` pictures or, with an image, changes that one. `size` is `<width>x<height>` in pixels. */
  draw(request: {
    readonly prompt: string;
    readonly image?: Attachment | undefined;
    readonly model?: string | undefined;
    readonly size?: string | undefined;
    readonly count?: number | undefined;
  }): Promise<void>;
  /** Transcribes a voice note or recording. `language`: ISO 639-1. `hint`: names and terms that occur in it. */
  transcribe(request: {
    readonly file: Attachment;
    readonly language?: string | undefined;
    readonly hint?: string | undefined;
    readonly model?: string | undefined;
  }): Promise<void>;
  /**
   * Opens a thread for a new conversation and, with a message, starts it in the caller's name. In a thread: that thread,
   * in which every message is answered from now on.
   */
  openConversation(request: {
    readonly message?: string | undefined;
    readonly model?: string | undefined;
  }): Promise<OpenedThread>;
  /**
   * From now on the bot answers in this thread only when it is mentioned, also in a thread that it opened.
   * @throws ParleyError `invalid-option` outside of threads
   */
  leaveThread(): Promise<void>;
  /** Models are no longer sent what was said before; people still see it. False: nothing was said. */
  reset(): Promise<boolean>;
  /**
   * Erases what the caller said, here or everywhere; where nobody else spoke, the whole conversation. Neither this call
   * nor its reply is stored.
   */
  forget(where: "here" | "everywhere"): Promise<ErasureReport>;
  /** What `forget` would erase. */
  countForgettable(where: "here" | "everywhere"): Promise<ErasureReport>;
  /** Shows the conversation as files, pictures included. */
  exportConversation(): Promise<void>;
  /**
   * Shows a text, Markdown. Unless the call is private it is stored for people and never sent to models, and a call
   * that is resumed or retried shows it again; `isStored` false: it is not stored. `confirm`: label of a button that runs the call again as confirmed, for the caller only; such
   * a text is not stored. `notices`: what it leaves out, in plain sentences. `files` are shown with it, and are not stored. `forms`: offered below it.
   */
  say(
    markdown: string,
    options?: {
      readonly isStored?: boolean;
      readonly confirm?: string;
      readonly notices?: readonly string[];
      readonly files?: readonly ReplyFile[];
      readonly forms?: readonly FormOffer[];
    },
  ): Promise<void>;
  /** Whether `ADMINS` lists the caller; on the page, everybody. */
  isAdmin(): boolean;
  /** Unix milliseconds. */
  now(): number;
  /** The day, UTC, as `YYYY-MM-DD`. */
  today(): string;
  /**
   * What the caller has used, or everybody: rows by day, person, channel, model and operation. Days are included.
   * @throws ParleyError `invalid-option` where somebody else than an admin asks for everybody's
   */
  usage(query: {
    readonly fromDay: string;
    readonly toDay: string;
    readonly ofEverybody?: boolean;
  }): Promise<readonly UsageRow[]>;
  /** The budgets that apply to the caller here. Empty: none does. */
  budgets(): Promise<readonly BudgetState[]>;
  /** Names of people and channels, of at most 100 ids, as far as they are known. */
  namesOf(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** What `/help` explains. */
  help(): Promise<HelpFacts>;
  /** The settings that exist on this platform, in the order of their declaration. */
  explainSettings(): Promise<readonly SettingFacts[]>;
  /** The settings in force here, or one of them, in Markdown, and the forms that the caller may change them with. */
  describeSettings(name?: SettingName): Promise<{
    readonly markdown: string;
    readonly forms: readonly FormOffer[];
  }>;
  /**
   * Sets one setting from what was typed; `default` removes it. `layer` default: the caller's own, else the smallest
   * place. Resolves to what is in force now, in Markdown. @throws ParleyError `invalid-option`, `not-permitted`
   */
  changeSetting(request: {
    readonly name: SettingName;
    readonly value: string;
    readonly layer?: Layer | undefined;
  }): Promise<string>;
  /** The gateway's models, and the default for each operation that a model is available for. */
  models(): Promise<{
    readonly all: readonly Model[];
    readonly defaults: { readonly chat?: string; readonly image?: string; readonly transcription?: string };
  }>;
}
