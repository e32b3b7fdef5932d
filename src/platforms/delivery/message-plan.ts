import { createHash } from "node:crypto";
import type { Json } from "../../core/events.ts";
import type { AnswerSource } from "../../core/gateway.ts";
import type { FormOffer, ReplyAction } from "../../core/press.ts";
import type { ReplyFile, ConfirmButton } from "../../core/reply.ts";
import { toShownSources, type ShownSource } from "../../core/sources.ts";
import { translate } from "../../words/translate.ts";
import type { Urgency } from "./limits.ts";
import { splitMarkdown } from "./split-markdown.ts";

type StreamMeasures = Pick<EditTarget, "maxLength" | "lengthOf" | "maxMessages">;
type EndingMeasures = Pick<
  EditTarget,
  "maxLength" | "maxBareLength" | "lengthOf" | "lengthOfSource" | "lengthOfAll"
>;
type Measures = StreamMeasures & EndingMeasures;

/** How a reply ends: what its last message shows besides the text. */
export type Ending = Pick<
  MessageContent,
  "notices" | "failure" | "retryKey" | "confirm" | "actions" | "forms"
> & {
  readonly state: "finished" | "failed";
  /** As they are stored. */
  readonly sources?: readonly AnswerSource[];
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
  /** The buttons below the last message. */
  readonly actions?: readonly ReplyAction[];
}

/**
 * Returns the messages of a reply whose text is still streaming. All but the last are final. Text past
 * `maxMessages` is not shown yet. There is always at least one message.
 */
