import type { Clock } from "../../../core/clock.ts";
import type { Log } from "../../../core/telemetry.ts";
import { readFenceLine, type Fence } from "../../../support/markdown-fences.ts";
import type { MessageContent } from "../../delivery/message-plan.ts";
import type { CallTiming } from "../transport/lanes.ts";
import type { SlackApi, StreamEnd } from "../transport/web-api.ts";
import type { MessageRef } from "../address.ts";
import { isContentError, slackErrorCode } from "../errors.ts";
import { escapeMarkdown } from "./escape-markdown.ts";
import { toSlackContent } from "./message-blocks.ts";

/** A stream is ended after so long, since Slack ends it about five minutes after its start. */
const lifeMs = 4 * 60_000;

/** The message is edited after such an end. */
const asItIs: Omit<StreamEnd, "mark"> = { goesOn: true, markdown: "", blocks: [] };

interface NativeStreamOptions {
  readonly api: Pick<SlackApi, "appendStream" | "stopStream">;
  readonly ref: MessageRef;
  /** The stream was started with this Markdown. */
  readonly started: string;
  readonly mark: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Returns the beginning of a text that a stream can be started with. It is empty where there is none yet. */
export function streamBeginning(markdown: string): string {
  const prefix = hasLink(markdown) ? "" : committablePrefix(markdown);
  return prefix.trim() === "" ? "" : prefix;
}

/**
 * Returns a stream that was just started: a message that Slack shows as growing. Exactly one of `finish` and
 * `stop` ends it, or Slack does.
 */
export function createNativeStream(options: NativeStreamOptions) {
  const { api, ref, mark, clock, log } = options;
  let sent = options.started;
  let isOpen = true;
  let last: Promise<unknown> = Promise.resolve();
  const cancelTimer = clock.after(lifeMs, () => void stop({ urgency: "final", withinMs: 30_000 }), {
    keepsAlive: false,
  });

  /** Runs calls one after the other, because the timer must not end the stream during another call. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = last.then(work);
    last = Promise.allSettled([result]);
    return result;
  }

  /** Sends nothing more. */
  function close(): void {
    isOpen = false;
    cancelTimer();
  }

  /** Returns what follows the text sent so far, escaped. */
  function restOf(markdown: string): string {
    return escapeMarkdown(markdown).slice(escapeMarkdown(sent).length);
  }

  async function end(content: Omit<StreamEnd, "mark">, timing: CallTiming): Promise<void> {
    await api.stopStream(ref, { ...content, mark }, timing);
    close();
  }

  /** Ends the stream as it is. A stream that cannot be ended is left to Slack. */
  function stop(timing: CallTiming): Promise<void> {
    return inTurn(async () => {
      if (!isOpen) return;
      try {
        await end(asItIs, timing);
      } catch (error) {
        log.info({ err: error }, "Slack stream not ended");
        close();
      }
    });
  }

  /** Returns whether the text continues what was sent, without a link. */
  function takes(markdown: string): boolean {
    return markdown.startsWith(sent) && !hasLink(markdown);
  }

  return {
    /** Returns false where the stream takes no more text, and its message is edited from now on. */
    isOpen: (): boolean => isOpen,
    takes,
    /** Appends what later text does not change. A stream that Slack has ended is closed without an error. */
    append: (markdown: string, timing: CallTiming): Promise<void> =>
      inTurn(async () => {
        const prefix = committablePrefix(markdown);
        if (!isOpen || prefix.length <= sent.length || !prefix.startsWith(sent)) return;
        try {
          await api.appendStream(ref, restOf(prefix), timing);
          sent = prefix;
        } catch (error) {
          if (!isEnded(error) && !isContentError(error)) throw error;
          log.info({ err: error }, "Slack stream ended early: going on by edits");
          // Refused content leaves the stream open, and the edit that follows ends it.
          close();
        }
      }),
    /** Ends the stream with the rest of the content. The result is false where the message must be edited. */
    finish: (content: MessageContent, timing: CallTiming): Promise<boolean> =>
      inTurn(async () => {
        if (!isOpen) return false;
        // A stream unfurls links.
        const isRest = takes(content.text) && content.sources === undefined;
        const { blocks } = toSlackContent(content);
        try {
          const others = blocks.filter(({ type }) => type !== "markdown");
          const rest = { goesOn: false, markdown: restOf(content.text), blocks: others };
          await end(isRest ? rest : asItIs, timing);
          return isRest;
        } catch (error) {
          if (!isEnded(error) && !isContentError(error)) throw error;
          close();
          return false;
        }
      }),
    stop,
    close,
  };
}

/** Returns whether Slack has ended the stream, or the reader has by Slack's own Stop button. */
function isEnded(error: unknown): boolean {
  const code = slackErrorCode(error) ?? "";
  return ["message_not_in_streaming_state", "stopped_by_user", "message_not_found"].includes(code);
}

/**
 * Returns the part of a growing Markdown text that later text does not change, since a stream can only be
 * appended to. At the end a code block, a table, and the text from an unclosed emphasis, code span or bracket
 * on are held back. The time is linear in the length of the text.
 */
export function committablePrefix(markdown: string): string {
  const blockStart = heldBlockStart(markdown);
  if (blockStart !== undefined) return markdown.slice(0, blockStart);
  const paragraphStart = lastParagraphStart(markdown);
  const heldAt = unclosedStart(markdown.slice(paragraphStart));
  return heldAt === undefined ? markdown : markdown.slice(0, paragraphStart + heldAt);
}

/** Returns whether a text has something that Slack would make a link of, because its streams unfurl links. */
export function hasLink(markdown: string): boolean {
  return /:\/\/|\]\(|\]:|www\.|mailto:|[a-z\d-]\.[a-z]{2,}[/?]/i.test(markdown);
}

