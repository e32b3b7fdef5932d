import type { Log } from "../../src/core/telemetry.ts";

/** A log that nobody reads. */
export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
};
