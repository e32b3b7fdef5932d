import { ParleyError } from "../core/errors.ts";
import type { Operation } from "../core/gateway.ts";
import type { Log } from "../core/telemetry.ts";
import { AttemptError } from "./attempt-error.ts";
import type { ModelCatalogue } from "./model-catalogue.ts";
import { isWorthFallback, type RetryRules, withRetries } from "./retry.ts";
import type { Scrub } from "./scrub.ts";
import type { Transport } from "./transport.ts";
import { createWatch, type Watch } from "./attempt-timeouts.ts";

/** How long the client waits for what, in milliseconds. */
export interface GatewayTimeouts {
  readonly connectMs: number;
  /** From the request to the first text, image or reasoning. */
  readonly firstEventMs: number;
  /** Between two of those. Pings do not count. */
  readonly idleMs: number;
  /** For a call with all its attempts. */
  readonly totalMs: number;
}

/** What all operations of one client work with. */
export interface GatewayContext {
  readonly transport: Transport;
  readonly scrub: Scrub;
  readonly log: Log;
  readonly timeouts: GatewayTimeouts;
  readonly retryRules: RetryRules;
  readonly catalogue: ModelCatalogue;
}

/** One call of an operation: its models are tried in order. */
export interface CallPlan {
  readonly operation: Operation;
  readonly model: string;
  readonly fallbacks: readonly string[];
  readonly signal: AbortSignal;
  /**
   * How much longer than `firstEventMs` the first sign may take: an answer that is not streamed begins only when it
   * is all there.
   */
  readonly patience: number;
}

export interface CallResult<T> {
  readonly value: T;
  /** The model asked in the end. */
  readonly model: string;
  /** "Model X did not answer; Y did." */
  readonly notices: readonly string[];
}

/** A wait that is longer than this is not worth it while another model could be asked. */
const maxWaitBeforeFallbackMs = 5000;
/** Nobody sits in front of a silent bot for longer, but a short first-event limit must not forbid every second try. */
const leastRetryPatienceMs = 30_000;

/**
 * Runs attempts at the plan's models, each with retries, until one succeeds. Each attempt gets a watch of its own and
 * has to dispose it.
 * @throws ParleyError `gateway-…` of the model asked for; the signal's reason when it aborts
 */
export async function runCall<T>(
  context: GatewayContext,
  plan: CallPlan,
  attempt: (model: string, watch: Watch) => Promise<T>,
): Promise<CallResult<T>> {
  const { operation, signal } = plan;
  const { timeouts, log } = context;
  signal.throwIfAborted();
  const startedAt = Date.now();
  const deadlineAt = startedAt + timeouts.totalMs;
  const retryDeadlineAt =
    startedAt + Math.min(timeouts.totalMs, Math.max(timeouts.firstEventMs, leastRetryPatienceMs));
  const models = [plan.model, ...plan.fallbacks.filter((id) => id !== plan.model)];
  let firstFailure: ParleyError | undefined;
  for (const [index, model] of models.entries()) {
    const hasNext = index + 1 < models.length;
    try {
      const value = await withRetries(
        () => {
          const watch = createWatch(signal, {
            firstEventMs: timeouts.firstEventMs * plan.patience,
            idleMs: timeouts.idleMs,
            deadlineAt,
            totalMs: timeouts.totalMs,
          });
          return attempt(model, watch);
        },
        {
          operation,
          rules: context.retryRules,
          deadlineAt: retryDeadlineAt,
          maxWaitMs: hasNext ? maxWaitBeforeFallbackMs : Number.POSITIVE_INFINITY,
          signal,
          onRetry: (failure, delayMs) =>
            log.debug({ operation, model, code: failure.code, delayMs }, "the gateway is asked again"),
        },
      );
      const notices = index === 0 ? [] : [`Model ${plan.model} did not answer; ${model} did.`];
      return { value, model, notices };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (!(error instanceof AttemptError)) throw error;
      const failure = await explain(context, error.failure, model, signal);
      firstFailure ??= failure;
      if (!hasNext || Date.now() >= deadlineAt || !isWorthFallback(error, operation)) throw firstFailure;
      log.warn({ operation, model, code: failure.code, next: models[index + 1] }, "another model is asked");
    }
  }
  throw firstFailure ?? new ParleyError("internal", "no model to ask");
}

/** Adds "did you mean" to an unknown model, where the list is known or comes quickly. */
async function explain(
  context: GatewayContext,
  failure: ParleyError,
  model: string,
  signal: AbortSignal,
): Promise<ParleyError> {
  if (failure.code !== "gateway-unknown-model") return failure;
  const suggestion = await context.catalogue.suggest(model, signal);
  if (suggestion === undefined) return failure;
  return new ParleyError(failure.code, failure.message, {
    cause: failure,
    detail: { ...failure.detail, suggestion },
  });
}
