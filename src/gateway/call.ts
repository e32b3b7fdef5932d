import type { Clock } from "../core/clock.ts";
import { ParleyError, type ErrorCode } from "../core/errors.ts";
import type { Operation, ModelOperation } from "../core/gateway.ts";
import { type Log, currentTurn } from "../core/telemetry.ts";
import { translate } from "../words/translate.ts";
import { AttemptError, type Scrub } from "../wire/failures.ts";
import { type GatewayOutcome } from "./trouble.ts";
import {
  createAttemptTimeouts,
  isRetriable,
  withRetries,
  type AttemptTimeouts,
  type RetryRules,
} from "../wire/attempt.ts";
import type { createModelCatalogue } from "./model-catalogue.ts";
import type { Transport } from "../wire/transport.ts";

/** The time limits of a call, in milliseconds. */
export interface GatewayTimeouts {
  readonly connectMs: number;
  /** The longest silence from the request to the first text or image. Comments and empty events break it. */
  readonly firstEventMs: number;
  /** The time between two of those. Pings do not count. */
  readonly idleMs: number;
  /** The time of a call with all its attempts. */
  readonly totalMs: number;
}

/** The context that all operations of one client share. */
export interface GatewayContext {
  readonly transport: Transport;
  readonly scrub: Scrub;
  readonly log: Log;
  readonly timeouts: GatewayTimeouts;
  readonly retryRules: RetryRules;
  readonly catalogue: ReturnType<typeof createModelCatalogue>;
  readonly onRetry: (operation: Operation, code: ErrorCode, delayMs: number) => void;
  /** Waits between attempts. */
  readonly clock: Pick<Clock, "sleep" | "monotonic" | "after">;
  readonly onOutcome: (outcome: GatewayOutcome) => void;
}

/** One call of an operation. */
interface CallPlan<M extends string | undefined, T> {
  readonly operation: Operation;
  /** `undefined` for the list of models. */
  readonly model: M;
  readonly fallbacks: readonly M[];
  readonly signal: AbortSignal;
  /** Multiplies `firstEventMs`: an answer that is not streamed sends its first byte when it is ready. */
  readonly firstEventFactor: number;
  /** What success shows of the gateway. Default: that a model answered. */
  readonly outcomeOf?: (value: T) => GatewayOutcome;
}

/** The result of {@link runCall}. */
interface CallResult<M, T> {
  readonly value: T;
  /** The model that answered. */
  readonly model: M;
  /** Sentences such as "Model X did not answer; Y did." */
  readonly notices: readonly string[];
}

/** A longer retry delay is skipped when there is a fallback model. */
const maxWaitBeforeFallbackMs = 5000;
/** Retries stop after the first-event limit, but not before this, as a short limit would rule them out. */
const minRetryWindowMs = 30_000;

/**
 * Tries the requested model and then its fallbacks, each with retries, until an attempt succeeds. Contract:
 * `attempt` disposes its timeouts.
 * @throws ParleyError `gateway-…` of the requested model, or the signal's reason when it aborts
 */
export async function runCall<T, M extends string | undefined>(
  context: GatewayContext,
  plan: CallPlan<M, T>,
  attempt: (model: M, timeouts: AttemptTimeouts) => Promise<T>,
): Promise<CallResult<M, T>> {
  const { operation, signal } = plan;
  const { clock, log, timeouts: limits } = context;
  signal.throwIfAborted();
  const startedAt = clock.monotonic();
  const deadlineAt = startedAt + limits.totalMs;
  const retryDeadlineAt =
    startedAt + Math.min(limits.totalMs, Math.max(limits.firstEventMs, minRetryWindowMs));
  const models = [plan.model, ...plan.fallbacks.filter((id) => id !== plan.model)];
  let firstFailure: ParleyError | undefined;
  for (const [index, model] of models.entries()) {
    const hasNext = index + 1 < models.length;
    try {
      const value = await withRetries(
        () => {
          const firstEventMs = limits.firstEventMs * plan.firstEventFactor;
          const attemptLimits = { ...limits, firstEventMs, deadlineAt };
          return attempt(model, createAttemptTimeouts(signal, attemptLimits, clock));
        },
        {
          operation,
          rules: context.retryRules,
          deadlineAt: retryDeadlineAt,
          maxWaitMs: hasNext ? maxWaitBeforeFallbackMs : Number.POSITIVE_INFINITY,
          signal,
          clock,
          onRetry(failure, delayMs) {
            log.debug({ operation, model, code: failure.code, delayMs }, "retrying gateway call");
            context.onRetry(operation, failure.code, delayMs);
            currentTurn()?.onWait?.(delayMs);
          },
        },
      );
      context.onOutcome(plan.outcomeOf?.(value) ?? { kind: "answered" });
      if (index === 0) return { value, model, notices: [] };
      const words = { model: String(plan.model), instead: String(model) };
      return { value, model, notices: [translate("model.fallback", words)] };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (!(error instanceof AttemptError)) throw error;
      const failure = await withSuggestion(context, error.failure, model, signal);
      firstFailure ??= failure;
      if (!hasNext || clock.monotonic() >= deadlineAt || !isWorthFallback(error, operation)) {
        context.onOutcome({ kind: "failed", operation, error: firstFailure });
        throw firstFailure;
      }
      log.warn(
        { operation, model, code: failure.code, next: models[index + 1] },
        "falling back to another model",
      );
    }
  }
  throw firstFailure ?? new ParleyError("internal", "no model to call");
}

/** Adds a suggestion to the error of an unknown model, or that there is no list, if that is known quickly. */
async function withSuggestion(
  context: GatewayContext,
  failure: ParleyError,
  model: string | undefined,
  signal: AbortSignal,
): Promise<ParleyError> {
  if (failure.code !== "gateway-unknown-model" || model === undefined) return failure;
  const suggestion = await context.catalogue.suggest(model, signal);
  const found =
    suggestion !== undefined ? { suggestion } : context.catalogue.isLacking() ? { lacks: "models" } : {};
  return new ParleyError(failure.code, failure.message, {
    cause: failure,
    detail: { ...failure.detail, ...found },
  });
}

/** A limit of the specification: whether the request keeps it, its parameter, and what that must be. */
type RequestRule = readonly [isKept: boolean, parameter: string, rule: string];

/**
 * Checks a request before anything is sent.
 * @throws ParleyError `gateway-bad-request` for the first rule that is not kept
 */
export function checkRequest(operation: ModelOperation, model: string, rules: readonly RequestRule[]): void {
  const all: readonly RequestRule[] = [[model !== "", "model", "the id of a model"], ...rules];
  const broken = all.find(([isKept]) => !isKept);
  if (broken === undefined) return;
  const [, parameter, rule] = broken;
  throw new ParleyError("gateway-bad-request", `${operation} request: ${parameter} must be ${rule}`, {
    detail: { model, parameter, gatewayMessage: rule },
  });
}

/** Whether a fallback model may succeed. An unreachable gateway is unreachable for all its models. */
function isWorthFallback(error: AttemptError, operation: Operation): boolean {
  const { code } = error.failure;
  if (code === "gateway-unknown-model") return true;
  if (error.retryClass === "timeout") return operation !== "image";
  return code !== "gateway-unreachable" && isRetriable(error, operation);
}
