import type { Clock } from "../../src/core/clock.ts";
import type { Platform } from "../../src/core/platform.ts";
import { systemClock } from "../../src/support/clock.ts";
import { toWaits } from "./clock-waits.ts";

/** So many milliseconds pass in one look at what is waited for. */
const stepMs = 100;
/** This is three times as long as a test without this clock may take. */
const maxMs = 60_000;
/** Looks are this far apart in milliseconds, however many wait. */
const lookMs = 5;

/**
 * A clock that goes on as this process's time does, and that a test can put forward. It is for code between
 * real sockets.
 */
export interface FlowingClock extends Clock {
  /** Lets `ms` milliseconds pass at once. Fires what becomes due in order and lets that code run. */
  skip(ms: number): Promise<void>;
  /** Lets a tenth of a second pass. A loop that waits in real time calls it between two looks. */
  step(): Promise<void>;
  /**
   * Resolves to the result of `work`. Time passes faster until it is settled.
   * @throws Error when it is not settled after a minute of that time
   */
  passing<T>(work: Promise<T>): Promise<T>;
}

interface Timer {
  readonly fire: () => void;
  dueAt: number;
  readonly keepsAlive: boolean;
  handle: NodeJS.Timeout | undefined;
}

/**
 * Creates a clock that is not ahead yet.
 * @param onSkipped is called with the milliseconds that a test lets pass, before what is due then happens
 */
export function createFlowingClock(onSkipped: (ms: number) => void = () => undefined): FlowingClock {
  let skippedMs = 0;
  let steppedAt = Number.NEGATIVE_INFINITY;
  const timers = new Set<Timer>();
  const monotonic = (): number => performance.now() + skippedMs;

  function arm(timer: Timer): void {
    clearTimeout(timer.handle);
    timer.handle = setTimeout(() => timer.fire(), Math.max(0, timer.dueAt - monotonic()));
    if (!timer.keepsAlive) timer.handle.unref();
  }

  function add(ms: number, callback: () => void, keepsAlive: boolean, everyMs?: number): () => void {
    const timer: Timer = {
      dueAt: monotonic() + ms,
      keepsAlive,
      handle: undefined,
      fire() {
        if (everyMs === undefined) cancel();
        else {
          timer.dueAt += Math.max(1, everyMs);
          arm(timer);
        }
        callback();
      },
    };
    function cancel(): void {
      timers.delete(timer);
      clearTimeout(timer.handle);
    }
    timers.add(timer);
    arm(timer);
    return cancel;
  }

  function nextUntil(endMs: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of timers)
      if (timer.dueAt <= endMs && (first === undefined || timer.dueAt < first.dueAt)) first = timer;
    return first;
  }

  function pass(untilMs: number): void {
    const ms = Math.max(0, untilMs - monotonic());
    skippedMs += ms;
    onSkipped(ms);
  }

  async function skip(ms: number): Promise<void> {
    const endMs = monotonic() + ms;
    for (let timer = nextUntil(endMs); timer !== undefined; timer = nextUntil(endMs)) {
      pass(timer.dueAt);
      timer.fire();
      await turn();
    }
    pass(endMs);
    for (const timer of timers) arm(timer);
  }

  async function step(): Promise<void> {
    if (performance.now() - steppedAt < lookMs) return;
    steppedAt = performance.now();
    await skip(stepMs);
  }

  const after: Clock["after"] = (ms, callback, { keepsAlive = true } = {}) => add(ms, callback, keepsAlive);

  return {
    now: () => Math.round(systemClock.now() + skippedMs),
    monotonic,
    after,
    ...toWaits(after),
    every: (ms, callback) => add(ms, callback, false, ms),
    skip,
    step,
    async passing(work) {
      const lastAt = monotonic() + maxMs;
      const settled = Promise.allSettled([work]).then(() => true);
      for (;;) {
        const look = new Promise<boolean>((resolve) => setTimeout(resolve, lookMs, false));
        if (await Promise.race([settled, look])) return await work;
        if (monotonic() > lastAt) throw new Error("not settled within a minute of the time of the test");
        await step();
      }
    },
  };
}

/** Lets promises and immediates run. */
async function turn(): Promise<void> {
  for (let round = 0; round < 3; round++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** Returns the same platform, whose time passes faster while a test waits for it. */
export function hastened(platform: Platform, clock: FlowingClock): Platform {
  return {
    ...platform,
    openReply(address, hooks) {
      const reply = platform.openReply(address, hooks);
      return {
        ...reply,
        show: () => clock.passing(reply.show()),
        attach: (file) => clock.passing(reply.attach(file)),
        finish: (ending) => clock.passing(reply.finish(ending)),
        fail: (failure) => clock.passing(reply.fail(failure)),
      };
    },
    openThread: (...args) => clock.passing(platform.openThread(...args)),
    download: (...args) => clock.passing(platform.download(...args)),
    stop: () => clock.passing(platform.stop()),
  };
}
