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
}
