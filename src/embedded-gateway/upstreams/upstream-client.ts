import type { Readable } from "node:stream";
import type { Agent, Dispatcher } from "undici";
import { isExcessiveJson } from "../../support/json-limits.ts";
import { ApiError } from "../api-error.ts";
import type { UpstreamConfig } from "../settings.ts";
import { toBrokenFailure, toConnectionFailure, toStatusFailure } from "./upstream-failure.ts";

/** An answer with a success status and an unread body. */
export type UpstreamAnswer = Dispatcher.ResponseData;

/** One request to an upstream. */
export interface UpstreamRequest {
  readonly method: "GET" | "POST";
  /** Below the base URL, e.g. `/chat/completions`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | Readable;
  readonly requestId: string;
  readonly signal: AbortSignal;
}

/** An HTTP client of one upstream, with its own connections. */
export interface UpstreamClient {
  /** Resolves with a success status. @throws UpstreamFailure for all else; the signal's reason when it aborts */
  request(request: UpstreamRequest): Promise<UpstreamAnswer>;
  close(): Promise<void>;
}

const maxErrorBytes = 64 * 1024;

/** Connects with the first request. Redirects are not followed, so the key is sent to no other host. */
export function createUpstreamClient(prefix: string, config: UpstreamConfig): UpstreamClient {
  const base = new URL(config.baseUrl);
  const basePath = base.pathname.replace(/\/$/, "");
  let opened: Promise<Agent> | undefined;
  const open = async (): Promise<Agent> => {
    const { Agent } = await import("undici");
    return new Agent({
      connect: { timeout: 10_000 },
      connections: 2048,
      pipelining: 1,
      maxHeaderSize: 16 * 1024,
    });
  };
  const fixedHeaders = {
    ...config.headers,
    ...(config.apiKey === undefined ? {} : { authorization: `Bearer ${config.apiKey}` }),
    "user-agent": "parley-gateway",
  };

  return {
    request: async ({ method, path, headers, body, requestId, signal }) => {
      const agent = await (opened ??= open());
      let answer: UpstreamAnswer;
      try {
        answer = await agent.request({
          origin: base.origin,
          path: basePath + path,
          method,
          headers: { ...fixedHeaders, "x-request-id": requestId, ...headers },
          body: body ?? null,
          signal,
          headersTimeout: config.timeoutMs,
          bodyTimeout: config.timeoutMs,
        });
      } catch (error) {
        signal.throwIfAborted();
        // Of the client's form, which failed while it was sent on.
        if (error instanceof ApiError) throw error;
        throw toConnectionFailure(prefix, error);
      }
      // Readers see errors themselves; one after they have stopped reading must not end the process.
      answer.body.on("error", () => {});
      if (answer.statusCode >= 200 && answer.statusCode < 300) return answer;
      const text = await readText(answer, maxErrorBytes).catch(() => "");
      throw toStatusFailure(prefix, answer.statusCode, answer.headers, text);
    },
    close: async () => {
      const agent = await opened;
      await agent?.destroy();
    },
  };
}

/** The body as a JSON object. @throws UpstreamFailure when it is none, too large or interrupted */
export async function readAnswerJson(
  prefix: string,
  answer: UpstreamAnswer,
  maxBytes: number,
): Promise<Record<string, unknown>> {
  return parseAnswer(prefix, await readAnswerText(prefix, answer, maxBytes));
}

/** The body as text. @throws UpstreamFailure when it is too large or interrupted */
export async function readAnswerText(
  prefix: string,
  answer: UpstreamAnswer,
  maxBytes: number,
): Promise<string> {
  try {
    return await readText(answer, maxBytes);
  } catch (error) {
    if (error instanceof RangeError)
      throw toBrokenFailure(prefix, "sent an answer that is too large", "upstream_too_large", error);
    throw toBrokenFailure(prefix, "interrupted its answer", "upstream_interrupted", error);
  }
}

/** Parses a body. @throws UpstreamFailure when it is not a JSON object */
export function parseAnswer(prefix: string, text: string): Record<string, unknown> {
  if (isExcessiveJson(text))
    throw toBrokenFailure(prefix, "sent an answer that is too complex", "upstream_bad_answer");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw toBrokenFailure(prefix, "sent an answer that is not JSON", "upstream_bad_answer", error);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw toBrokenFailure(prefix, "sent an answer that is not an object", "upstream_bad_answer");
}

async function readText(answer: UpstreamAnswer, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new RangeError(`answer over ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes).toString("utf8");
}
