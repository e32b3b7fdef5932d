import type { ConfirmButton, ReplyFile } from "../../core/platform.ts";
import type { Json } from "../../core/events.ts";

/** What one message of a reply shows. */
export interface MessageContent {
  /** Standard Markdown of at most `maxLength` as `lengthOf` counts; empty while there is none. */
  readonly text: string;
  readonly state: "waiting" | "streaming" | "finished" | "failed";
  /** A few words on what is being done, shown with `waiting` and `streaming`. */
  readonly status?: string;
  /** Small print below a finished or failed reply; on its last message only. */
  readonly notices?: readonly string[];
  /** Why there is no more; on the last message of a `failed` reply only. */
  readonly failure?: string;
  /** Draws a Retry button; on the last message of a `failed` reply only. */
  readonly retryKey?: string;
  /** Draws a button in warning colours; on the last message of a `finished` reply only. */
  readonly confirm?: ConfirmButton;
}

/**
 * What a chat platform brings so that `createEditingReply` can show a reply in messages that are posted and
 * edited. Failures are ParleyErrors; `retryAfterMs` on one means: slow down. Once `signal` has aborted nothing more
 * may be sent: somebody else goes on with the message.
 */
export interface EditTarget {
  /** Longest text of a message, in the unit of `lengthOf`. */
  readonly maxLength: number;
  /** Length of a piece of Markdown as this platform will count it (after escaping; characters or bytes). */
  lengthOf(markdown: string): number;
  /** At most this many messages; what is left goes into a file `answer.md`. */
  readonly maxMessages: number;
  readonly minEditIntervalMs: number;
  /** Posts a message; resolves to what `edit` needs to find it again, as JSON. */
  post(content: MessageContent, signal: AbortSignal): Promise<Json>;
  edit(ref: Json, content: MessageContent, signal: AbortSignal): Promise<void>;
  /** Posts files below the reply's messages. */
  upload(files: readonly ReplyFile[]): Promise<void>;
}
