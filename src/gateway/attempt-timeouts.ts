import { ParleyError } from "../core/errors.ts";

/** After the finish reason only usage may follow; a server that keeps the line open is not waited for longer. */
export const restMs = 3000;

/** How long an attempt may wait for what. `deadlineAt` is in Unix milliseconds; `totalMs` only says it in errors. */
export interface WatchLimits {
  readonly firstEventMs: number;
  readonly idleMs: number;
  readonly deadlineAt: number;
  readonly totalMs: number;
}

/** Watches one attempt: aborts its request when the caller gives up or a timer runs out. */
export interface Watch {
  /** Given to the request. Its reason is the caller's own, or a `gateway-timeout`. */
  readonly signal: AbortSignal;
  /** Something meaningful arrived: text, an image, a part of a large body; never a ping. */
  touch(): void;
  /** The caller is busy with what arrived: from now to `release` the gap between events is not the gateway's. */
  hold(): void;
  release(): void;
  /** The answer is whole; what may follow must do so within {@link restMs}. */
  finishSoon(): void;
  /** Stops all timers. To be called on every path. */
  dispose(): void;
}

/** Starts the timers of an attempt: first meaningful event, gap between such events, total. One timer serves all three. */
export function createWatch(callerSignal: AbortSignal, limits: WatchLimits): Watch {
  const controller = new AbortController();
  let which: "first-event" | "idle" | "rest" = "first-event";
  let limitMs = limits.firstEventMs;
  let since = Date.now();
  let isHeld = false;
  let timer: NodeJS.Timeout | undefined;

  const expire = (timeout: string, ms: number) => {
    controller.abort(
      new ParleyError("gateway-timeout", `the gateway was silent too long (${timeout}, ${ms} ms)`, {
        detail: { timeout, timeoutMs: ms },
      }),
    );
  };

  // Looked at often enough that no limit can be shortened to before the next look: nothing is rescheduled meanwhile.
  const lookMs = Math.min(limits.idleMs, restMs, 0x7fffffff);
  const look = () => {
    const now = Date.now();
    if (now >= limits.deadlineAt) return expire("total", limits.totalMs);
    const left = isHeld ? limitMs : since + limitMs - now;
    if (left <= 0) return expire(which, limitMs);
    timer = setTimeout(look, Math.min(left, limits.deadlineAt - now, lookMs));
  };

  const onAbort = () => controller.abort(callerSignal.reason);
  if (callerSignal.aborted) onAbort();
  else {
    callerSignal.addEventListener("abort", onAbort, { once: true });
    look();
  }

  return {
    signal: controller.signal,
    touch() {
      since = Date.now();
      if (which !== "first-event") return;
      which = "idle";
      limitMs = limits.idleMs;
    },
    hold() {
      isHeld = true;
    },
    release() {
      if (!isHeld) return;
      isHeld = false;
      since = Date.now();
    },
    finishSoon() {
      which = "rest";
      limitMs = Math.min(restMs, limits.idleMs);
      since = Date.now();
      isHeld = false;
    },
    dispose() {
      clearTimeout(timer);
      callerSignal.removeEventListener("abort", onAbort);
    },
  };
}
