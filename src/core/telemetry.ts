import type { Usage } from "./gateway.ts";

/** The ports of logs and metrics. */

/** Structured log. Fields hold ids, codes, counts and durations; never a secret and never what people wrote. */
export interface Log {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
  child(fields: Readonly<Record<string, unknown>>): Log;
}

/** Figures for operators. Labels come from small fixed sets, never from people. */
export interface Meter {
  turn(
    labels: { readonly platform: string; readonly kind: string; readonly outcome: string },
    seconds: number,
  ): void;
  /** From the start of a turn to its first words on the way to the platform. */
  firstText(labels: { readonly platform: string }, seconds: number): void;
  call(
    labels: { readonly operation: string; readonly outcome: string; readonly model: string },
    usage: Usage,
  ): void;
}
