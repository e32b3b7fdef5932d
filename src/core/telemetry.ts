import { AsyncLocalStorage } from "node:async_hooks";
import type { Usage } from "./gateway.ts";

/** A structured log. Fields hold ids, codes, counts and durations, never secrets or what people wrote. */
export interface Log {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
  child(fields: Readonly<Record<string, unknown>>): Log;
}

/** Metrics for operators. Label values come from small fixed sets, never from people. */
export interface Meter {
  turn(
    labels: { readonly platform: string; readonly kind: string; readonly outcome: string },
    seconds: number,
  ): void;
  /** Records the time from the start of a turn until its first text goes to the platform. */
  firstText(labels: { readonly platform: string }, seconds: number): void;
  /** Records how long a call that shows something waited for room under the platform's limits. */
  delivery(
    labels: { readonly platform: string; readonly method: string; readonly urgency: string },
    waitedSeconds: number,
  ): void;
  /** Records that the platform refused a call because there were too many. */
  platformLimited(labels: { readonly platform: string; readonly method: string }): void;
  call(
    labels: { readonly operation: string; readonly outcome: string; readonly model: string },
    usage: Usage,
  ): void;
  /** Records that a person has rated an answer or changed their rating. */
  rated(labels: { readonly platform: string; readonly rating: string; readonly model: string }): void;
  /** Records that a request was refused or given up, and why: `rate-limited`, `busy`, `too-old`, … */
  refused(labels: { readonly platform: string; readonly code: string }): void;
}

/** Ids, codes, counts and durations, never secrets or what people wrote. */
export type SpanFields = Readonly<Record<string, string | number | boolean>>;

/** A step of a turn in a trace. No method may throw, and after `end` no method has an effect. */
export interface Span {
  /** The step's context as a W3C `traceparent` header. It is `undefined` if tracing is off. */
  readonly traceparent: string | undefined;
  set(fields: SpanFields): void;
  /** Records something that happened at this time. */
  note(name: string, fields?: SpanFields): void;
  /** Records that the step failed with the code of a ParleyError. */
  fail(error: unknown): void;
  end(): void;
}

/** How a step begins. */
export interface SpanStart {
  /** The surrounding step. Without it a new trace begins. */
  readonly parent: Span | undefined;
  /** `consumer` takes an event, `client` waits for another service. It is absent for other steps. */
  readonly kind?: "consumer" | "client";
  /** Steps of other traces that led to this one. */
  readonly links?: readonly Span[];
  readonly fields?: SpanFields;
}

/** Makes the traces of turns. */
export interface Tracer {
  /** If false, every step is {@link noSpan}. */
  readonly isOn: boolean;
  start(name: string, start: SpanStart): Span;
}

/** A step that is not recorded. */
export const noSpan: Span = {
  traceparent: undefined,
  set() {},
  note() {},
  fail() {},
  end() {},
};

/** The tracer for deployments without tracing. */
export const noTracer: Tracer = { isOn: false, start: () => noSpan };

/** The turn to which the running code belongs. */
interface TurnScope {
  /** The key of the turn's first event, which every log line has as `turn`. */
  readonly turn: string;
  /** The parent of the turn's next steps. */
  readonly span: Span;
  /** Called when a busy service makes a request of the turn wait this many milliseconds for a retry. */
  readonly onWait?: (waitMs: number) => void;
}

const scopes = new AsyncLocalStorage<TurnScope>();

/** Runs `work` and everything that it starts as part of a turn, which log lines and traces then name. */
export function inTurn<T>(scope: TurnScope, work: () => T): T {
  return scopes.run(scope, work);
}

/** The turn of the running code, or `undefined` outside of turns. */
export function currentTurn(): TurnScope | undefined {
  return scopes.getStore();
}

const rareLogMs = 60_000;

/**
 * Logs warnings that anybody can cause at any rate: the first of each kind, then one a minute with a count.
 * @param now returns milliseconds on a steady clock
 * @returns a function whose `kind` is one of a few names, never what somebody sent
 */
export function createRareLog(
  log: Pick<Log, "warn">,
  now: () => number = () => performance.now(),
): (kind: string, fields: Readonly<Record<string, unknown>>, message: string) => void {
  const seen = new Map<string, { count: number; loggedAt: number }>();
  return (kind, fields, message) => {
    const entry = seen.get(kind) ?? { count: 0, loggedAt: Number.NEGATIVE_INFINITY };
    seen.set(kind, entry);
    entry.count += 1;
    if (now() - entry.loggedAt < rareLogMs) return;
    log.warn({ ...fields, count: entry.count }, message);
    entry.count = 0;
    entry.loggedAt = now();
  };
}
