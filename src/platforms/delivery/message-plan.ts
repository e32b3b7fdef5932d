import { createHash } from "node:crypto";
import type { Json } from "../../core/events.ts";
import type { FormOffer } from "../../core/forms.ts";
import type { ReplyFile, ConfirmButton } from "../../core/platform.ts";
import type { ReplyAction } from "../../core/press.ts";
import { translate } from "../../words/translate.ts";
import type { Urgency } from "./delivery-scheduler.ts";
import { splitMarkdown } from "./split-markdown.ts";

type Measures = Pick<EditTarget, "maxLength" | "maxBareLength" | "lengthOf" | "maxMessages">;

/** How a reply ends: what its last message shows besides the text. */
export type Ending = Pick<
  MessageContent,
  "notices" | "failure" | "retryKey" | "confirm" | "actions" | "forms"
> & {
  readonly state: "finished" | "failed";
};

/** The final messages of a reply. */
interface EndingPlan {
  readonly contents: readonly MessageContent[];
  /** The whole answer, where it does not fit into `maxMessages`. */
  readonly file?: ReplyFile;
}

/** What a reply that grows shows besides its text. */
interface GrowingExtras {
  readonly status: string | undefined;
  /** Buttons below the last message. */
  readonly actions?: readonly ReplyAction[];
}

/**
 * The messages of a reply whose text is still streaming: all but the last are final. Text past `maxMessages` is not
 * shown yet. Always at least one message.
 */
export function planStreaming(
  text: string,
  { status, actions = [] }: GrowingExtras,
  target: Measures,
): MessageContent[] {
  const all = splitUpTo(withoutHalfRow(text), target);
  const pieces = all.slice(0, target.maxMessages);
  const shownStatus = all.length > pieces.length ? translate("delivery.continues-in-file") : status;
  const extras = {
    ...(shownStatus === undefined ? {} : { status: shownStatus }),
    ...(actions.length === 0 ? {} : { actions }),
  };
  if (pieces.length === 0) return [{ text: "", state: "waiting", ...extras }];
  return pieces.map((piece, index) =>
    index < pieces.length - 1
      ? { text: piece, state: "finished" }
      : { text: piece, state: "streaming", ...extras },
  );
}

/** The messages of an ended reply; the last one shows notices, failure and Retry. Always at least one. */
export function planEnding(text: string, ending: Ending, target: Measures): EndingPlan {
  const { maxBareLength = 0 } = target;
  const isOne = isBare(ending) && target.lengthOf(text) <= maxBareLength;
  const pieces = isOne ? [text] : splitUpTo(text, target);
  if (pieces.length <= target.maxMessages) return { contents: withEnding(pieces, ending) };
  const notice = translate("delivery.in-file");
  return {
    contents: withEnding(pieces.slice(0, target.maxMessages), {
      ...ending,
      notices: [...(ending.notices ?? []), notice],
    }),
    file: {
      name: "answer.md",
      mediaType: "text/markdown",
      bytes: new TextEncoder().encode(text),
      altText: translate("delivery.file"),
    },
  };
}

/** The pieces that can be shown, and one more where there is more text: a reply grows many times a second. */
function splitUpTo(text: string, target: Measures): string[] {
  const { maxLength, maxMessages } = target;
  const lengthOf = (markdown: string) => target.lengthOf(markdown);
  return splitMarkdown(text, { maxLength, lengthOf, maxPieces: maxMessages + 1 });
}

/** The messages of an ended reply without a limit of their number: for when the file cannot be uploaded. */
export function planEndingWithoutFile(text: string, ending: Ending, target: Measures): EndingPlan {
  const lengthOf = (markdown: string) => target.lengthOf(markdown);
  return planEnding(text, ending, { maxLength: target.maxLength, lengthOf, maxMessages: Infinity });
}

function withEnding(pieces: readonly string[], ending: Ending): MessageContent[] {
  const before = pieces.slice(0, -1).map((text): MessageContent => ({ text, state: "finished" }));
  return [...before, { ...ending, text: pieces.at(-1) ?? "", notices: ending.notices ?? [] }];
}

/** Omits an incomplete table row at the end: it would break the table. */
function withoutHalfRow(text: string): string {
  const lineStart = text.lastIndexOf("\n") + 1;
  const line = text.slice(lineStart).trim();
  return lineStart > 0 && line.startsWith("|") && !(line.length > 1 && line.endsWith("|"))
    ? text.slice(0, lineStart)
    : text;
}

/** Whether files alone make the reply complete. */
export function isBare({ state, notices = [], actions = [] }: Ending): boolean {
  return state === "finished" && notices.length === 0 && actions.length === 0;
}

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

/** A sign of work that is no message and has no words: typing. Contract: never throws; failures are only logged. */
export interface WorkSign {
  /** Shows it until it is cleared. Idempotent. */
  show(): void;
  clear(): void;
}

/** The files that a reply has shown, as saved in its address: a run that resumes it does not post them again. */
interface ShownFiles {
  /** Of their bytes, as {@link fileHash} makes them. */
  readonly hashes: readonly string[];
  /** Of the messages that show them, where they are known. */
  readonly refs: readonly Json[];
  /** `answer.md`, which the text of another answer replaces. */
  readonly answer?: { readonly hash: string; readonly ref: Json };
}

/** 16 characters that name a file's bytes within one reply. */
export function fileHash({ bytes }: Pick<ReplyFile, "bytes">): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}

/** Reads what an address holds. `undefined`: nothing that is known. */
export function parseShownFiles(saved: Json | undefined): ShownFiles | undefined {
  if (typeof saved !== "object" || saved === null || Array.isArray(saved)) return undefined;
  const { hashes, refs, answer } = saved as Partial<Record<keyof ShownFiles, Json>>;
  if (!Array.isArray(hashes) || !Array.isArray(refs)) return undefined;
  const known = answer as ShownFiles["answer"] | undefined;
  return { hashes: hashes.map(String), refs, ...(known === undefined ? {} : { answer: known }) };
}
