import type { Log } from "../../src/core/telemetry.ts";

/** Creates a log that keeps its errors, so that a test can say there were none. */
export function createQuietLog(): Log & { readonly errors: string[] } {
  const errors: string[] = [];
  const log = {
    errors,
    debug: () => {},
    info: () => {},
    warn: () => {},
    error: (fields: Readonly<Record<string, unknown>>, message: string) => {
      errors.push(`${message} ${String(fields["error"])}`);
    },
    child: () => log,
  };
  return log;
}
