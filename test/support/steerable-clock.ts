import type { Clock } from "../../src/core/clock.ts";
import { systemClock } from "../../src/support/clock.ts";
import { toWaits } from "./clock-waits.ts";

/** The time of one Parley of several in a process. It goes on in real time, or faster, and can be held. */
export interface SteerableClock extends Clock {
  /** From now on timers that fall due wait, as in a process that is stopped. Time goes on. */
  hold(): void;
  /** Fires what fell due meanwhile, in order. */
  release(): void;
  /** Later timers and those that are running end so many times sooner. */
  setSpeed(speed: number): void;
}

/** Creates a {@link SteerableClock} that is `speed` times as fast as the system's time. */
export function createSteerableClock(speed = 1): SteerableClock {
  const startedAt = performance.now();
  const startAt = systemClock.now();
  let isHeld = false;
  /** The time when the speed was set, on the system's clock and on this one. */
  let since = { realMs: startedAt, ownMs: 0 };
  let rate = speed;
  const timers = new Set<{ readonly dueAt: number; arm(): void }>();
  const due: (() => void)[] = [];
  const elapsed = (): number => since.ownMs + (performance.now() - since.realMs) * rate;

  function after(ms: number, callback: () => void, { keepsAlive = true } = {}): () => void {
    let running: NodeJS.Timeout | undefined;
    let isOver = false;
    const fire = (): void => {
      if (isOver) return;
      if (isHeld) return void due.push(fire);
      isOver = true;
      timers.delete(timer);
      callback();
    };
    const timer = {
      dueAt: elapsed() + ms,
      arm() {
        clearTimeout(running);
        running = setTimeout(fire, Math.max(0, timer.dueAt - elapsed()) / rate);
        if (!keepsAlive) running.unref();
      },
    };
    timers.add(timer);
    timer.arm();
    return () => {
      isOver = true;
      clearTimeout(running);
      timers.delete(timer);
    };
  }

  return {
    now: () => startAt + Math.round(elapsed()),
    monotonic: elapsed,
    after,
    ...toWaits(after),
    every(ms, callback) {
      let cancel: () => void;
      const next = (): void => {
        cancel = after(
          ms,
          () => {
            next();
            callback();
          },
          { keepsAlive: false },
        );
      };
      next();
      return () => cancel();
    },
    hold() {
      isHeld = true;
    },
    release() {
      isHeld = false;
      for (const fire of due.splice(0)) fire();
    },
    setSpeed(next) {
      since = { realMs: performance.now(), ownMs: elapsed() };
      rate = next;
      for (const timer of timers) timer.arm();
    },
  };
}
