import type { ReplyFile } from "../../core/platform.ts";
import type { ReplyAction } from "../../core/reply-actions.ts";
import type { EditTarget, MessageContent } from "./edit-target.ts";
import { splitMarkdown } from "./split-markdown.ts";
import { translate } from "../../words/translate.ts";

type Measures = Pick<EditTarget, "maxLength" | "maxBareLength" | "lengthOf" | "maxMessages">;

/** How a reply ends: what its last message shows besides the text. */
export type Ending = Pick<
  MessageContent,
  "notices" | "failure" | "retryKey" | "confirm" | "actions" | "forms"
> & {
  readonly state: "finished" | "failed";
};

/** The final messages of a reply. */
export interface EndingPlan {
  readonly contents: readonly MessageContent[];
  /** The whole answer, where it does not fit into `maxMessages`. */
  readonly file?: ReplyFile;
}

/** What a reply that grows shows besides its text. */
export interface GrowingExtras {
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
