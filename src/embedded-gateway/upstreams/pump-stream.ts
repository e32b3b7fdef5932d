import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { Log } from "../../core/telemetry.ts";
import { createAnswerMeter, type AnswerLimits, type AnswerPart } from "../../support/answer-limits.ts";
import type { SseWriter } from "../../support/sse-writer.ts";
import { ApiError } from "../api-error.ts";
import { sendLast } from "../exchange.ts";
import type { Target } from "../router.ts";
import { maxImagesPerAnswer } from "../worst-case.ts";
import { createAnswerCounter } from "./count-answer.ts";
import { cutAnswer, cutMessage } from "./cut-answer.ts";
import { readUsage, type UpstreamUsage } from "./upstream-usage.ts";
import { parseAnswer, readAnswerJson, type UpstreamAnswer } from "./upstream-client.ts";
import { errorIn, toBrokenFailure, toStatusFailure } from "./upstream-failure.ts";

/** Target and callbacks of {@link pumpStream}. */
export interface PumpOptions {
  readonly target: Target;
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly limits: AnswerLimits;
  /** Of one event, and of an answer that is not streamed. */
  readonly maxEventBytes: number;
  /** Opens the stream to the client. Called with the first event; no other target is tried after it. */
  open(): SseWriter;
  /** Whether the client asked for the usage chunk. */
  readonly wantsUsage: boolean;
  /** Used when the upstream reports no usage. */
  readonly estimatedPromptTokens: number;
  /** Called once as soon as a part of the answer was forwarded. What the upstream did not report is estimated. */
  onUsage(usage: UpstreamUsage): void;
}

interface Choice {
  readonly index?: unknown;
  readonly finish_reason?: unknown;
  delta?: Record<string, unknown> | null;
}

/**
 * Forwards a streamed answer event by event, with backpressure. An interrupted answer ends with an error event and
 * without `[DONE]`; a finish reason is never made up, except `length` for an answer that is cut at its limits.
 * @throws UpstreamFailure before the first event was forwarded
 */
export async function pumpStream(answer: UpstreamAnswer, options: PumpOptions): Promise<void> {
  const { target } = options;
  const type = String(answer.headers["content-type"] ?? "");
  if (/^application\/json/i.test(type)) return sendWhole(answer, options);

  let stream: SseWriter | undefined;
  let hasRole = false;
  let hasFinished = false;
  let isDone = false;
  let isTooLarge = false;
  let reported: UpstreamUsage | undefined;
  let chars = 0;
  let images = 0;
  const meter = createAnswerMeter(options.limits);
  const counters = new Map<unknown, ReturnType<typeof createAnswerCounter>>();
  const events: EventSourceMessage[] = [];
  const parser = createParser({
    onEvent: (event) => void events.push(event),
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") isTooLarge = true;
    },
    maxBufferSize: options.maxEventBytes,
  });

  const pass = (data: string): Promise<void> | undefined => {
    stream ??= options.open();
    return stream.send(data);
  };
  /** Adds up what a chunk holds. Returns the part that is over its limit. */
  const measure = (choices: readonly Choice[]): AnswerPart | "images" | undefined => {
    let size = 0;
    for (const { index, delta } of choices) {
      let count = counters.get(index);
      if (count === undefined) counters.set(index, (count = createAnswerCounter()));
      const counted = count(delta);
      meter.add("text", counted.textChars);
      meter.add("aside", counted.asideChars);
      images += counted.images;
      size += Math.max(0, counted.textChars) + counted.asideChars + counted.images;
      chars += counted.textChars + counted.asideChars;
    }
    if (size === 0) meter.add("silent", 1);
    if (counters.size > maxChoices) return "silent";
    return images > maxImagesPerAnswer * counters.size ? "images" : meter.exceeded();
  };
  /** Ends the answer here. `chunk` is the one over the limit: only the beginning of its text is sent. */
  const cut = (what: string, chunk: Record<string, unknown>, choices: readonly Choice[]) => {
    options.log.warn({ model: target.publicId, what }, "upstream answer over its limit is cut");
    isDone = true;
    hasFinished = true;
    const last: readonly Choice[] =
      choices.length > 0 ? choices : [...counters.keys()].map((index) => ({ index }));
    const { id, created } = chunk;
    const ended = last.slice(0, maxChoices).map(({ index, delta }) => {
      const content = delta?.["content"];
      const over = typeof content === "string" ? Math.min(0, meter.left("text")) : 0;
      const maxChars = typeof content === "string" ? Math.max(0, content.length + over) : 0;
      return { index: index ?? 0, delta: cutMessage(delta ?? {}, maxChars), finish_reason: "length" };
    });
    return pass(
      JSON.stringify({
        ...(typeof id === "string" ? { id } : {}),
        object: "chat.completion.chunk",
        ...(typeof created === "number" ? { created } : {}),
        model: target.publicId,
        choices: ended.length > 0 ? ended : [{ index: 0, delta: {}, finish_reason: "length" }],
      }),
    );
  };
  const handle = (event: EventSourceMessage): Promise<void> | undefined => {
    if (isDone) return undefined;
    const data = event.data.trim();
    if (data === "[DONE]") {
      isDone = true;
      return undefined;
    }
    const chunk = parseAnswer(target.prefix, data);
    const error = errorIn(chunk) ?? (event.event === "error" ? data : undefined);
    if (error !== undefined) throw toStatusFailure(target.prefix, 502, answer.headers, error);
    const choices = toChoices(chunk["choices"]);
    const over = measure(choices);
    if (!hasRole && choices.length > 0) {
      // Some upstreams omit the role, which some clients require.
      hasRole = true;
      for (const choice of choices) choice.delta = { role: "assistant", ...choice.delta };
    }
    if (over !== undefined) return cut(over, chunk, choices);
    if (choices.some(({ finish_reason: reason }) => typeof reason === "string")) hasFinished = true;
    const usage = readUsage(chunk);
    if (usage !== undefined) reported = usage;
    // Clients that did not request the usage chunk may fail on its empty choices.
    if (usage !== undefined && choices.length === 0 && !options.wantsUsage) return undefined;
    chunk["model"] = target.publicId;
    return pass(JSON.stringify(chunk));
  };

  try {
    const decoder = new TextDecoder();
    for await (const bytes of answer.body as AsyncIterable<Buffer>) {
      meter.add("wire", bytes.length);
      parser.feed(decoder.decode(bytes, { stream: true }));
      for (const event of events) {
        const blocked = handle(event);
        if (blocked !== undefined) await blocked;
      }
      events.length = 0;
      if (isDone) break;
      const over = isTooLarge ? "event" : meter.exceeded();
      if (over !== undefined) {
        if (stream === undefined)
          throw toBrokenFailure(target.prefix, "sent an answer that is too large", "upstream_too_large");
        await cut(over, {}, []);
        break;
      }
    }
    parser.reset({ consume: true });
    for (const event of events) await handle(event);
    if (!isDone && !hasFinished)
      throw toBrokenFailure(target.prefix, "interrupted its answer", "upstream_interrupted");
    if (stream === undefined) throw toBrokenFailure(target.prefix, "sent an empty answer", "upstream_empty");
    await pass("[DONE]");
    stream.end();
  } catch (error) {
    options.signal.throwIfAborted();
    if (stream === undefined) throw toFailure(target, error);
    // The stream has begun, so the error becomes its last event.
    sendLast(stream, JSON.stringify(toFailure(target, error).toClient.toEnvelope()));
  } finally {
    answer.body.destroy();
    // Interrupted answers are billed too.
    if (stream !== undefined) {
      options.onUsage({
        promptTokens: options.estimatedPromptTokens,
        completionTokens: Math.ceil(Math.max(0, chars) / 4),
        ...(images > 0 ? { images } : {}),
        ...reported,
      });
    }
  }
}

