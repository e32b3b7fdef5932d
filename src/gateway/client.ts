import type { Clock } from "../core/clock.ts";
import { systemClock } from "../support/clock.ts";
import { type ErrorCode, ParleyError } from "../core/errors.ts";
import type { Gateway, Operation, TranscriptionAnswer, TranscriptionRequest } from "../core/gateway.ts";
import { higherPrice } from "../core/model-price.ts";
import type { Log } from "../core/telemetry.ts";
import { AttemptError } from "./attempt-error.ts";
import type { GatewayContext, GatewayTimeouts } from "./call.ts";
import { createChat } from "./chat.ts";
import { badAnswer, readAnswerBody } from "./read-answer-body.ts";
import { createImageGeneration } from "./image-generation.ts";
import { isFields } from "./error-body.ts";
import type { Headers } from "./failures.ts";
import type { LinkKind } from "./images.ts";
import { createModelCatalogue } from "./model-catalogue.ts";
import type { PriceTable } from "./prices.ts";
import { type RetryRules, defaultRetryRules, withRetries } from "./retry.ts";
import { createScrub, type Scrub } from "./scrub.ts";
import { createTranscription, type StreamedTranscriptionRequest } from "./transcription.ts";
import { createTransport, type Transport } from "./transport.ts";
import type { GatewayOutcome } from "./trouble.ts";
import { createAttemptTimeouts } from "./attempt-timeouts.ts";

/** Settings of {@link createGatewayClient}. */
export interface GatewayClientOptions {
  /** The specification's `{base_url}`; a trailing slash or `/v1` is accepted. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  readonly log: Log;
  readonly timeouts: GatewayTimeouts;
  /** Models that are tried in order when the requested one fails. Default none. */
  readonly fallbacks?: {
    readonly chat?: readonly string[];
    readonly image?: readonly string[];
    readonly transcription?: readonly string[];
  };
  /** Override the prices of the gateway's list and of the specification's tiers. */
  readonly prices?: PriceTable;
  /** Downloads an image that an answer links to. Contract: guards against private hosts, since the URL is untrusted. */
  downloadImage(url: string, signal: AbortSignal, link: LinkKind): Promise<Uint8Array>;
  /**
   * Hosts, with a port where it is not the usual one, whose images are shown when an answer's text links to them as
   * Markdown. The gateway's own host is always one. Other links stay text. Default none.
   */
  readonly imageHosts?: readonly string[];
  /** Larger images are left out with a notice. */
  readonly maxImageBytes: number;
  /** Default 3 attempts, 0.5 s doubling up to 8 s, or as little as half of that. */
  readonly retryRules?: RetryRules;
  /** Waits between attempts. Default: the time of this process. */
  readonly clock?: Pick<Clock, "sleep"> | undefined;
  /** Called with the headers of every response, names in lower case. */
  onHeaders?(headers: Headers): void;
  /** Called with what each call, after all its attempts, showed of the gateway. Not of calls that were aborted. */
  onOutcome?(outcome: GatewayOutcome): void;
  /** Called before a failed attempt is repeated, with the time until then. */
  onRetry?(operation: Operation, code: ErrorCode, delayMs: number): void;
}

/** The four operations of one gateway. */
export interface GatewayClient extends Gateway {
  /** Also accepts audio that is read while it is sent; see `fileSource`. */
  transcribe(
    request: TranscriptionRequest | StreamedTranscriptionRequest,
    signal: AbortSignal,
  ): Promise<TranscriptionAnswer>;
  /**
   * Asks for the list of models once, past the cache, to see whether the gateway responds.
   * @throws ParleyError `gateway-…` where it does not, or responds with an error
   */
  ping(signal: AbortSignal): Promise<void>;
  /** Aborts running calls and closes all connections. */
  close(): Promise<void>;
}

const maxModelListBytes = 8 * 1024 * 1024;
/** Models of the list; further ones are left out. */
const maxModels = 5000;

