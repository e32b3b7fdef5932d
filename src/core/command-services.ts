import type { Attachment } from "./events.ts";
import type { Model } from "./gateway.ts";
import type { FormOffer } from "./forms.ts";
import type { Layer, SettingName } from "./layered-settings.ts";
import type { OpenedThread } from "./platform.ts";
import type { ErasureReport } from "./storage.ts";

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
   * Asks the chat model once, without the conversation. Resolves to its text; nothing is shown or stored.
   * `instructions`: the system message. `model`: default the usual chat model.
   */
  complete(request: {
    readonly instructions: string;
    readonly text: string;
    readonly model?: string | undefined;
  }): Promise<string>;
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
  /** Opens a thread for a new conversation and, with a message, starts it in the caller's name. */
  openConversation(request: {
    readonly message?: string | undefined;
    readonly model?: string | undefined;
  }): Promise<OpenedThread>;
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
   * Shows a text, Markdown. In a conversation it is stored for people and never sent to models; `isStored` false:
   * it is not stored. `confirm`: label of a button that runs the call again as confirmed, for the caller only; such
   * a text is not stored. `forms`: offered below it.
   */
  say(
    markdown: string,
    options?: {
      readonly isStored?: boolean;
      readonly confirm?: string;
      readonly forms?: readonly FormOffer[];
    },
  ): Promise<void>;
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
