import { ParleyError } from "./errors.ts";
import type { Reply } from "./types.ts";

/** A turn under way. */
export interface Running {
  readonly signal: AbortSignal;
  reply: Reply | undefined;
  /** A person stopped it: what there is is shown as its end. */
  cancel(): void;
  /** It goes on in another process or at the next start: nothing more is shown, from this moment on. */
  leave(reason: ParleyError): void;
}

/** A {@link Running} whose reply is set once it is open. */
export function createRunning(): Running {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    reply: undefined,
    cancel() {
      controller.abort(new ParleyError("cancelled", "a person stopped it"));
    },
    leave(reason) {
      this.reply?.abandon();
      controller.abort(reason);
    },
  };
}
