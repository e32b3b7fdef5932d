import type { Log } from "../core/telemetry.ts";

const everyMs = 60_000;

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
    if (now() - entry.loggedAt < everyMs) return;
    log.warn({ ...fields, count: entry.count }, message);
    entry.count = 0;
    entry.loggedAt = now();
  };
}
