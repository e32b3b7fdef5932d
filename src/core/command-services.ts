import type { AnswerRule } from "./addressee.ts";
import type { Language } from "../words/languages.ts";
import type { Attachment } from "./events.ts";
import type { FinishReason, Model, ModelOperation } from "./gateway.ts";
import type { FormOffer } from "./press.ts";
import type { Layer, SettingGroup, SettingName } from "./layered-settings.ts";
import type { ReplyFile } from "./reply.ts";
import type { Result } from "./result.ts";
import type { BudgetState, UsageRow } from "./spending.ts";
import type { ErasureReport } from "./storage.ts";

/** The deployment's settings that `/help` shows. */
export interface HelpSettings {
  /** How many requests one person may make in a minute. 0 means no limit. */
  readonly turnsPersonMinute: number;
  /** Patterns of `MODELS_ALLOWED`. An empty list allows every model. */
  readonly allowedModels: readonly string[];
  /** Terms of `ADMINS`. */
  readonly admins: readonly string[];
  /** How many days anything is kept. `undefined` means for ever. */
  readonly retentionDays: number | undefined;
}

/** A setting as `/help` explains it. `inForce` is the short Markdown of its value here for the caller. */
export interface SettingFacts {
  readonly name: SettingName;
  readonly description: string;
  readonly group: SettingGroup;
  /** The layers that may hold it, of those that exist on this platform. */
  readonly layers: readonly Layer[];
  readonly inForce?: string;
}

/** What applies to the caller of `/help` in this place. `admins` names those of this platform in words. */
export interface HelpFacts extends HelpSettings {
  /** The prefix before each command's name on this platform, which is usually empty. */
  readonly commandPrefix: string;
  /** How people talk to the bot on this platform. Each entry is one or two Markdown sentences. */
  readonly speaking: readonly string[];
  /** The language in which this platform shows the names of commands and options to the caller. */
  readonly namesIn: Language;
  /** Whether conversations of this platform have one person each. */
  readonly isForOne: boolean;
  /** Whether this platform offers message commands. */
  readonly hasMessageMenus: boolean;
  readonly budgets: readonly BudgetState[];
}

/** Which messages are answered where a command is used. */
export interface RuleHere extends AnswerRule {
  readonly isInThread: boolean;
}

/** The result of {@link CommandServices.complete}. */
export interface Completion {
  readonly text: string;
  /** Any value but `stop` means that the text is not complete. */
  readonly reason: FinishReason;
  /** Says in plain sentences what was left out, cut or replaced, also when another model answered. */
  readonly notices: readonly string[];
  /** The other model that answered in place of the one that was asked. */
  readonly fallback?: string;
}

/**
 * What a command may use of the assistant, bound to its call, reply and abort signal. `answer`, `draw`,
 * `summarize`, `transcribe`, `exportConversation` and `say` resolve to what the command returns. The caller
 * of `run` ends the reply with it, and shows failures.
 */
