import { ParleyError } from "../../core/errors.ts";
import type { Reply } from "../../core/platform.ts";

/** A turn under way. */
export interface Running {
  readonly signal: AbortSignal;
  reply: Reply | undefined;
  /** A person stopped it: what there is is shown as its end. */
  cancel(): void;
  /** People removed these messages: where it answers one of them it is stopped. Answers whether it does. */
  withdraw(keys: readonly string[]): boolean;
  /** Whether a message that it answers was removed since it began. */
  isWithdrawn(key: string): boolean;
  /** It goes on in another process or at the next start: nothing more is shown, from this moment on. */
  leave(reason: ParleyError): void;
}

/** A {@link Running} whose reply is set once it is open. `keys`: of the events that it answers. */
export function createRunning(keys: readonly string[]): Running {
  const controller = new AbortController();
  const withdrawn = new Set<string>();
  return {
    signal: controller.signal,
    reply: undefined,
    cancel() {
      controller.abort(new ParleyError("cancelled", "a person stopped it"));
    },
    withdraw(removed) {
      const own = removed.filter((key) => keys.includes(key));
      for (const key of own) withdrawn.add(key);
      if (own.length === 0) return false;
      controller.abort(
        new ParleyError("cancelled", "its message was removed", { detail: { because: "removed" } }),
      );
      return true;
    },
    isWithdrawn: (key) => withdrawn.has(key),
    leave(reason) {
      this.reply?.abandon();
      controller.abort(reason);
    },
  };
}
