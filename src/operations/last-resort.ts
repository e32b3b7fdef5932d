import { inspect } from "node:util";
import type { Log } from "../core/telemetry.ts";

/** @see {@link installLastResort} */
export interface LastResortOptions {
  /** Called for each error, so that the log may change once settings are read. */
  readonly log: () => Log;
  /** Ends the process. */
  readonly exit: (code: number) => void;
}

const maxChars = 2000;

/**
 * Handlers for errors that nothing else handled. An unhandled rejection is logged, and the process goes on: one
 * broken request must not end all others. An uncaught exception leaves unknown state behind: it is logged, and the
 * process ends with code 1 at once, as after a crash, which the store survives.
 */
export function installLastResort({ log, exit }: LastResortOptions): void {
  process.on("unhandledRejection", (reason: unknown) => {
    log().error(toFields(reason), "unhandled rejection");
  });
  process.on("uncaughtException", (error: unknown) => {
    try {
      log().error(toFields(error), "uncaught exception, exiting");
    } finally {
      exit(1);
    }
  });
}

/** Anything may be thrown, also what cannot become a string. */
function toFields(thrown: unknown): Readonly<Record<string, unknown>> {
  if (thrown instanceof Error) return { err: thrown, stack: String(thrown.stack).slice(0, maxChars) };
  return { err: new Error(`not an Error: ${inspect(thrown, { depth: 1 }).slice(0, maxChars)}`) };
}
