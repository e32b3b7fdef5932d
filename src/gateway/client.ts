import type { Clock } from "../core/clock.ts";
import { codeOf, ParleyError, type ErrorCode } from "../core/errors.ts";
import {
  type TimedWords,
  type TranscriptionAnswer,
  type TranscriptionRequest,
  type Gateway,
  type ModelPrice,
  type Operation,
  higherPrice,
  type ChatEvent,
  type ChatRequest,
  type Usage,
} from "../core/gateway.ts";
import {
  type Log,
  type Meter,
  type Span,
  type SpanFields,
  type Tracer,
  currentTurn,
  inTurn,
  noSpan,
} from "../core/telemetry.ts";
import { isVisible, withoutControls } from "../support/text.ts";
import { systemClock } from "../support/clock.ts";
import { AttemptError, isFields, type Headers, createScrub } from "../wire/failures.ts";
import { type GatewayOutcome } from "./trouble.ts";
import { type AttemptTimeouts, type RetryRules, defaultRetryRules } from "../wire/attempt.ts";
import { type GatewayContext, runCall, type GatewayTimeouts, checkRequest } from "./call.ts";
import { createChat } from "./chat.ts";
import { readUsage } from "../wire/completion-chunk.ts";
import { createImageGeneration } from "./image-generation.ts";
import type { LinkKind } from "./images.ts";
import { createModelCatalogue } from "./model-catalogue.ts";
import { type PriceTable, toUsage } from "../wire/prices.ts";
import { badAnswer, readAnswerBody, createTransport, toForm, toVersionedUrl } from "../wire/transport.ts";
import { transcriptionSchema } from "../wire/schemas.ts";

interface GatewayClientOptions {
  /** The specification's `{base_url}`. A trailing slash or `/v1` is accepted. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  readonly log: Log;
  readonly timeouts: GatewayTimeouts;
  /** The models that are tried in order when the requested one fails. Default none. */
  readonly fallbacks?: {
    readonly chat?: readonly string[];
    readonly image?: readonly string[];
    readonly transcription?: readonly string[];
  };
  /** Prices that override the gateway's list and the specification's tiers. */
  readonly prices?: PriceTable;
  /** Downloads a linked image. Contract: guards against private hosts, since the URL is untrusted. */
  downloadImage(url: string, signal: AbortSignal, link: LinkKind): Promise<Uint8Array>;
  /**
   * Hosts, with a port where it is not the usual one, whose images are shown when an answer's text links to
   * them as Markdown. The gateway's own host always counts. Other links stay text. Default none.
   */
  readonly imageHosts?: readonly string[];
  /** Larger images are left out with a notice. */
  readonly maxImageBytes: number;
  /** Default 3 attempts, 0.5 s doubling up to 8 s, or as little as half of that. */
  readonly retryRules?: RetryRules;
  /** Ends and repeats attempts. Default: the time of this process. */
  readonly clock?: Pick<Clock, "sleep" | "monotonic" | "after"> | undefined;
  /** Is called with the headers of every response, with names in lower case. */
  onHeaders?(headers: Headers): void;
  /** Is called with what each call showed of the gateway after all attempts, except aborted calls. */
  onOutcome?(outcome: GatewayOutcome): void;
  /** Is called before a failed attempt is repeated, with the time until then. */
  onRetry?(operation: Operation, code: ErrorCode, delayMs: number): void;
}

/** The four operations of one gateway. */
interface GatewayClient extends Gateway {
  /**
   * Asks for the list of models once, without the cache, to see whether the gateway responds.
   * @throws ParleyError `gateway-…` where it does not, or responds with an error
   */
  ping(signal: AbortSignal): Promise<void>;
  /** The price of a model, as far as it is known. It never waits. */
  priceOf(model: string): ModelPrice | undefined;
  /** Aborts running calls and closes all connections. */
  close(): Promise<void>;
}

const maxModelListBytes = 8 * 1024 * 1024;
/** The most models of the list. Further ones are left out. */
const maxModels = 5000;

