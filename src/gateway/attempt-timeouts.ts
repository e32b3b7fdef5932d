import { ParleyError } from "../core/errors.ts";

/** How long the body may stay open after the finish reason; only usage follows it. */
export const endGraceMs = 3000;

/** Limits of one attempt, in milliseconds; `deadlineAt` on the clock of `performance.now`. `totalMs` only appears in errors. */
export interface TimeoutLimits {
  readonly firstEventMs: number;
  readonly idleMs: number;
  readonly deadlineAt: number;
  readonly totalMs: number;
}

/** The timers of one attempt. They abort its request when one expires or the caller aborts. */
export interface AttemptTimeouts {
  /** For the request. Its reason is the caller's own, or a `gateway-timeout`. */
  readonly signal: AbortSignal;
  /** Restarts the idle timer: text, an image or part of a large body arrived. Pings do not count. */
  progress(): void;
  /** Stops the idle timer while the caller works on what arrived. */
  pause(): void;
  resume(): void;
  /** The answer is complete: the body must end within {@link endGraceMs}. */
  expectEnd(): void;
  /** Stops all timers. Contract: called on every path. */
  dispose(): void;
}

/** Starts the timers of an attempt: first event, idle and total. One Node timer serves all three. */
export function createAttemptTimeouts(callerSignal: AbortSignal, limits: TimeoutLimits): AttemptTimeouts {
  const controller = new AbortController();
  let which: "first-event" | "idle" | "end" = "first-event";
  let limitMs = limits.firstEventMs;
  let since = performance.now();
  let isPaused = false;
  let timer: NodeJS.Timeout | undefined;

  const expire = (timeout: string, ms: number) => {
    controller.abort(
      new ParleyError("gateway-timeout", `the gateway timed out (${timeout}, ${ms} ms)`, {
        detail: { timeout, timeoutMs: ms },
      }),
    );
  };

  // The shortest limit there can be: checked so often, no change of the limit needs another timer.
  const checkMs = Math.min(limits.idleMs, endGraceMs, 0x7fffffff);
  const check = () => {
    const now = performance.now();
    if (now >= limits.deadlineAt) return expire("total", limits.totalMs);
    const leftMs = isPaused ? limitMs : since + limitMs - now;
    if (leftMs <= 0) return expire(which, limitMs);
    timer = setTimeout(check, Math.min(leftMs, limits.deadlineAt - now, checkMs));
  };

  const onAbort = () => controller.abort(callerSignal.reason);
  if (callerSignal.aborted) onAbort();
  else {
    callerSignal.addEventListener("abort", onAbort, { once: true });
    check();
  }

  return {
    signal: controller.signal,
    progress() {
      since = performance.now();
      if (which !== "first-event") return;
      which = "idle";
      limitMs = limits.idleMs;
    },
    pause() {
      isPaused = true;
    },
    resume() {
      if (!isPaused) return;
      isPaused = false;
      since = performance.now();
    },
    expectEnd() {
      which = "end";
      limitMs = Math.min(endGraceMs, limits.idleMs);
      since = performance.now();
      isPaused = false;
    },
    dispose() {
      clearTimeout(timer);
      callerSignal.removeEventListener("abort", onAbort);
    },
  };
}