/** Answers of one stream. More than `n` can be only a mistake. */
const maxChoices = 16;

function toChoices(value: unknown): Choice[] {
  if (!Array.isArray(value)) return [];
  return value.filter((choice) => typeof choice === "object" && choice !== null) as Choice[];
}

/** Sends an answer that the upstream did not stream as one chunk. */
async function sendWhole(answer: UpstreamAnswer, options: PumpOptions): Promise<void> {
  const { target } = options;
  const json = await readAnswerJson(target.prefix, answer, options.maxEventBytes);
  const error = errorIn(json);
  if (error !== undefined) throw toStatusFailure(target.prefix, 502, answer.headers, error);
  const { choices, usage, ...rest } = json;
  const chunks = toChoices(choices) as Record<string, unknown>[];
  if (chunks.length === 0) throw toBrokenFailure(target.prefix, "sent an empty answer", "upstream_empty");
  const counted = cutAnswer(chunks, createAnswerMeter(options.limits));
  // Recorded before it is sent: a client that does not read its answer pays for it too.
  options.onUsage({
    promptTokens: options.estimatedPromptTokens,
    completionTokens: Math.ceil((counted.textChars + counted.asideChars) / 4),
    ...(counted.images > 0 ? { images: counted.images } : {}),
    ...readUsage(json),
  });
  const head = { ...rest, object: "chat.completion.chunk", model: target.publicId };
  const stream = options.open();
  await stream.send(
    JSON.stringify({
      ...head,
      choices: chunks.map(({ message, ...choice }) => ({ ...choice, delta: message })),
    }),
  );
  if (options.wantsUsage && usage !== undefined) {
    await stream.send(JSON.stringify({ ...head, choices: [], usage }));
  }
  await stream.send("[DONE]");
  stream.end();
}

function toFailure(target: Target, error: unknown) {
  const isFailure = error instanceof Error && "toClient" in error && error.toClient instanceof ApiError;
  if (isFailure) return error as ReturnType<typeof toBrokenFailure>;
  return toBrokenFailure(target.prefix, "interrupted its answer", "upstream_interrupted", error);
}
