import type { Attachment, CommandCall, Model, OpenedThread, Reply } from "./types.ts";

/** A file of the caller's, read and sniffed. */
export interface ReadImage {
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  readonly name: string;
}

/** What commands may use of the assistant. All failures are ParleyErrors; the caller of `run` shows them. */
export interface AssistantServices {
  /** A turn of its own or, in a conversation, of the conversation: message, answer, both kept. */
  answer(
    call: CommandCall,
    reply: Reply,
    request: {
      readonly text: string;
      readonly image?: Attachment;
      readonly model?: string;
    },
    signal: AbortSignal,
  ): Promise<void>;
  /** Draws or, with an image, edits; shows and keeps the pictures. */
  draw(
    call: CommandCall,
    reply: Reply,
    request: {
      readonly prompt: string;
      readonly image?: Attachment;
      readonly model?: string;
      readonly size?: string;
      readonly count?: number;
    },
    signal: AbortSignal,
  ): Promise<void>;
  /** Transcribes; shows and keeps the words. */
  transcribe(
    call: CommandCall,
    reply: Reply,
    request: {
      readonly file?: Attachment;
      readonly language?: string;
      readonly hint?: string;
      readonly model?: string;
    },
    signal: AbortSignal,
  ): Promise<void>;
  /** Opens a thread for a new conversation and, with a text, begins it with the caller's first message. */
  openConversation(
    call: CommandCall,
    request: { readonly message?: string; readonly model?: string },
  ): Promise<OpenedThread>;
  models(signal: AbortSignal): Promise<readonly Model[]>;
  /** Shows a finished text and, in a conversation, keeps it for people (never for the model). */
  say(call: CommandCall, reply: Reply, text: string): Promise<void>;
  /** The models used when nobody names one. */
  readonly defaults: { readonly chat: string; readonly image: string; readonly transcription: string };
}