/** Returns where a code block or table begins that the text ends with, else `undefined`. */
function heldBlockStart(markdown: string): number | undefined {
  let at = 0;
  let fence: Fence | undefined;
  let start: number | undefined;
  let isTable = false;
  for (const line of markdown.split("\n")) {
    const { role, fence: next } = readFenceLine(line, fence);
    fence = next;
    const isRow = role === "none" && /^\s*\|/.test(line);
    if (role === "opener" || (isRow && !isTable)) start = at;
    else if (role === "none" && !isRow && line.trim() !== "") start = undefined;
    isTable = isRow;
    at += line.length + 1;
  }
  return start;
}

function lastParagraphStart(markdown: string): number {
  const start = markdown.lastIndexOf("\n\n");
  return start === -1 ? 0 : start + 2;
}

/** This matches backticks, emphasis and brackets, but no list markers, lone stars or inner underscores. */
const delimiter = /`+|\*+|~~|(?<![\p{L}\p{N}])_+|_+(?![\p{L}\p{N}])|[[\]]/gu;

/** Returns where the first delimiter stands that is not closed. */
function unclosedStart(paragraph: string): number | undefined {
  const open: { readonly mark: string; readonly at: number }[] = [];
  for (const { 0: mark, index: at } of paragraph.matchAll(delimiter)) {
    const top = open.at(-1);
    const isInCode = top?.mark.startsWith("`") === true;
    if (isInCode) {
      if (mark === top.mark) open.pop();
      continue;
    }
    if (mark === "]") {
      const bracket = open.findLastIndex((one) => one.mark === "[");
      // The character after it decides whether it is a link.
      const isDecided = at + 1 < paragraph.length;
      if (bracket !== -1 && isDecided) open.splice(bracket);
      continue;
    }
    const isAlone = /^\*+$/.test(mark) && /\s|^$/.test(paragraph[at + mark.length] ?? "");
    const match = open.findLastIndex((one) => one.mark === mark);
    if (match !== -1 && mark !== "[") open.splice(match);
    else if (!isAlone || at + mark.length === paragraph.length) open.push({ mark, at });
  }
  return open[0]?.at;
}