export function planStreaming(
  text: string,
  { status, actions = [] }: GrowingExtras,
  target: StreamMeasures,
): MessageContent[] {
  const all = splitUpTo(withoutHalfRow(text), target, target.maxMessages);
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

/**
 * The messages of an ended reply; the last one shows failure and Retry. Sources and notices follow the text,
 * in messages of their own where they have no room below it. Always at least one.
 * @param maxMessages is Infinity where no file can be uploaded
 */
export function planEnding(
  text: string,
  ending: Ending,
  target: Measures,
  maxMessages = target.maxMessages,
): EndingPlan {
  const { maxBareLength = 0 } = target;
  const isOne = isBare(ending) && target.lengthOf(text) <= maxBareLength;
  const pieces = isOne ? [text] : splitUpTo(text, target, maxMessages);
  if (pieces.length <= maxMessages) return { contents: withEnding(pieces, ending, target) };
  const notice = translate("delivery.in-file");
  const notices = [...(ending.notices ?? []), notice];
  return {
    contents: withEnding(pieces.slice(0, maxMessages), { ...ending, notices }, target),
    file: {
      name: "answer.md",
      mediaType: "text/markdown",
      bytes: new TextEncoder().encode(text),
      altText: translate("delivery.file"),
    },
  };
}

/** The pieces that can be shown, and one more where there is more text: a reply grows many times a second. */
function splitUpTo(text: string, target: StreamMeasures, maxMessages: number): string[] {
  const { maxLength } = target;
  const lengthOf = (markdown: string) => target.lengthOf(markdown);
  return splitMarkdown(text, { maxLength, lengthOf, maxPieces: maxMessages + 1 });
}

/** The pieces of a text as messages, with what comes below the last one. */
export function withEnding(
  pieces: readonly string[],
  { sources, notices = [], ...ending }: Ending,
  target: EndingMeasures,
): MessageContent[] {
  const lists = packSources(toShownSources(sources), pieces.at(-1) ?? "", target);
  const contents: ShownContent[] = pieces.slice(0, -1).map((text) => ({ text }));
  for (const [index, list] of lists.entries()) {
    const text = index === 0 ? (pieces.at(-1) ?? "") : "";
    contents.push({ text, ...(list.length === 0 ? {} : { sources: list }) });
  }
  const noticed = packNotices(contents.pop() ?? { text: "" }, notices, ending, target);
  const last = noticed.pop() ?? { text: "" };
  return [
    ...[...contents, ...noticed].map((content) => ({ ...content, state: "finished" as const })),
    { ...ending, ...last, notices: last.notices ?? [] },
  ];
}

type ShownContent = Pick<MessageContent, "text" | "sources" | "notices">;

/** Notices by the message that shows them. The first is `content`. The last has room for the failure too. */
function packNotices(
  content: ShownContent,
  notices: readonly string[],
  { state, failure }: Omit<Ending, "notices" | "sources">,
  { maxLength, maxBareLength = maxLength, lengthOfAll }: EndingMeasures,
): ShownContent[] {
  const hasRoom = (shown: ShownContent & Pick<MessageContent, "failure">) =>
    lengthOfAll === undefined || lengthOfAll({ state, ...shown }) <= maxBareLength;
  if (hasRoom({ ...content, notices, ...(failure === undefined ? {} : { failure }) }))
    return [{ ...content, notices }];
  const all: ShownContent[] = [];
  let last = content;
  for (const notice of notices) {
    const more = { ...last, notices: [...(last.notices ?? []), notice] };
    if (hasRoom(more)) last = more;
    else {
      all.push(last);
      last = { text: "", notices: [notice] };
    }
  }
  const isFull = failure !== undefined && !hasRoom({ ...last, failure });
  return isFull ? [...all, last, { text: "" }] : [...all, last];
}

/**
 * Sources by the message that shows them; those of the first stand below the last piece of the text, if all
 * have room there.
 */
function packSources(
  sources: readonly ShownSource[],
  text: string,
  target: EndingMeasures,
): (readonly ShownSource[])[] {
  const lengths = sources.map((source) => target.lengthOfSource(source));
  const all = lengths.reduce((sum, length) => sum + length, 0);
  if (target.lengthOf(text) + all <= target.maxLength) return [sources];
  const lists: ShownSource[][] = [[]];
  let length = text.trim() === "" ? 0 : Infinity;
  for (const [index, source] of sources.entries()) {
    const own = lengths[index] ?? 0;
    if (length + own > target.maxLength && (length === Infinity || length > 0)) {
      lists.push([]);
      length = 0;
    }
    lists.at(-1)?.push(source);
    length += own;
  }
  return lists;
}

/** Omits an incomplete table row at the end, which would break the table. */
function withoutHalfRow(text: string): string {
  const lineStart = text.lastIndexOf("\n") + 1;
  const line = text.slice(lineStart).trim();
  return lineStart > 0 && line.startsWith("|") && !(line.length > 1 && line.endsWith("|"))
    ? text.slice(0, lineStart)
    : text;
}

/** Whether files alone make the reply complete. */
export function isBare({ state, notices = [], actions = [], sources = [] }: Ending): boolean {
  return state === "finished" && notices.length === 0 && actions.length === 0 && sources.length === 0;
}

/** The content that one message of a reply shows. */
export interface MessageContent {
  /** Standard Markdown of at most `maxLength`, in the unit of `lengthOf`. Empty while there is no text. */
  readonly text: string;
  readonly state: "waiting" | "streaming" | "finished" | "failed";
  /** A few words on what is being done, shown with `waiting` and `streaming`. */
  readonly status?: string;
  /** The sources below the answer's text. */
  readonly sources?: readonly ShownSource[];
  /** Notices below a finished or failed reply; before its last message only those without room on it. */
  readonly notices?: readonly string[];
  /** Why there is no more, only on the last message of a `failed` reply. */
  readonly failure?: string;
  /** Shows a Retry button, only on the last message of a `failed` reply. */
  readonly retryKey?: string;
  /** Shows a button in warning colours, only on the last message of a `finished` reply. */
  readonly confirm?: ConfirmButton;
  /** The buttons on the last message of a `finished` reply or of one that grows. */
  readonly actions?: readonly ReplyAction[];
  /** Forms that can be opened, only on the last message of a `finished` reply. */
  readonly forms?: readonly FormOffer[];
}

/** How a call that shows something is made. */
export interface CallHow {
  readonly urgency: Urgency;
  readonly signal: AbortSignal;
  /** A call that still waits for room is not sent any more when this aborts. */
  readonly leaves?: AbortSignal | undefined;
}

/**
 * What a chat platform implements so that `createEditingReply` can show a reply in messages that are posted
 * and edited. Failures are ParleyErrors. `retryAfterMs` on one means that the platform limits the rate.
 * Contract: sends nothing after `signal` has aborted, since another process may have resumed the reply.
 */
export interface EditTarget {
  /** The maximum length of a message's text, in the unit of `lengthOf`. */
  readonly maxLength: number;
  /**
   * The same limit for a whole message: a text with notices and failure below it, or the only text of a
   * reply, with nothing below it. Default `maxLength`.
   */
  readonly maxBareLength?: number;
  /** Returns the length of Markdown as the platform counts it (after escaping, in characters or bytes). */
  lengthOf(markdown: string): number;
  /** Length of a source as it is shown, in the same unit; at most `maxLength`. */
  lengthOfSource(source: ShownSource): number;
  /**
   * Length of a message with all that is below its text, in the same unit. One notice or failure alone has
   * room in a message. Default: they have room below each text.
   */
  readonly lengthOfAll?: (content: MessageContent) => number;
  /** A longer text is uploaded whole as `answer.md`. */
  readonly maxMessages: number;
  /**
   * Whether text that comes after files stands below them, in a new message. The status above is removed.
   * Default false.
   */
  readonly isBelowFiles?: boolean;
  /** The minimum time between edits of one reply. */
  readonly minEditIntervalMs: number;
  /**
   * Posts a message, or finds the one that another process posted for the same reply. That one keeps its text
   * where `content` is a placeholder. Resolves to the reference that `edit` takes, as JSON.
   */
  post(content: MessageContent, how: CallHow): Promise<Json>;
  /**
   * Resolves to the reference of the message that shows the content. It is another one where it had to be
   * posted anew.
   * @param confirm called before that; rejects with `stopping` where another process has the reply by now
   */
  edit(ref: Json, content: MessageContent, how: CallHow, confirm: () => Promise<void>): Promise<Json>;
  /**
   * Finds the message after the known ones that an earlier run of this reply has posted without saving it, if
   * there is one. It counts as known from then on. Default: there is none.
   */
  findNext?(): Promise<Json | undefined>;
  /** Deletes a message that has become superfluous. Rejects where it cannot. */
  remove(ref: Json, signal: AbortSignal): Promise<void>;
  /**
   * Posts files below the reply's messages, in as few messages as possible. Repeated for the same array, it
   * posts only what is not shown yet. Resolves to the references of the messages, where they are known.
   */
  upload(files: readonly ReplyFile[], signal: AbortSignal): Promise<readonly Json[]>;
  /** Shows that a reply is coming, in place of a placeholder. */
  readonly sign?: WorkSign;
  /**
   * Returns when streaming text may be shown: 0 for now, or the milliseconds until it is asked again.
   * Infinity means not before the reply ends. "first" means that none of the text is shown yet. Default: now.
   */
  roomInMs?(urgency: "first" | "growth"): number;
  /**
   * Is called once, when the reply has ended, and gives back what the target holds. `isAbandoned` means that
   * the reply has not ended, and another process resumes it.
   */
  close?(isAbandoned: boolean): void;
}

/**
 * A sign of work that is no message and has no words: typing. Contract: never throws; failures are only
 * logged.
 */
export interface WorkSign {
  /** Shows it until it is cleared. Idempotent. */
  show(): void;
  clear(): void;
}

/** The files that a reply has shown, as saved in its address, so that a later run does not repeat them. */
export interface ShownFiles {
  /** Hashes of their bytes, from {@link fileHash}. */
  readonly hashes: readonly string[];
  /** References of the messages that show them, where they are known. */
  readonly refs: readonly Json[];
  /** The file `answer.md`, which the text of another answer replaces. */
  readonly answer?: { readonly hash: string; readonly ref: Json };
}

/** Returns 16 characters that name a file's bytes within one reply. */
export function fileHash({ bytes }: Pick<ReplyFile, "bytes">): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}

/** Reads what an address holds. Returns `undefined` where it is nothing known. */
export function parseShownFiles(saved: Json | undefined): ShownFiles | undefined {
  if (typeof saved !== "object" || saved === null || Array.isArray(saved)) return undefined;
  const { hashes, refs, answer } = saved as Partial<Record<keyof ShownFiles, Json>>;
  if (!Array.isArray(hashes) || !Array.isArray(refs)) return undefined;
  const known = answer as ShownFiles["answer"] | undefined;
  return { hashes: hashes.map(String), refs, ...(known === undefined ? {} : { answer: known }) };
}