/**
 * Creates a client of one gateway. It connects with its first call.
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
    baseUrl: toVersionedUrl(baseUrl),
    apiKey,
    connectMs: timeouts.connectMs,
    scrub,
    log,
    onHeaders: (headers) => options.onHeaders?.(headers),
  });
  const catalogue = createModelCatalogue({
    fetchRecords: (signal) => fetchRecords(context, signal),
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
    onOutcome: (outcome) => options.onOutcome?.(outcome),
  };
  const images = {
    downloadImage: (url: string, signal: AbortSignal, link: LinkKind) =>
      options.downloadImage(url, signal, link),
    maxImageBytes,
    baseUrl: toVersionedUrl(baseUrl),
  };
  const trustedHosts = new Set([new URL(baseUrl).host, ...(options.imageHosts ?? [])]);
  const isTrustedLink = (url: string): boolean =>
    URL.canParse(url, baseUrl) && trustedHosts.has(new URL(url, baseUrl).host);

  return {
    chat: createChat({ ...context, images, isTrustedLink, fallbacks: fallbacks.chat ?? [] }),
    generateImages: createImageGeneration({ ...context, images, fallbacks: fallbacks.image ?? [] }),
    transcribe: createTranscription({ ...context, fallbacks: fallbacks.transcription ?? [] }),
    listModels: (signal) => catalogue.list(signal),
    knownModels: () => catalogue.known(),
    priceOf: (model) => catalogue.priceOf(model)?.price,
    highestPrice(operation, model) {
      const found = [model, ...(fallbacks[operation] ?? [])].map((id) => catalogue.priceOf(id)?.price);
      const prices = found.filter((price) => price !== undefined);
      return prices.length < found.length ? undefined : prices.reduce(higherPrice);
    },
    async ping(signal) {
      await fetchRecords({ ...context, retryRules: { ...retryRules, maxAttempts: 1 } }, signal);
    },
    async close() {
      catalogue.close();
      await transport.close();
    },
  };
}

/** Calls `GET /v1/models`. Every first use waits, so the first-event limit is the total. */
async function fetchRecords(context: GatewayContext, signal: AbortSignal): Promise<readonly unknown[]> {
  const operation = "models";
  const { firstEventMs } = context.timeouts;
  const { value } = await runCall(
    { ...context, timeouts: { ...context.timeouts, totalMs: firstEventMs } },
    { operation, model: undefined, fallbacks: [], signal, firstEventFactor: 1, outcomeOf: toListed },
    async (_, timeouts) => {
      try {
        const response = await context.transport.send({
          operation,
          model: undefined,
          timeouts,
          callerSignal: signal,
          path: "/models",
        });
        const body = await readAnswerBody(response, maxModelListBytes);
        const records = body.kind === "json" ? recordsOf(body.value) : undefined;
        if (records === undefined) throw badAnswer(response, "no model list");
        return records.slice(0, maxModels);
      } finally {
        timeouts.dispose();
      }
    },
  );
  return value;
}

function toListed(records: readonly unknown[]): GatewayOutcome {
  const models = records.flatMap((record) =>
    isFields(record) && typeof record["id"] === "string" ? [record["id"]] : [],
  );
  return { kind: "listed", models };
}

/** Returns the records of `{data: […]}`, of `{models: […]}` or of a bare list. */
function recordsOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value as unknown[];
  if (!isFields(value)) return undefined;
  const list = value["data"] ?? value["models"];
  return Array.isArray(list) ? (list as unknown[]) : undefined;
}

interface TranscriptionContext extends GatewayContext {
  readonly fallbacks: readonly string[];
}

/** The server sends nothing back before a long recording is uploaded and recognised. */
const firstEventFactor = 4;
const maxAnswerBytes = 16 * 1024 * 1024;
/** This is enough for four hours of segments of a second and a half. */
const maxSegments = 10_000;
/** How long a last segment without an end lasts. */
const usualSeconds = 5;

