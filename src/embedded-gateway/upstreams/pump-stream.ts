import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { SseWriter } from "../../support/sse-writer.ts";
import { ApiError } from "../api-error.ts";
import type { Target } from "../router.ts";
import { maxAnswerBytes } from "./forward.ts";
import { readUsage, type UpstreamUsage } from "./upstream-usage.ts";
import { readAnswerJson, type UpstreamAnswer } from "./upstream-client.ts";
import { errorIn, toBrokenFailure, toStatusFailure } from "./upstream-failure.ts";

/** Target and callbacks of {@link pumpStream}. */
export interface PumpOptions {
  readonly target: Target;
  readonly signal: AbortSignal;
  /** Opens the stream to the client. Called with the first event; no other target is tried after it. */
  open(): SseWriter;
  /** Whether the client asked for the usage chunk. */
  readonly wantsUsage: boolean;
  /** Used when the upstream reports no usage. */
  readonly estimatedPromptTokens: number;
  onUsage(reported: UpstreamUsage): void;
}

interface Choice {
  readonly finish_reason?: unknown;
  delta?: { readonly role?: unknown; readonly content?: unknown } | null;
}

/**
 * Forwards a streamed answer event by event, with backpressure. An interrupted answer ends with an error event and
 * without `[DONE]`; a finish reason is never made up.
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
  let reported: UpstreamUsage | undefined;
  let chars = 0;
  const events: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => void events.push(event), maxBufferSize: maxAnswerBytes });

  const pass = (data: string): Promise<void> | undefined => {
    stream ??= options.open();
    return stream.send(data);
  };
  const handle = (event: EventSourceMessage): Promise<void> | undefined => {
    const data = event.data.trim();
    if (data === "[DONE]") {
      isDone = true;
      return undefined;
    }
    const chunk = parseChunk(target, data);
    const error = errorIn(chunk) ?? (event.event === "error" ? data : undefined);
    if (error !== undefined) throw toStatusFailure(target.prefix, 502, answer.headers, error);
    const choices = Array.isArray(chunk["choices"]) ? (chunk["choices"] as Choice[]) : [];
    if (!hasRole && choices.length > 0) {
      // Some upstreams omit the role, which some clients require.
      hasRole = true;
      for (const choice of choices) choice.delta = { role: "assistant", ...choice.delta };
    }
    if (choices.some(({ finish_reason: reason }) => typeof reason === "string")) hasFinished = true;
    const usage = readUsage(chunk);
    if (usage !== undefined) reported = usage;
    // Clients that did not request the usage chunk may fail on its empty choices.
    if (usage !== undefined && choices.length === 0 && !options.wantsUsage) return undefined;
    for (const { delta } of choices) chars += typeof delta?.content === "string" ? delta.content.length : 0;
    chunk["model"] = target.publicId;
    return pass(JSON.stringify(chunk));
  };

  try {
    const decoder = new TextDecoder();
    for await (const bytes of answer.body as AsyncIterable<Buffer>) {
      parser.feed(decoder.decode(bytes, { stream: true }));
      for (const event of events) {
        const blocked = handle(event);
        if (blocked !== undefined) await blocked;
      }
      events.length = 0;
      if (isDone) break;
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
    const failure = toFailure(target, error).toClient;
    void stream.send(JSON.stringify(failure.toEnvelope()));
    stream.end();
  } finally {
    answer.body.destroy();
    // Interrupted answers are billed too.
    if (stream !== undefined) {
      options.onUsage(
        reported ?? { promptTokens: options.estimatedPromptTokens, completionTokens: Math.ceil(chars / 4) },
      );
    }
  }
}

/** Sends an answer that the upstream did not stream as one chunk. */
async function sendWhole(answer: UpstreamAnswer, options: PumpOptions): Promise<void> {
  const { target } = options;
  const json = await readAnswerJson(target.prefix, answer, maxAnswerBytes);
  const error = errorIn(json);
  if (error !== undefined) throw toStatusFailure(target.prefix, 502, answer.headers, error);
  const { choices, usage, ...rest } = json;
  const chunks = Array.isArray(choices) ? (choices as Record<string, unknown>[]) : [];
  if (chunks.length === 0) throw toBrokenFailure(target.prefix, "sent an empty answer", "upstream_empty");
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
  options.onUsage(readUsage(json) ?? {});
}

function parseChunk(target: Target, data: string): Record<string, unknown> {
  try {
    const chunk: unknown = JSON.parse(data);
    if (typeof chunk === "object" && chunk !== null) return chunk as Record<string, unknown>;
  } catch (cause) {
    throw toBrokenFailure(target.prefix, "sent an event that is not JSON", "upstream_bad_answer", cause);
  }
  throw toBrokenFailure(target.prefix, "sent an event that is not an object", "upstream_bad_answer");
}

function toFailure(target: Target, error: unknown) {
  const isFailure = error instanceof Error && "toClient" in error && error.toClient instanceof ApiError;
  if (isFailure) return error as ReturnType<typeof toBrokenFailure>;
  return toBrokenFailure(target.prefix, "interrupted its answer", "upstream_interrupted", error);
}
