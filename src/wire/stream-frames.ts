import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { setImmediate } from "node:timers/promises";
import { createEventBody } from "./event-body.ts";
import type { Body, Frame, Output } from "./frame.ts";
import { createOpenText } from "./open-text.ts";
import { parseJson } from "./transport.ts";

/** A larger chunk is never a ping. */
const maxPingBytes = 1024;

/**
 * Splits a body into frames, however it arrives in chunks. Detects the format by the first character that is
 * not blank: `{` or `[` is JSON (one document, or one a line), `<` a web page, anything else an event stream.
 * Content types are ignored, since they are often wrong. After a frame that is neither `json` nor `done`
 * nothing is read any more.
 * @param maxFrameChars limit of one frame
 */
export function createFrameReader(maxFrameChars: number) {
  // This is faster than a streaming TextDecoder.
  const decoder = new StringDecoder("utf8");
  let frames: Frame[] = [];
  let body: Body | undefined;
  let hasGrown = false;
  let isOver = false;
  const out: Output = {
    emit(frame) {
      if (isOver) return;
      frames.push(frame);
      isOver = frame.kind !== "json" && frame.kind !== "done";
    },
    isOver: () => isOver,
  };

  const push = (text: string) => {
    let rest = text;
    if (body === undefined) {
      // This skips a byte order mark, and blank lines that keep the connection open.
      rest = rest.trimStart();
      if (rest === "") return;
      body = bodyFor(rest.charCodeAt(0), out, maxFrameChars);
    }
    if (!isOver) body.push(rest);
  };
  const take = () => {
    const taken = frames;
    frames = [];
    return taken;
  };

  return {
    push(chunk: Uint8Array): Frame[] {
      if (chunk.length > maxPingBytes) hasGrown = true;
      push(decoder.write(chunk));
      return take();
    },
    /** Ends the body. An unfinished frame is read as it is. */
    end(): Frame[] {
      push(decoder.end());
      if (!isOver) body?.end();
      return take();
    },
    /** Whether data since the last call may be part of a large frame, and not only pings and padding. */
    hasGrown(): boolean {
      const had = hasGrown;
      hasGrown = false;
      return had;
    },
  };
}

function bodyFor(firstCharacter: number, out: Output, maxChars: number): Body {
  if (firstCharacter === 0x7b || firstCharacter === 0x5b) return createJsonBody(out, maxChars);
  if (firstCharacter === 0x3c) return createPageBody(out);
  return createEventBody(out, maxChars);
}

/** Reads one JSON document, or one for each line when the first line is valid by itself. */
function createJsonBody({ emit, isOver }: Output, maxChars: number): Body {
  // The text is joined only at the end of a line or body, since appending and searching would be quadratic.
  const open = createOpenText();
  let mode: "unknown" | "lines" | "document" = "unknown";

  const emitValue = (text: string): boolean => {
    const value = parseJson(text);
    if (value === undefined) return false;
    if (Array.isArray(value)) {
      for (const item of value as unknown[]) emit({ kind: "json", value: item, isEvent: false });
    } else emit({ kind: "json", value, isEvent: false });
    return true;
  };

  const endLine = (line: string) => {
    const text = line.trim();
    if (text === "") return;
    if (text === "[DONE]") return emit({ kind: "done" });
    if (mode === "unknown") {
      mode = "lines";
      if (emitValue(text)) return;
      mode = "document";
      open.add(`${line}\n`);
      return;
    }
    if (!emitValue(text)) emit({ kind: "junk", text: text.slice(0, 2000) });
  };

  return {
    push(text) {
      let start = 0;
      while (!isOver()) {
        const lineEnd = mode === "document" ? -1 : text.indexOf("\n", start);
        if (lineEnd === -1) break;
        open.add(text.slice(start, lineEnd));
        start = lineEnd + 1;
        endLine(open.take());
      }
      open.add(text.slice(start));
      if (open.chars() > maxChars) emit({ kind: "too-large" });
    },
    end() {
      const text = open.take().trim();
      if (text === "") return;
      if (text === "[DONE]") emit({ kind: "done" });
      else if (!emitValue(text)) emit({ kind: "junk", text: text.slice(0, 2000) });
    },
  };
}

function createPageBody({ emit }: Output): Body {
  let head = "";
  return {
    push(text) {
      if (head.length < 4000) head += text.slice(0, 4000);
    },
    end() {
      emit({ kind: "page", text: head });
    },
  };
}

/** So many bytes of an answer are read at once. What is gathered for a moment may be a megabyte. */
const sliceBytes = 16 * 1024;
/** After so many milliseconds of reading others have their turn. */
const turnMs = 10;

/** Cuts a packet into slices. If reading them takes long, other work of the process is done in between. */
export async function* inSlices(packet: Uint8Array): AsyncIterable<Uint8Array> {
  let turnedAt = performance.now();
  for (let at = 0; at < packet.length; at += sliceBytes) {
    if (performance.now() - turnedAt > turnMs) {
      await setImmediate();
      turnedAt = performance.now();
    }
    yield packet.subarray(at, at + sliceBytes);
  }
}

/** Backpressure starts at this many unread bytes or packets. */
const maxQueuedBytes = 1024 * 1024;
const maxQueuedPackets = 1000;
/** This many bytes at once are a picture and not words. */
const pictureBytes = 16 * 1024;
/** For this long after a picture's bytes nothing is gathered, since the picture would arrive later. */
const pictureMs = 250;

