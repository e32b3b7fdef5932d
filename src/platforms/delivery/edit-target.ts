import type { FormOffer } from "../../core/forms.ts";
import type { ConfirmButton, ReplyFile } from "../../core/platform.ts";
import type { ReplyAction } from "../../core/reply-actions.ts";
import type { Json } from "../../core/events.ts";

/** What one message of a reply shows. */
export interface MessageContent {
  /** Standard Markdown of at most `maxLength`, in the unit of `lengthOf`; empty while there is no text. */
  readonly text: string;
  readonly state: "waiting" | "streaming" | "finished" | "failed";
  /** A few words on what is being done, shown with `waiting` and `streaming`. */
  readonly status?: string;
  /** Notices below a finished or failed reply; on its last message only. */
  readonly notices?: readonly string[];
  /** Why there is no more; on the last message of a `failed` reply only. */
  readonly failure?: string;
  /** Shows a Retry button; on the last message of a `failed` reply only. */
  readonly retryKey?: string;
  /** Shows a button in warning colours; on the last message of a `finished` reply only. */
  readonly confirm?: ConfirmButton;
  /** Buttons below the answer; on the last message of a `finished` reply only. */
  readonly actions?: readonly ReplyAction[];
  /** Forms that can be opened; on the last message of a `finished` reply only. */
  readonly forms?: readonly FormOffer[];
}

/**
 * What a chat platform implements so that `createEditingReply` can show a reply in messages that are posted and
 * edited. Failures are ParleyErrors; `retryAfterMs` on one means: rate limited. Contract: sends nothing after `signal`
 * has aborted, since another process may have resumed the reply.
 */
export interface EditTarget {
  /** Maximum length of a message's text, in the unit of `lengthOf`. */
  readonly maxLength: number;
  /** Length of Markdown as the platform counts it (after escaping; characters or bytes). */
  lengthOf(markdown: string): number;
  /** A longer text is uploaded whole as `answer.md`. */
  readonly maxMessages: number;
  /** Minimum time between edits of one reply. */
  readonly minEditIntervalMs: number;
  /**
   * Posts a message, or finds the one that another process posted for the same reply; that one keeps its text where
   * `content` is a placeholder. Resolves to the reference that `edit` takes, as JSON.
   */
  post(content: MessageContent, signal: AbortSignal): Promise<Json>;
  edit(ref: Json, content: MessageContent, signal: AbortSignal): Promise<void>;
  /** Posts files below the reply's messages. */
  upload(files: readonly ReplyFile[], signal: AbortSignal): Promise<void>;
}
