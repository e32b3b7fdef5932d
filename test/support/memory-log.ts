import { inspect } from "node:util";
import type { Log } from "../../src/core/telemetry.ts";

/** Creates a log that appends `<level> <message> <fields as JSON>` to `lines`. Errors are inspected. */
export function createMemoryLog(lines: string[]): Log {
  const write = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) => {
    const shown = Object.entries(fields).map(([name, value]) => [
      name,
      value instanceof Error ? inspect(value) : value,
    ]);
    lines.push(`${level} ${message} ${JSON.stringify(Object.fromEntries(shown))}`);
  };
  const log: Log = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: () => log,
  };
  return log;
}
