import { ParleyError } from "../core/errors.ts";
import type { Gateway, TranscriptionAnswer, TranscriptionRequest } from "../core/gateway.ts";
import type { Log } from "../core/telemetry.ts";
import { AttemptError } from "./attempt-error.ts";
import type { GatewayContext, GatewayTimeouts } from "./call.ts";
import { createChat } from "./chat.ts";
import { badAnswer, readDocument } from "./read-json-body.ts";
import { createImageGeneration } from "./image-generation.ts";
import { isFields } from "./error-body.ts";
import { createModelCatalogue } from "./model-catalogue.ts";
import type { PriceTable } from "./prices.ts";
import { type RetryRules, defaultRetryRules, withRetries } from "./retry.ts";
import { createScrub, type Scrub } from "./scrub.ts";
import { createTranscription, type StreamedTranscriptionRequest } from "./transcription.ts";
import { createTransport, type Transport } from "./transport.ts";
import { createWatch } from "./attempt-timeouts.ts";

export interface GatewayClientOptions {
  /** The specification's {base_url}; a trailing slash or `/v1` is tolerated. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  readonly log: Log;
  readonly timeouts: GatewayTimeouts;
  /** Models asked, in order, when the one asked for does not answer. Default none. */
  readonly fallbacks?: {
    readonly chat?: readonly string[];
    readonly image?: readonly string[];
    readonly transcription?: readonly string[];
  };
  /** Overrides what the gateway's list and the specification's tiers say. */
  readonly prices?: PriceTable;
  /** Fetches a picture that an answer links to. The address is untrusted: the guard is the caller's to bring. */
  downloadImage(url: string, signal: AbortSignal): Promise<Uint8Array>;
  /** Larger pictures are left out with a notice. */
  readonly maxImageBytes: number;
  /** Default 3 attempts, 0.5 s doubling up to 8 s, with full jitter. */
  readonly retryRules?: RetryRules;
}

/** The gateway's four operations over connections of its own. */
export interface GatewayClient extends Gateway {
  /** Also takes audio that is read while it is sent; see `fileSource` and `bytesSource`. */
  transcribe(
    request: TranscriptionRequest | StreamedTranscriptionRequest,
    signal: AbortSignal,
  ): Promise<TranscriptionAnswer>;
  /** Ends what is under way and closes all connections. */
  close(): Promise<void>;
}

const maxModelListBytes = 32 * 1024 * 1024;

/**
 * A client of one gateway. It connects with its first call.
 * @throws ParleyError `config` when the base URL is none
 */
export function createGatewayClient(options: GatewayClientOptions): GatewayClient {
  const {
    baseUrl,
    apiKey,
    timeouts,
    log,
    fallbacks = {},
    maxImageBytes,
    retryRules = defaultRetryRules,
  } = options;
  const scrub = createScrub(apiKey);
  const transport = createTransport({ baseUrl, apiKey, connectMs: timeouts.connectMs, scrub });
  const catalogue = createModelCatalogue({
    fetchRecords: createListing(transport, scrub, timeouts, retryRules),
    prices: options.prices,
    log,
  });
  const context: GatewayContext = { transport, scrub, log, timeouts, retryRules, catalogue };
  const images = {
    downloadImage: (url: string, signal: AbortSignal) => options.downloadImage(url, signal),
    maxImageBytes,
  };

  return {
    chat: createChat({ ...context, images, fallbacks: fallbacks.chat ?? [] }),
    generateImages: createImageGeneration({ ...context, images, fallbacks: fallbacks.image ?? [] }),
    transcribe: createTranscription({ ...context, fallbacks: fallbacks.transcription ?? [] }),
    listModels: (signal) => catalogue.list(signal),
    knownModels: () => catalogue.known(),
    async close() {
      catalogue.close();
      await transport.close();
    },
  };
}

/** GET /v1/models, with retries. A list without end would hold up every first use, so it gets the first-event time. */
function createListing(
  transport: Transport,
  scrub: Scrub,
  timeouts: GatewayTimeouts,
  rules: RetryRules,
): (signal: AbortSignal) => Promise<readonly unknown[]> {
  const operation = "models";
  const attempt = async (signal: AbortSignal, deadlineAt: number) => {
    const totalMs = timeouts.firstEventMs;
    const watch = createWatch(signal, {
      firstEventMs: totalMs,
      idleMs: timeouts.idleMs,
      deadlineAt,
      totalMs,
    });
    try {
      const response = await transport.send(
        {
          operation,
          model: undefined,
          method: "GET",
          path: "/v1/models",
          headers: { accept: "application/json" },
          body: undefined,
        },
        watch,
        signal,
      );
      const context = { operation, model: undefined, watch, callerSignal: signal, scrub } as const;
      const document = await readDocument(response, { ...context, maxBytes: maxModelListBytes });
      const records = document.kind === "json" ? recordsOf(document.value) : undefined;
      if (records === undefined) throw badAnswer(context, response.status, "no model list", "");
      return records;
    } finally {
      watch.dispose();
    }
  };
  return async (signal) => {
    const deadlineAt = Date.now() + timeouts.firstEventMs;
    try {
      return await withRetries(() => attempt(signal, deadlineAt), {
        operation,
        rules,
        deadlineAt,
        maxWaitMs: Number.POSITIVE_INFINITY,
        signal,
        onRetry: () => {},
      });
    } catch (error) {
      if (signal.aborted) throw new ParleyError("stopping", "the gateway client was closed");
      throw error instanceof AttemptError ? error.failure : error;
    }
  };
}

/** The records of `{data: […]}`, of `{models: […]}` or of a bare list. */
function recordsOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value as unknown[];
  if (!isFields(value)) return undefined;
  const list = value["data"] ?? value["models"];
  return Array.isArray(list) ? (list as unknown[]) : undefined;
}