/**
 * A client of one gateway. It connects with its first call.
 * @throws ParleyError `config` when the base URL is invalid
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
    clock = systemClock,
  } = options;
  const scrub = createScrub(apiKey);
  const transport = createTransport({
    baseUrl,
    apiKey,
    connectMs: timeouts.connectMs,
    scrub,
    log,
    onHeaders: (headers) => options.onHeaders?.(headers),
  });
  const onOutcome = (outcome: GatewayOutcome): void => options.onOutcome?.(outcome);
  const listing = createListing({ transport, scrub, timeouts, retryRules, clock, onOutcome });
  const catalogue = createModelCatalogue({
    fetchRecords: (signal) => listing.fetch(signal),
    prices: options.prices,
    log,
  });
  const context: GatewayContext = {
    transport,
    scrub,
    log,
    timeouts,
    retryRules,
    catalogue,
    onRetry: (operation, code, delayMs) => options.onRetry?.(operation, code, delayMs),
    clock,
    onOutcome,
  };
  const images = {
    downloadImage: (url: string, signal: AbortSignal, link: LinkKind) =>
      options.downloadImage(url, signal, link),
    maxImageBytes,
  };
  const trustedHosts = new Set([new URL(baseUrl).host, ...(options.imageHosts ?? [])]);
  const isTrustedLink = (url: string): boolean => URL.canParse(url) && trustedHosts.has(new URL(url).host);

  return {
    chat: createChat({ ...context, images, isTrustedLink, fallbacks: fallbacks.chat ?? [] }),
    generateImages: createImageGeneration({ ...context, images, fallbacks: fallbacks.image ?? [] }),
    transcribe: createTranscription({ ...context, fallbacks: fallbacks.transcription ?? [] }),
    listModels: (signal) => catalogue.list(signal),
    knownModels: () => catalogue.known(),
    highestPrice(operation, model) {
      const found = [model, ...(fallbacks[operation] ?? [])].map((id) => catalogue.priceOf(id)?.price);
      const prices = found.filter((price) => price !== undefined);
      return prices.length < found.length ? undefined : prices.reduce(higherPrice);
    },
    ping: (signal) => listing.ping(signal),
    async close() {
      catalogue.close();
      await transport.close();
    },
  };
}

/** `GET /v1/models`, with retries. Every first use waits for the list, so its total limit is the first-event limit. */
function createListing({
  transport,
  scrub,
  timeouts: limits,
  retryRules: rules,
  clock,
  onOutcome,
}: {
  readonly transport: Transport;
  readonly scrub: Scrub;
  readonly timeouts: GatewayTimeouts;
  readonly retryRules: RetryRules;
  readonly clock: Pick<Clock, "sleep">;
  readonly onOutcome: (outcome: GatewayOutcome) => void;
}) {
  const operation = "models";
  const totalMs = limits.firstEventMs;
  const attempt = async (signal: AbortSignal, deadlineAt: number) => {
    const timeouts = createAttemptTimeouts(signal, {
      firstEventMs: totalMs,
      idleMs: limits.idleMs,
      deadlineAt,
      totalMs,
    });
    try {
      const response = await transport.send(
        {
          operation,
          model: undefined,
          method: "GET",
          path: "/models",
          headers: { accept: "application/json" },
          body: undefined,
        },
        timeouts,
        signal,
      );
      const context = { operation, model: undefined, timeouts, callerSignal: signal, scrub } as const;
      const body = await readAnswerBody(response, { ...context, maxBytes: maxModelListBytes });
      const records = body.kind === "json" ? recordsOf(body.value) : undefined;
      if (records === undefined) throw badAnswer(context, response.status, "no model list", "");
      return records.slice(0, maxModels);
    } finally {
      timeouts.dispose();
    }
  };
  const toFailure = (error: unknown): unknown => {
    if (!(error instanceof AttemptError)) return error;
    onOutcome({ kind: "failed", operation, error: error.failure });
    return error.failure;
  };
  const listed = (records: readonly unknown[]): readonly unknown[] => {
    const models = records.flatMap((record) =>
      isFields(record) && typeof record["id"] === "string" ? [record["id"]] : [],
    );
    onOutcome({ kind: "listed", models });
    return records;
  };
  const ping = async (signal: AbortSignal): Promise<void> => {
    try {
      listed(await attempt(signal, performance.now() + totalMs));
    } catch (error) {
      throw toFailure(error);
    }
  };
  const fetch = async (signal: AbortSignal): Promise<readonly unknown[]> => {
    const deadlineAt = performance.now() + totalMs;
    try {
      const records = await withRetries(() => attempt(signal, deadlineAt), {
        operation,
        rules,
        deadlineAt,
        maxWaitMs: Number.POSITIVE_INFINITY,
        signal,
        clock,
        onRetry: () => {},
      });
      return listed(records);
    } catch (error) {
      if (signal.aborted) throw new ParleyError("stopping", "the gateway client is closed");
      throw toFailure(error);
    }
  };
  return { fetch, ping };
}

/** The records of `{data: […]}`, of `{models: […]}` or of a bare list. */
function recordsOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value as unknown[];
  if (!isFields(value)) return undefined;
  const list = value["data"] ?? value["models"];
  return Array.isArray(list) ? (list as unknown[]) : undefined;
}
