import type { FormOffer } from "../../core/forms.ts";
import type { ConfirmButton, ReplyFile } from "../../core/platform.ts";
import type { ReplyAction } from "../../core/reply-actions.ts";
import type { Json } from "../../core/events.ts";
import type { Urgency } from "./delivery-lane.ts";

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
  /** Buttons; on the last message only, of a `finished` reply or of one that grows. */
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
  /** The same of the one message of a reply that has nothing below its text. Default `maxLength`. */
  readonly maxBareLength?: number;
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
  post(content: MessageContent, signal: AbortSignal, urgency: Urgency): Promise<Json>;
  /**
   * Resolves to the reference of the message that shows the content: another one where it had to be posted anew.
   * @param confirm called before that; rejects with `stopping` where another process has the reply by now
   */
  edit(
    ref: Json,
    content: MessageContent,
    signal: AbortSignal,
    urgency: Urgency,
    confirm: () => Promise<void>,
  ): Promise<Json>;
  /** Deletes a message that shows nothing of the reply any more. Rejects where it cannot. */
  remove(ref: Json, signal: AbortSignal): Promise<void>;
  /**
   * Posts files below the reply's messages, in as few messages as possible. Repeated for the same array, it posts only
   * what is not shown yet. Resolves to the references of the messages, where they are known.
   */
  upload(files: readonly ReplyFile[], signal: AbortSignal): Promise<readonly Json[]>;
  /** Shows that a reply is coming, in place of a placeholder. */
  readonly sign?: WorkSign;
  /**
   * When streaming text may be shown: 0 is now, otherwise milliseconds until it is asked again. Infinity: not before the
   * reply ends. `first`: nothing of the text is shown yet. Default: now.
   */
  roomInMs?(kind: "first" | "preview"): number;
  /**
   * Called once, when the reply has ended: gives back what it holds. `isAbandoned`: it has not, and another process
   * resumes it.
   */
  close?(isAbandoned: boolean): void;
}

/** A sign of work that is no message: typing, or a status line. Contract: never throws; failures are only logged. */
export interface WorkSign {
  /** False: it is the same whatever the status is. */
  readonly showsWords: boolean;
  /** Shows it, or changes its words; keeps it until it is cleared. */
  show(status: string | undefined): void;
  clear(): void;
}
