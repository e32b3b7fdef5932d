import { AsyncLocalStorage } from "node:async_hooks";
import type { Usage } from "./gateway.ts";

/** Structured log. Fields hold ids, codes, counts and durations; never secrets or what people wrote. */
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
  /** From the start of a turn until its first text is passed to the platform. */
  firstText(labels: { readonly platform: string }, seconds: number): void;
  /** A call that shows something to people had to wait for room under the platform's limits, and was sent. */
  delivery(
    labels: { readonly platform: string; readonly method: string; readonly urgency: string },
    waitedSeconds: number,
  ): void;
  /** The platform refused a call as too many. */
  platformLimited(labels: { readonly platform: string; readonly method: string }): void;
  call(
    labels: { readonly operation: string; readonly outcome: string; readonly model: string },
    usage: Usage,
  ): void;
  /** A person has rated an answer, or changed their rating. */
  rated(labels: { readonly platform: string; readonly rating: string; readonly model: string }): void;
  /** A request was not taken, or was given up, and the person was told why: `rate-limited`, `busy`, `too-old`, … */
  refused(labels: { readonly platform: string; readonly code: string }): void;
}

/** Ids, codes, counts and durations; never secrets or what people wrote. */
export type SpanFields = Readonly<Record<string, string | number | boolean>>;

/** A step of a turn, as a trace shows it. Contract: no method throws; after `end` none has an effect. */
export interface Span {
  /** The step's context as a W3C `traceparent` header. `undefined`: tracing is off. */
  readonly traceparent: string | undefined;
  set(fields: SpanFields): void;
  /** Something that happened at this time. */
  note(name: string, fields?: SpanFields): void;
  /** The step failed, with the code of a ParleyError. */
  fail(error: unknown): void;
  end(): void;
}

/** How a step begins. */
export interface SpanStart {
  /** `undefined`: it begins a trace. */
  readonly parent: Span | undefined;
  /** Who asks whom: `consumer` takes an event, `client` waits for another service. Default: neither. */
  readonly kind?: "consumer" | "client";
  /** Steps of other traces that led to this one. */
  readonly links?: readonly Span[];
  readonly fields?: SpanFields;
}

/** Makes traces of turns. */
export interface Tracer {
  /** False: every step is {@link noSpan}. */
  readonly isOn: boolean;
  start(name: string, start: SpanStart): Span;
}

/** A step that nobody records. */
export const noSpan: Span = {
  traceparent: undefined,
  set() {},
  note() {},
  fail() {},
  end() {},
};

/** Tracing is off. */
export const noTracer: Tracer = { isOn: false, start: () => noSpan };

/** The turn that the running code belongs to. */
interface TurnScope {
  /** Key of the turn's first event: the `turn` of every log line. */
  readonly turn: string;
  /** What steps of the turn are traced under. */
  readonly span: Span;
  /** Called when a request of the turn is repeated only after this time, in milliseconds: the other side is busy. */
  readonly onWait?: (waitMs: number) => void;
}

const scopes = new AsyncLocalStorage<TurnScope>();

/** Runs `work`, and everything that it starts, as part of a turn: log lines and traces name it. */
export function inTurn<T>(scope: TurnScope, work: () => T): T {
  return scopes.run(scope, work);
}

/** `undefined` outside of turns. */
export function currentTurn(): TurnScope | undefined {
  return scopes.getStore();
}
