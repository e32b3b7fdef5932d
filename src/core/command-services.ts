import type { Attachment } from "./events.ts";
import type { ErasureReport } from "./storage.ts";
import type { Model } from "./gateway.ts";
import type { OpenedThread } from "./platform.ts";

/**
 * What a command may use of the assistant, bound to its call, reply and abort signal. Each of the first five
 * shows and, in a conversation, keeps its result. Failures are ParleyErrors; whoever called `run` shows them.
 */
export interface CommandServices {
  /** A turn: message, answer. In a conversation it is one of its turns, elsewhere it stands alone. */
  answer(request: {
    readonly text: string;
    readonly image?: Attachment | undefined;
    readonly model?: string | undefined;
  }): Promise<void>;
  /** Draws `count` pictures or, with an image, changes that one. `size` is `<width>x<height>` in pixels. */
  draw(request: {
    readonly prompt: string;
    readonly image?: Attachment | undefined;
    readonly model?: string | undefined;
    readonly size?: string | undefined;
    readonly count?: number | undefined;
  }): Promise<void>;
  /** The words of a voice note or recording. Without a file: the first fitting one of the call's subject. */
  transcribe(request: {
    readonly file?: Attachment | undefined;
    readonly language?: string | undefined;
    readonly hint?: string | undefined;
    readonly model?: string | undefined;
  }): Promise<void>;
  /** Opens a thread for a new conversation and, with a message, begins it in the caller's name. */
  openConversation(request: {
    readonly message?: string | undefined;
    readonly model?: string | undefined;
  }): Promise<OpenedThread>;
  /** From here on models are sent nothing of what was said before; people still see it. False: nothing was. */
  reset(): Promise<boolean>;
  /**
   * Removes what the caller said, here or everywhere, for good; where nobody else spoke, the whole conversation.
   * Neither this call nor its reply is kept.
   */
  forget(where: "here" | "everywhere"): Promise<ErasureReport>;
  /** What `forget` would remove. */
  countForgettable(where: "here" | "everywhere"): Promise<ErasureReport>;
  /** Shows the conversation as files, pictures and all. */
  exportConversation(): Promise<void>;
  /** A finished text that is not kept. */
  tell(markdown: string): Promise<void>;
  /** Like `tell`, with a button that runs the call again, as confirmed; only the caller may press it. */
  askFirst(markdown: string, label: string): Promise<void>;
  /** A finished text, Markdown. People see it again in the history; models are never sent it. */
  say(markdown: string): Promise<void>;
  /** The gateway's list, and the model taken for each operation when nobody names one (where one can do it). */
  models(): Promise<{
    readonly all: readonly Model[];
    readonly defaults: { readonly chat?: string; readonly image?: string; readonly transcription?: string };
  }>;
}
