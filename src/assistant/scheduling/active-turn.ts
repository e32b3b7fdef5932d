import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { InboxRecord } from "../../core/inbox.ts";
import type { Reply } from "../../core/reply.ts";

/** An attempt that runs in this process. */
export interface ActiveTurn {
  /** The key of the turn. */
  readonly key: string;
  readonly attempt: number;
  readonly signal: AbortSignal;
  /** Whether this process still has the conversation, also if it was paused meanwhile. */
  readonly isFresh: () => boolean;
  /** The reply once it is open. If it is set after the turn was abandoned, it is abandoned at once. */
  reply: Reply | undefined;
  /** Makes it show and write nothing more, because another attempt continues. */
  abandon(reason: ParleyError): void;
  /** Ends it, or leaves it to another attempt, where its record says so. */
  notice(record: InboxRecord | undefined): void;
}

/** The error `cancelled` for a turn that a person has stopped. */
export function toStopped(by: string): ParleyError {
  return new ParleyError("cancelled", "stopped by a person", {
    detail: { because: "stopped", ...(by === "" ? {} : { by }) },
  });
}

/** The error `cancelled` for a turn whose questions were deleted. */
export function toWithdrawn(): ParleyError {
  return new ParleyError("cancelled", "its message was deleted", { detail: { because: "deleted" } });
}

/** The error of an attempt that was overtaken by a change of its turn. */
export function toOvertaken(): ParleyError {
  return new ParleyError("stopping", "its turn was changed", { detail: { because: "changed" } });
}

/** Whether an attempt ended because another one continues, which is no failure. */
export function isOvertaken(error: unknown): boolean {
  return isParleyError(error, "stopping") && error.detail["because"] === "changed";
}

/** Keeps what this process knows of an attempt while it runs. */
export function createActiveTurn({
  key,
  attempt,
  isFresh,
}: Pick<ActiveTurn, "key" | "attempt" | "isFresh">): ActiveTurn {
  const controller = new AbortController();
  let isAbandoned = false;
  let reply: Reply | undefined;
  const abandon = (reason: ParleyError): void => {
    isAbandoned = true;
    reply?.abandon();
    controller.abort(reason);
  };
  return {
    key,
    attempt,
    isFresh,
    signal: controller.signal,
    get reply() {
      return reply;
    },
    set reply(opened) {
      reply = opened;
      if (isAbandoned) opened?.abandon();
    },
    abandon,
    notice(record) {
      const turn = record?.turn;
      if (turn === undefined || turn.attempt !== attempt || turn.since >= attempt) {
        abandon(toOvertaken());
      } else if (turn.end?.isStored === false)
        controller.abort(turn.end.kind === "withdrawn" ? toWithdrawn() : toStopped(turn.end.by ?? ""));
    },
  };
}