/**
 * Reads a body by packets and loses no data. The async iterator of a stream would discard its buffer when the
 * connection is lost, and with it the last text before an interruption.
 */
export function createChunkReader(body: Readable) {
  let queue: Uint8Array[] = [];
  let queuedBytes = 0;
  let ending: { readonly error?: unknown } | undefined;
  let wake: (() => void) | undefined;
  /** When the last packet was returned. */
  let returnedAt = Number.NEGATIVE_INFINITY;
  /** When so many bytes were returned at once that they belong to a picture. */
  let pictureAt = Number.NEGATIVE_INFINITY;

  const signal = () => {
    wake?.();
    wake = undefined;
  };
  const woken = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });
  const gather = async (ms: number) => {
    body.pause();
    const timer = setTimeout(signal, ms);
    await woken();
    clearTimeout(timer);
    body.resume();
    // Packets that wait in the connection are read in the next poll phase.
    await setImmediate();
  };
  const onData = (chunk: Uint8Array) => {
    queue.push(chunk);
    queuedBytes += chunk.length;
    if (queuedBytes > maxQueuedBytes || queue.length > maxQueuedPackets) body.pause();
    signal();
  };
  const endWith = (how: { readonly error?: unknown }) => {
    ending ??= how;
    // This reads what a paused body still holds when it fails.
    for (let chunk = readRest(); chunk !== null; chunk = readRest()) queue.push(chunk);
    signal();
  };
  const readRest = () => body.read() as Uint8Array | null;
  body.on("data", onData);
  body.on("end", () => endWith({}));
  body.on("error", (error) => endWith({ error }));
  body.on("close", () => {
    // This comes nearly always after `end`, so the costly error is created only when it is needed.
    if (ending === undefined) endWith({ error: new Error("the body was closed") });
  });

  const stop = () => {
    body.off("data", onData);
    queue = [];
  };

  return {
    /**
     * Returns what has arrived since the last call, at least one packet, or `undefined` at the end. A stream
     * error is thrown after all packets that arrived before it. With `gatherMs`, packets are gathered for
     * that long after the last call returned, which has passed already in a slow stream. Meanwhile the body
     * is paused. Packets that wait in the connection cost nothing, and each that is read wakes the process.
     * An end that was noticed, an error and a picture do not wait.
     */
    async next(gatherMs = 0): Promise<Uint8Array | undefined> {
      if (gatherMs > 0 && ending === undefined && queuedBytes < pictureBytes) {
        const now = performance.now();
        const leftMs = returnedAt + gatherMs - now;
        if (leftMs > 0 && now > pictureAt + pictureMs) await gather(leftMs);
      }
      if (queue.length === 0 && ending === undefined) await woken();
      const chunk = queue.length > 1 ? Buffer.concat(queue) : queue[0];
      if (chunk !== undefined) {
        queue = [];
        queuedBytes = 0;
        returnedAt = performance.now();
        if (chunk.length >= pictureBytes) pictureAt = returnedAt;
        if (body.isPaused()) body.resume();
        return chunk;
      }
      if (ending !== undefined && "error" in ending) throw ending.error;
      return undefined;
    },
    /** Stops reading. The rest is discarded for up to `ms`, so that the connection can be reused. */
    leave(ms: number): void {
      stop();
      if (ending !== undefined) return;
      const timer = setTimeout(() => body.destroy(), ms);
      timer.unref();
      body.once("close", () => clearTimeout(timer));
      body.resume();
    },
    /** Stops reading and closes the connection, so that the server notices at once. */
    cancel(): void {
      stop();
      if (ending === undefined) body.destroy();
    },
  };
}

/** How large a chat answer may become. Only an answer that ignores its token limit meets these bounds. */
interface AnswerLimits {
  /** The limit of the text that people see. */
  readonly textChars: number;
  /** The limit of reasoning, tool calls and refusals, which some services count separately. */
  readonly asideChars: number;
  /** The highest number of events without any content. */
  readonly silentEvents: number;
  /** The limit of the whole body as it is sent. */
  readonly wireBytes: number;
}

/** The longest tokens in use have 128 characters of white space, so 64 is above any average. */
const charsPerToken = 64;
/** How many tokens reasoning may have beyond the limit of the answer. */
const reasoningTokens = 65_536;
/** The size of an event with one token. */
const wireBytesPerToken = 1024;
const spareChars = 64 * 1024;

/** The limits of an answer with `maxTokens`. `imageBytes` is the limit for its images on the wire. */
export function answerLimitsOf(maxTokens: number, imageBytes: number): AnswerLimits {
  const tokens = maxTokens + reasoningTokens;
  return {
    textChars: maxTokens * charsPerToken + spareChars,
    asideChars: tokens * charsPerToken,
    silentEvents: tokens,
    wireBytes: tokens * wireBytesPerToken + imageBytes,
  };
}

/** The parts of an answer that have limits. */
type AnswerPart = "text" | "aside" | "silent" | "wire";

/** Adds up the parts of one answer. */
export function createAnswerMeter(limits: AnswerLimits) {
  const left: Record<AnswerPart, number> = {
    text: limits.textChars,
    aside: limits.asideChars,
    silent: limits.silentEvents,
    wire: limits.wireBytes,
  };
  let exceeded: AnswerPart | undefined;
  return {
    add: (part: AnswerPart, amount: number): void => {
      left[part] -= amount;
      if (left[part] < 0) exceeded ??= part;
    },
    /** The first part that is over its limit. */
    exceeded: () => exceeded,
  };
}
