import { createHash } from "node:crypto";
import { isParleyError } from "../../../src/core/errors.ts";
import type { AnswerSource, ChatEvent, ChatRequest } from "../../../src/core/gateway.ts";
import type { Log } from "../../../src/core/telemetry.ts";
import { createGatewayClient } from "../../../src/gateway/client.ts";
import { createScaledClock } from "../../support/scaled-clock.ts";

/** The time of the client, which is also that of the scripted gateway. */
export const clock = createScaledClock(1);

/** Creates a log that keeps its lines, so that they can be searched for secrets. */
export function createTestLog(): Log & { readonly lines: string[] } {
  const lines: string[] = [];
  const write = (fields: Readonly<Record<string, unknown>>, message: string) => {
    lines.push(`${message} ${JSON.stringify(fields)}`);
  };
  const log = { lines, debug: write, info: write, warn: write, error: write, child: () => log };
  return log;
}

export const apiKey = "sk-test-0123456789abcdef";

/** The shortest picture there is: one pixel. */
export const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
export const pixelUri = `data:image/png;base64,${pixel.toString("base64")}`;

/** Creates a client with limits that are short enough for tests, and hardly any delay between attempts. */
export function createTestClient(
  baseUrl: string,
  options: Partial<Parameters<typeof createGatewayClient>[0]> = {},
): ReturnType<typeof createGatewayClient> {
  return createGatewayClient({
    baseUrl,
    apiKey,
    log: createTestLog(),
    timeouts: { connectMs: 1000, firstEventMs: 2000, idleMs: 1000, totalMs: 10_000 },
    downloadImage: () => Promise.resolve(pixel),
    maxImageBytes: 1_000_000,
    retryRules: { maxAttempts: 3, baseDelayMs: 2, maxDelayMs: 5 },
    clock,
    ...options,
  });
}

export const hello: ChatRequest = { model: "m", messages: [{ role: "user", content: "hello" }] };
export const never = (): AbortSignal => new AbortController().signal;

/** The result of an answer, whichever way it was cut. */
export interface Outcome {
  readonly text: string;
  readonly reasoning?: string;
  /** The media types, in order. */
  readonly images?: readonly string[];
  readonly notices?: readonly string[];
  readonly finish?: string;
  readonly sources?: readonly AnswerSource[];
  readonly error?: string;
  /** The pause that the gateway asks for. */
  readonly retryAfterMs?: number;
}

/** Reads an answer to its end, and says how it ended. */
export async function outcomeOf(
  events: AsyncIterable<ChatEvent>,
): Promise<Outcome & { readonly last?: ChatEvent; readonly says?: string }> {
  let text = "";
  let reasoning = "";
  const images: string[] = [];
  const hashes = new Set<string>();
  const notices: string[] = [];
  let last: ChatEvent | undefined;
  let error: string | undefined;
  let retryAfterMs: number | undefined;
  let says: string | undefined;
  try {
    for await (const event of events) {
      if (last?.kind === "finish") throw new Error("an event after finish");
      last = event;
      if (event.kind === "text") text += event.text;
      else if (event.kind === "reasoning") reasoning += event.text;
      else if (event.kind === "retract") {
        reasoning += text;
        text = "";
      } else if (event.kind === "notice") notices.push(event.text);
      else if (event.kind === "image") {
        images.push(event.image.mediaType);
        hashes.add(createHash("sha256").update(event.image.bytes).digest("hex"));
      }
    }
    if (last?.kind !== "finish") throw new Error("ended without finish: a silent success");
    if (hashes.size !== images.length) throw new Error("the same image twice");
  } catch (thrown) {
    if (!isParleyError(thrown)) throw thrown;
    error = thrown.code;
    retryAfterMs = thrown.retryAfterMs;
    says = thrown.detail["gatewayMessage"]?.toString();
  }
  return {
    text,
    ...(reasoning !== "" && { reasoning }),
    ...(images.length > 0 && { images }),
    ...(notices.length > 0 && { notices }),
    ...(last?.kind === "finish" && { finish: last.reason, last }),
    ...(last?.kind === "finish" && last.sources !== undefined && { sources: last.sources }),
    ...(error !== undefined && { error }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(says !== undefined && { says }),
  };
}

/** Returns the error that a promise or an answer ends with. */
export async function failureOf(work: Promise<unknown> | AsyncIterable<unknown>): Promise<unknown> {
  try {
    if (Symbol.asyncIterator in work) for await (const _ of work);
    else await work;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}
