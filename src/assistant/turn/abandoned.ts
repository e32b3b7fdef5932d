import { isParleyError } from "../../core/errors.ts";

/** Throws `stopping` where another process or the next start resumes the turn. A cancellation does not throw. */
export function throwIfAbandoned(signal: AbortSignal): void {
  if (signal.aborted && isParleyError(signal.reason, "stopping")) throw signal.reason;
}