/** Creates the transcription operation of a client. */
function createTranscription(
  context: TranscriptionContext,
): (request: TranscriptionRequest, signal: AbortSignal) => Promise<TranscriptionAnswer> {
  const attempt = async (
    request: TranscriptionRequest,
    model: string,
    timeouts: AttemptTimeouts,
    callerSignal: AbortSignal,
  ) => {
    const { language, hint } = request;
    const response = await context.transport.send({
      operation: "transcription",
      model,
      timeouts,
      callerSignal,
      path: "/audio/transcriptions",
      body: toForm({ model, language, prompt: hint }, request),
    });
    const answer = await readAnswerBody(response, maxAnswerBytes);
    const value = answer.kind === "text" ? { text: answer.text } : withText(answer.value);
    const parsed = transcriptionSchema.safeParse(value);
    if (!parsed.success) throw badAnswer(response, "no transcription");
    if (!isVisible(parsed.data.text))
      throw new AttemptError(
        new ParleyError("gateway-empty-answer", "transcription failed: no words", { detail: { model } }),
        "never",
      );
    return parsed.data;
  };

  return async (request, signal) => {
    checkRequest("transcription", request.model, [[request.bytes.length > 0, "file", "not empty"]]);
    const { value, model, notices } = await runCall(
      context,
      {
        operation: "transcription",
        model: request.model,
        fallbacks: context.fallbacks,
        signal,
        firstEventFactor,
      },
      (model, timeouts) => attempt(request, model, timeouts, signal).finally(() => timeouts.dispose()),
    );
    context.catalogue.learn(model, { transcribes: true });
    const reportedSeconds = value.duration ?? value.usage?.seconds;
    const measuredSeconds = request.durationMs === undefined ? undefined : request.durationMs / 1000;
    const usage = toUsage({
      reported: readUsage(value.usage),
      estimated:
        reportedSeconds === undefined && measuredSeconds !== undefined
          ? { audioSeconds: measuredSeconds }
          : {},
      ...(reportedSeconds !== undefined && { counted: { audioSeconds: reportedSeconds } }),
      price: context.catalogue.priceOf(model),
    });
    const { text, language } = value;
    const timed = timedWordsOf(value["segments"]);
    return {
      text: withoutControls(text).trim(),
      ...(timed.length > 0 && { timed }),
      model,
      ...(model !== request.model && { fallback: model }),
      ...(language !== undefined && { language }),
      usage,
      notices,
    };
  };
}

/**
 * Returns the segments that have a time and words. The others are left out. One without an end lasts until
 * the next begins.
 */
function timedWordsOf(segments: unknown): TimedWords[] {
  if (!Array.isArray(segments)) return [];
  const found = (segments as unknown[]).slice(0, maxSegments).flatMap((segment) => {
    if (!isFields(segment)) return [];
    const { start, end, text } = segment;
    if (!isTime(start) || typeof text !== "string" || !isVisible(text)) return [];
    const said = withoutControls(text).trim();
    return [{ start, end: isTime(end) && end > start ? end : undefined, text: said }];
  });
  return found.map(({ start, end, text }, index) => {
    const next = found[index + 1]?.start ?? 0;
    return { fromSeconds: start, toSeconds: end ?? (next > start ? next : start + usualSeconds), text };
  });
}

/** A time in a recording in seconds. None is longer than 99 hours. */
function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < 99 * 60 * 60;
}

/** Adds the text where a service sends only segments, and an empty one where it sends null for silence. */
function withText(value: unknown): unknown {
  if (!isFields(value) || typeof value["text"] === "string") return value;
  const { segments, text } = value;
  if (!Array.isArray(segments)) return text === null ? { ...value, text: "" } : value;
  const parts = (segments as unknown[]).map((segment) => (isFields(segment) ? segment["text"] : undefined));
  return { ...value, text: parts.filter((part) => typeof part === "string").join("") };
}

/** Where {@link createMeasuredGateway} reports calls. */
interface CallReports {
  readonly tracer: Tracer;
  readonly meter: Meter;
  readonly clock: Pick<Clock, "monotonic">;
}

