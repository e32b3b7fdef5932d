import { ParleyError } from "../../core/errors.ts";
import type { Reply } from "../../core/platform.ts";
import type { StoppedAnswer } from "../../core/inbox.ts";

/** A turn that is running. */
export interface ActiveTurn {
  readonly signal: AbortSignal;
  /** Set once the reply is open. One that is set after the turn was abandoned is abandoned at once. */
  reply: Reply | undefined;
  /** Set while an answer grows. Returns it as it is stored if a person stops it now. */
  soFar: ((by: string) => StoppedAnswer | undefined) | undefined;
  /** Keys of the events that it answers. */
  readonly keys: readonly string[];
  /** A person stopped it: partial text is the answer. `by`: the name that is shown; empty: none. */
  stop(by: string): void;
  /** These messages were deleted: the turn is cancelled where it answers one of them. Returns whether it does. */
  deleteMessages(keys: readonly string[]): boolean;
  /** Whether a message that the turn answers was deleted while it ran. */
  isDeleted(key: string): boolean;
  /** Whether it shows nothing more. */
  isAbandoned(): boolean;
  /** Another process, or this one after a restart, resumes it: nothing more is shown from now on. */
  abandon(reason: ParleyError): void;
}

/** The error `cancelled` of a turn that a person has stopped. */
export function toStopped(by: string): ParleyError {
  return new ParleyError("cancelled", "stopped by a person", {
    detail: { because: "stopped", ...(by === "" ? {} : { by }) },
  });
}

/** @param keys of the events that the turn answers */
export function createActiveTurn(keys: readonly string[]): ActiveTurn {
  const controller = new AbortController();
  const deleted = new Set<string>();
  let isAbandoned = false;
  let reply: Reply | undefined;
  return {
    signal: controller.signal,
    get reply() {
      return reply;
    },
    set reply(opened) {
      reply = opened;
      if (isAbandoned) opened?.abandon();
    },
    soFar: undefined,
    keys,
    stop(by) {
      controller.abort(toStopped(by));
    },
    deleteMessages(given) {
      const own = given.filter((key) => keys.includes(key));
      for (const key of own) deleted.add(key);
      if (own.length === 0) return false;
      controller.abort(
        new ParleyError("cancelled", "its message was deleted", { detail: { because: "deleted" } }),
      );
      return true;
    },
    isDeleted: (key) => deleted.has(key),
    isAbandoned: () => isAbandoned,
    abandon(reason) {
      isAbandoned = true;
      reply?.abandon();
      controller.abort(reason);
    },
  };
}