export interface CommandServices {
  /**
   * Runs a turn: it asks the model with the conversation as context, and shows and stores question and
   * answer. It quotes the message of a message command. Outside a conversation the turn stands alone.
   */
  answer(request: {
    readonly text: string;
    readonly image?: Attachment | undefined;
    readonly model?: string | undefined;
  }): Promise<Result>;
  /**
   * Summarizes what was said in the thread or channel of the call. Where only the bot and
   * one person talk, it summarizes their conversation. It reads from `since` (Unix ms), by default the last
   * 200 messages. It cuts long histories, and the answer says so.
   * @throws ParleyError `platform-forbidden` where the bot may not read here
   */
  summarize(request: {
    readonly what?: string | undefined;
    readonly since?: number | undefined;
  }): Promise<Result>;
  /**
   * Asks the chat model once, without the conversation, and shows or stores nothing. The command shows the
   * text with its notices, or says by `reason` that it is not complete. `instructions` is the system message.
   * `model` defaults to the usual chat model.
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
  }): Promise<Result>;
  /** Transcribes a recording. `language` is an ISO 639-1 code, `hint` lists names and terms in it. */
  transcribe(request: {
    readonly file: Attachment;
    readonly language?: string | undefined;
    readonly hint?: string | undefined;
    readonly model?: string | undefined;
  }): Promise<Result>;
  /**
   * Opens a thread for a new conversation and, given a message, starts it in the caller's name. Inside a
   * thread it uses that thread, in which no mention is needed from then on. `notices` say what was said there
   * before and could not be read.
   */
  openConversation(request: {
    readonly message?: string | undefined;
    readonly model?: string | undefined;
  }): Promise<{ readonly notices: readonly string[] }>;
  /**
   * Makes the bot answer only mentions in this thread, even if the bot opened the thread.
   * @throws ParleyError `invalid-option` outside of threads
   */
  leaveThread(): Promise<void>;
  /** Hides everything said so far from models, but not from people. Returns false if nothing was said. */
  reset(): Promise<boolean>;
  /**
   * Erases what the caller said, here or everywhere. A conversation in which nobody else spoke is erased as a
   * whole. Neither this call nor its reply is stored.
   */
  forget(where: "here" | "everywhere"): Promise<ErasureReport>;
  /** Counts what `forget` would erase. */
  countForgettable(where: "here" | "everywhere"): Promise<ErasureReport>;
  /** Shows the conversation as files, pictures included. */
  exportConversation(): Promise<Result>;
  /**
   * Shows a Markdown text. Unless the call is private or `isStored` is false, the text is stored for people
   * and never sent to models, and a call that is resumed or retried shows it again. `confirm` is the label of
   * a button that runs the call again as confirmed, for the caller only. Such a text is not stored. `notices`
   * say in plain sentences what the text leaves out. `files` are shown but not stored. `forms` are offered
   * below the text.
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
  ): Promise<Result>;
  /** Whether `ADMINS` lists the caller. Everybody on the page is an admin. */
  isAdmin(): boolean;
  /** The current time in Unix milliseconds. */
  now(): number;
  /**
   * Works on the usage of the caller, or of everybody, in rows by day, person, channel, model and operation,
   * the earliest day first. Both days are included. It is done once at a time for a person, as exports are.
   * @throws ParleyError `invalid-option` where anybody but an admin asks for everybody's usage
   */
  usage<T>(
    query: { readonly fromDay: string; readonly toDay: string; readonly ofEverybody?: boolean },
    use: (rows: readonly UsageRow[]) => Promise<T>,
  ): Promise<T>;
  /** The budgets that apply to the caller here. It may be empty. */
  budgets(): Promise<readonly BudgetState[]>;
  /** Names of people and channels as far as they are known, for at most 100 ids. */
  namesOf(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** The facts that `/help` shows. */
  help(): Promise<HelpFacts>;
  /**
   * Which messages are answered where the command is used, in a channel or thread; `undefined` where all of
   * them are.
   */
  ruleHere(): Promise<RuleHere | undefined>;
  /** The settings that exist on this platform, in the order of their declaration. */
  explainSettings(): Promise<readonly SettingFacts[]>;
  /** Describes in Markdown the settings in force here, or one of them, with the forms that change them. */
  describeSettings(name?: SettingName): Promise<{
    readonly markdown: string;
    readonly forms: readonly FormOffer[];
  }>;
  /**
   * Sets one setting from typed text, where `default` removes the value. `layer` defaults to the caller's own
   * layer, or else the smallest place. Resolves to Markdown that says what is in force now.
   * @throws ParleyError `invalid-option`, `not-permitted`
   */
  changeSetting(request: {
    readonly name: SettingName;
    readonly value: string;
    readonly layer?: Layer | undefined;
  }): Promise<string>;
  /** The gateway's models, and the default for each operation that has an available model. */
  models(): Promise<{
    readonly all: readonly Model[];
    readonly defaults: Readonly<Partial<Record<ModelOperation, string>>>;
  }>;
}
