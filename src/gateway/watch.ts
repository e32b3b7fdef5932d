import { ParleyError } from "../assistant/errors.ts";

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
  /** The rest is optional from now on and must arrive within `ms`. */
  finishWithin(ms: number): void;
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

  const schedule = () => {
    const now = Date.now();
    if (now >= limits.deadlineAt) return expire("total", limits.totalMs);
    const left = isHeld ? limitMs : since + limitMs - now;
    if (left <= 0) return expire(which, limitMs);
    timer = setTimeout(schedule, Math.min(left, limits.deadlineAt - now, 0x7fffffff));
  };

  const onAbort = () => controller.abort(callerSignal.reason);
  if (callerSignal.aborted) onAbort();
  else {
    callerSignal.addEventListener("abort", onAbort, { once: true });
    schedule();
  }

  const reschedule = () => {
    clearTimeout(timer);
    if (!controller.signal.aborted) schedule();
  };

  return {
    signal: controller.signal,
    touch() {
      since = Date.now();
      if (which !== "first-event") return;
      which = "idle";
      limitMs = limits.idleMs;
      reschedule();
    },
    hold() {
      isHeld = true;
    },
    release() {
      if (!isHeld) return;
      isHeld = false;
      since = Date.now();
    },
    finishWithin(ms) {
      which = "rest";
      limitMs = Math.min(ms, limits.idleMs);
      since = Date.now();
      isHeld = false;
      reschedule();
    },
    dispose() {
      clearTimeout(timer);
      callerSignal.removeEventListener("abort", onAbort);
    },
  };
}
