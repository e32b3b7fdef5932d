import { AsyncLocalStorage } from "node:async_hooks";
import type { Usage } from "./gateway.ts";
import type { CountedUsage } from "./spending.ts";

/** A structured log. Fields hold ids, codes, counts and durations, never secrets or what people wrote. */
export interface Log {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
  child(fields: Readonly<Record<string, unknown>>): Log;
}

/** Something that happened, with what there is to count of it. Times are in seconds. */
export type Measured =
  /** An event was accepted. */
  | { readonly kind: "accepted"; readonly platform: string }
  /** A platform is connected again after a loss. */
  | { readonly kind: "reconnected"; readonly platform: string }
  /** A request was refused or given up, and why: `rate-limited`, `busy`, `too-old`, … */
  | { readonly kind: "refused"; readonly platform: string; readonly code: string }
  | {
      readonly kind: "turn";
      readonly platform: string;
      readonly event: string;
      readonly outcome: string;
      readonly seconds: number;
    }
  /** The first text of a turn went to the platform, so long after its start. */
  | { readonly kind: "first-text"; readonly platform: string; readonly seconds: number }
  /** A call that shows something waited for room under the platform's limits. */
  | {
      readonly kind: "delivered";
      readonly platform: string;
      readonly method: string;
      readonly urgency: string;
      readonly seconds: number;
    }
  /** The platform refused a call because there were too many. */
  | { readonly kind: "limited"; readonly platform: string; readonly method: string }
  /** A person has rated an answer or changed their rating. */
  | { readonly kind: "rated"; readonly platform: string; readonly rating: string; readonly model: string }
  /** A model answered, or a call of the gateway failed. `outcome` is how it ended or an error's code. */
  | {
      readonly kind: "asked";
      readonly operation: string;
      readonly outcome: string;
      /** The model that answered, or that was asked where the call failed. */
      readonly model: string;
      /** What the answer used. It is absent where the call failed. */
      readonly usage?: Usage;
      /** The time until the first words or picture of a chat's answer. */
      readonly firstSeconds?: number;
      /** Set where it is no answer for a person, as in `ChatRequest`. */
      readonly isAside?: true;
      readonly seconds: number;
    }
  /** What a gateway call of a person has used, as budgets count it, also where it broke off. */
  | { readonly kind: "charged"; readonly model: string; readonly usage: CountedUsage }
  /** A failed gateway call is repeated after this time. */
  | { readonly kind: "retried"; readonly operation: string; readonly code: string; readonly seconds: number }
  /** The store has ended an operation. */
  | {
      readonly kind: "stored";
      readonly operation: string;
      readonly outcome: "ok" | "error";
      readonly seconds: number;
    };

/**
 * Takes what happened. It is reported once, where it happens, whoever counts it: metrics and the dashboard.
 * It never throws. Values come from small fixed sets and never from people, but models have names of their
 * own.
 */
export type Meter = (event: Measured) => void;

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
 * Logs what anybody can cause at any rate: the first of each kind, then one a minute with a count.
 * @param now returns milliseconds on a steady clock
 * @returns a function whose `kind` is one of a few names, never what somebody sent
 */
export function createRareLog<Level extends "info" | "warn" = "warn">(
  log: Pick<Log, Level>,
  now: () => number = () => performance.now(),
  level: Level = "warn" as Level,
): (kind: string, fields: Readonly<Record<string, unknown>>, message: string) => void {
  const seen = new Map<string, { count: number; loggedAt: number }>();
  return (kind, fields, message) => {
    const entry = seen.get(kind) ?? { count: 0, loggedAt: Number.NEGATIVE_INFINITY };
    seen.set(kind, entry);
    entry.count += 1;
    if (now() - entry.loggedAt < rareLogMs) return;
    log[level]({ ...fields, count: entry.count }, message);
    entry.count = 0;
    entry.loggedAt = now();
  };
}
