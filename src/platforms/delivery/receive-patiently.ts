import { isParleyError } from "../../core/errors.ts";
import { backoffMs, retry } from "../../support/retry.ts";

const backoff = { baseMs: 250, maxMs: 1000 };

/**
 * Passes an event to the receiver, and again while the store is unavailable: attempts start within `forMs`
 * milliseconds. There are at least two: the deadline of the first may have ended while the process was suspended.
 * @throws the error of the last attempt
 */
export function receivePatiently(
  receive: () => Promise<"accepted" | "duplicate">,
  { forMs }: { readonly forMs: number },
): Promise<"accepted" | "duplicate"> {
  const deadline = performance.now() + forMs;
  return retry(receive, {
    delayMs(error, attempt) {
      if (!isParleyError(error, "store-unavailable")) return undefined;
      const waitMs = backoffMs(attempt, backoff);
      return attempt === 1 || performance.now() + waitMs <= deadline ? waitMs : undefined;
    },
  });
}
