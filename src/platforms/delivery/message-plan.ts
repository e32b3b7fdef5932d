import type { ReplyFile } from "../../core/platform.ts";
import type { EditTarget, MessageContent } from "./edit-target.ts";
import { splitMarkdown } from "./split-markdown.ts";

type Measures = Pick<EditTarget, "maxLength" | "lengthOf" | "maxMessages">;

/** How a reply ends: what its last message shows beside the text. */
export type Ending = Pick<MessageContent, "notices" | "failure" | "retryKey" | "confirm"> & {
  readonly state: "finished" | "failed";
};

/** What the messages of an ended reply show. */
export interface EndingPlan {
  readonly contents: readonly MessageContent[];
  /** The whole answer, where it is longer than its messages. */
  readonly file?: ReplyFile;
}

/**
 * The messages of a reply whose text is still growing: all but the last are done. What is past `maxMessages` waits
 * for the end. Always at least one message.
 */
export function planStreaming(text: string, status: string | undefined, target: Measures): MessageContent[] {
  const all = splitMarkdown(withoutHalfRow(text), target);
  const pieces = all.slice(0, target.maxMessages);
  const said = all.length > pieces.length ? "The answer goes on; all of it will be in a file" : status;
  const words = said === undefined ? {} : { status: said };
  if (pieces.length === 0) return [{ text: "", state: "waiting", ...words }];
  return pieces.map((piece, index) =>
    index < pieces.length - 1
      ? { text: piece, state: "finished" }
      : { text: piece, state: "streaming", ...words },
  );
}

/** The messages of an ended reply; the last one carries notices, failure and Retry. Always at least one. */
export function planEnding(text: string, ending: Ending, target: Measures): EndingPlan {
  const pieces = splitMarkdown(text, target);
  if (pieces.length <= target.maxMessages) return { contents: withEnding(pieces, ending) };
  const notice = "The answer is longer than its messages; all of it is in the file answer.md.";
  return {
    contents: withEnding(pieces.slice(0, target.maxMessages), {
      ...ending,
      notices: [...(ending.notices ?? []), notice],
    }),
    file: {
      name: "answer.md",
      mediaType: "text/markdown",
      bytes: new TextEncoder().encode(text),
      altText: "The whole answer as a Markdown file",
    },
  };
}

/** The messages of an ended reply, however many they are: for when a file cannot be had. */
export function planEndingWithoutFile(text: string, ending: Ending, target: Measures): EndingPlan {
  const lengthOf = (markdown: string) => target.lengthOf(markdown);
  return planEnding(text, ending, { maxLength: target.maxLength, lengthOf, maxMessages: Infinity });
}

function withEnding(pieces: readonly string[], ending: Ending): MessageContent[] {
  const before = pieces.slice(0, -1).map((text): MessageContent => ({ text, state: "finished" }));
  return [...before, { ...ending, text: pieces.at(-1) ?? "", notices: ending.notices ?? [] }];
}

/** A row of a table is shown when it is whole: half of one tears the table apart. */
function withoutHalfRow(text: string): string {
  const lineStart = text.lastIndexOf("\n") + 1;
  const line = text.slice(lineStart).trim();
  return lineStart > 0 && line.startsWith("|") && !(line.length > 1 && line.endsWith("|"))
    ? text.slice(0, lineStart)
    : text;
}