/** What a call asks. */
type Asked = Pick<ChatRequest, "model" | "isAside">;

/** How an answer ended. */
interface Answered {
  readonly model: string;
  readonly usage: Usage;
  readonly reason?: string;
}

/**
 * Measures each call of a gateway once, from the request to the end of the answer: as a step of the turn's
 * trace, and for all who count calls.
 */
export function createMeasuredGateway(gateway: Gateway, { tracer, meter, clock }: CallReports): Gateway {
  function begin(operation: string, { model, isAside }: Asked, signal: AbortSignal) {
    const startedAt = clock.monotonic();
    let firstSeconds: number | undefined;
    const aside = isAside === true ? { isAside } : {};
    const secondsSoFar = (): number => (clock.monotonic() - startedAt) / 1000;
    const span = tracer.start(`gateway ${operation}`, {
      parent: currentTurn()?.span,
      kind: "client",
      fields: { "gen_ai.operation.name": operation, "gen_ai.request.model": model },
    });
    return {
      span,
      isGrowing(event: ChatEvent): void {
        if (firstSeconds !== undefined || (event.kind !== "text" && event.kind !== "image")) return;
        firstSeconds = secondsSoFar();
        if (event.kind === "text") span.note("first text");
      },
      answered(answer: Answered): void {
        const { reason: outcome = "complete", model: answering, usage } = answer;
        span.set(answerFields(answer));
        const first = firstSeconds === undefined ? {} : { firstSeconds };
        meter({
          kind: "asked",
          operation,
          outcome,
          model: answering,
          usage,
          seconds: secondsSoFar(),
          ...first,
          ...aside,
        });
      },
      failed(error: unknown): void {
        span.fail(error);
        // An answer that a person stops is no failure of the model.
        if (signal.aborted) return;
        meter({ kind: "asked", operation, outcome: codeOf(error), model, seconds: secondsSoFar(), ...aside });
      },
    };
  }

  async function whole<T extends Answered>(
    operation: string,
    request: Asked,
    signal: AbortSignal,
    call: () => Promise<T>,
  ): Promise<T> {
    const report = begin(operation, request, signal);
    try {
      const answer = await within(report.span, call);
      report.answered(answer);
      return answer;
    } catch (error) {
      report.failed(error);
      throw error;
    } finally {
      report.span.end();
    }
  }

  return {
    ...gateway,
    async *chat(request, signal): AsyncIterable<ChatEvent> {
      const report = begin("chat", request, signal);
      const { span } = report;
      const events = within(span, () => gateway.chat(request, signal)[Symbol.asyncIterator]());
      try {
        for (;;) {
          const step = await within(span, () => events.next());
          if (step.done === true) return;
          report.isGrowing(step.value);
          // It is counted now, since callers read nothing after it.
          if (step.value.kind === "finish") report.answered(step.value);
          yield step.value;
        }
      } catch (error) {
        report.failed(error);
        throw error;
      } finally {
        await within(span, async () => events.return?.());
        span.end();
      }
    },
    generateImages: (request, signal) =>
      whole("image", request, signal, () => gateway.generateImages(request, signal)),
    transcribe: (request, signal) =>
      whole("transcription", request, signal, () => gateway.transcribe(request, signal)),
  };
}

/** Runs the call in its step, which the request's header and the gateway's request id then belong to. */
function within<T>(span: Span, work: () => T): T {
  const scope = currentTurn();
  return scope === undefined || span === noSpan ? work() : inTurn({ ...scope, span }, work);
}

function answerFields({ model, usage, reason }: Answered): SpanFields {
  return {
    "gen_ai.response.model": model,
    ...(usage.promptTokens === undefined ? {} : { "gen_ai.usage.input_tokens": usage.promptTokens }),
    ...(usage.completionTokens === undefined ? {} : { "gen_ai.usage.output_tokens": usage.completionTokens }),
    ...(reason === undefined ? {} : { "gen_ai.response.finish_reason": reason }),
  };
}
