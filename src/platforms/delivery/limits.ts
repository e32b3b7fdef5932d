import type { CancelTimer, Clock } from "../../core/clock.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { DeliveryState } from "../../core/platform.ts";
import type { Meter } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";

/** The first words of a reply are "first". Growing text and signs of work are "growth". All else is final. */
export type Urgency = "final" | "first" | "growth";

/** What a lane takes. */
export interface LaneLimit {
  /** How many calls fit into any `windowMs`. */
  readonly perWindow: number;
  readonly windowMs: number;
}

/** A call of the platform's API that counts against limits. */
export interface DeliveryCall {
  /** The limits it counts against, the most specific first: `chat.postMessage C1`, `chat.postMessage`. */
  readonly lanes: readonly string[];
  readonly urgency: Urgency;
  /** The name of the method, for metrics. It is from a small fixed set. */
  readonly method: string;
  /** By when it must be sent, by {@link Clock.monotonic}. */
  readonly deadline: number;
  /** A call that waits leaves its lanes when this aborts. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sends the calls of one platform under its limits, in this process. A lane has two numbers: what its window
 * takes, and until when it is closed.
 */
export interface Limits extends DeliveryState {
  isFull(): boolean;
  /**
   * Sends a call when it is its turn: final ones first, then first words, then the oldest. Where the platform
   * refuses it as too many (a ParleyError with `retryAfterMs`), its first lane (or `detail.lane`) is closed
   * for that time, and twice as long for what is not final. The refused call does not count.
   * @throws what `work` throws; the reason of `signal`; ParleyError `platform-unreachable` with
   *   `retryAfterMs` where it would be sent after its deadline
   */
  send<T>(call: DeliveryCall, work: () => Promise<T>): Promise<T>;
  /** Returns how long a call would wait now, in milliseconds. 0 means that it would be sent at once. */
  waitMs(lanes: readonly string[], urgency: Urgency): number;
  /** Notes that a reply grows there and shares the room for growth. Returns what ends that. */
  join(lane: string): () => void;
  /** Returns the time between two changes of a reply that grows there, in milliseconds. */
  intervalMs(lane: string): number;
}

/** The options of {@link createLimits}. */
export interface LimitsOptions {
  /** {@link Platform.id}, for metrics. */
  readonly platform: string;
  /** Returns what a lane takes, or `undefined` where no limit is known. */
  readonly limitOf: (lane: string) => LaneLimit | undefined;
  /** When this many calls wait, new turns are refused as busy. Default 500. */
  readonly maxWaiting?: number;
  readonly meter?: Meter | undefined;
  /** The default is the time of this process. */
  readonly clock?: Clock | undefined;
}

interface Waiting {
  readonly call: DeliveryCall;
  readonly lanes: readonly Lane[];
  start(): void;
  fail(error: ParleyError): void;
}

/** Past this number, lanes of quiet channels are forgotten. */
const maxLanes = 2000;
const rank: Readonly<Record<Urgency, number>> = { final: 0, first: 1, growth: 2 };

export function createLimits(options: LimitsOptions): Limits {
  const { platform, limitOf, maxWaiting = 500, meter, clock = systemClock } = options;
  const lanes = new Map<string, Lane>();
  /** The queue is sorted by urgency, then age. */
  const queue: Waiting[] = [];
  const now = (): number => clock.monotonic();
  let cancelTimer: CancelTimer | undefined;

  function laneOf(name: string): Lane {
    const known = lanes.get(name);
    if (known !== undefined) return known;
    if (lanes.size >= maxLanes)
      for (const [other, lane] of lanes) if (lane.isIdle(now())) lanes.delete(other);
    const lane = createLane(limitOf(name) ?? { perWindow: Infinity, windowMs: 0 });
    lanes.set(name, lane);
    return lane;
  }

  function remove(waiting: Waiting): void {
    const at = queue.indexOf(waiting);
    if (at !== -1) queue.splice(at, 1);
  }

  /** Starts what may be sent now, and sleeps until the next may be. */
  function pump(): void {
    const time = now();
    let wakeAt = Infinity;
    for (const waiting of queue.slice()) {
      // What starts may call again, and start others.
      if (!queue.includes(waiting)) continue;
      const { call, lanes: its } = waiting;
      const free = Math.max(...its.map((lane) => lane.freeAt(call.urgency, time)));
      if (free > time && free <= call.deadline) wakeAt = Math.min(wakeAt, free);
      else {
        remove(waiting);
        if (free <= time) waiting.start();
        else waiting.fail(tooLate(call, free - time));
      }
    }
    cancelTimer?.();
    cancelTimer = wakeAt < Infinity ? clock.after(Math.max(1, wakeAt - time), pump) : undefined;
  }

  function tooLate({ method }: DeliveryCall, retryAfterMs: number): ParleyError {
    return new ParleyError("platform-unreachable", `no room under the platform's limits: ${method}`, {
      retryAfterMs: Math.ceil(retryAfterMs),
    });
  }

  /** Makes a call that has its turn. It counts from now until a window after its answer. */
  async function run<T>(call: DeliveryCall, its: readonly Lane[], work: () => Promise<T>): Promise<T> {
    let isRefused = false;
    try {
      return await work();
    } catch (error) {
      if (isParleyError(error) && error.retryAfterMs !== undefined) {
        isRefused = true;
        meter?.({ kind: "limited", platform, method: call.method });
        const named = call.lanes.indexOf(String(error.detail["lane"]));
        its[Math.max(0, named)]?.refused(error.retryAfterMs, now());
      }
      throw error;
    } finally {
      for (const lane of its) lane.answered(now(), isRefused);
      pump();
    }
  }

  async function send<T>(call: DeliveryCall, work: () => Promise<T>): Promise<T> {
    const { signal, method, urgency } = call;
    signal?.throwIfAborted();
    const its = call.lanes.map(laneOf);
    const since = now();
    let hasWaited = false;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const leave = (): void => {
      remove(waiting);
      reject(signal?.reason);
    };
    const settle = (): void => signal?.removeEventListener("abort", leave);
    const waiting: Waiting = {
      call,
      lanes: its,
      start() {
        settle();
        const seconds = (now() - since) / 1000;
        if (hasWaited) meter?.({ kind: "delivered", platform, method, urgency, seconds });
        for (const lane of its) lane.sent();
        resolve(run(call, its, work));
      },
      fail(error) {
        settle();
        reject(error);
      },
    };
    signal?.addEventListener("abort", leave, { once: true });
    const at = queue.findLastIndex((other) => rank[other.call.urgency] <= rank[urgency]);
    queue.splice(at + 1, 0, waiting);
    pump();
    hasWaited = true;
    return await promise;
  }

  return {
    send,
    waitMs(names, urgency) {
      const time = now();
      const free = names.map((name) => {
        const lane = laneOf(name);
        const isAhead = (other: Waiting): boolean =>
          rank[other.call.urgency] <= rank[urgency] && other.lanes.includes(lane);
        return lane.freeAt(urgency, time, queue.filter(isAhead).length);
      });
      return Math.max(time, ...free) - time;
    },
    join(name) {
      const lane = laneOf(name);
      lane.growing += 1;
      let isGrowing = true;
      return () => {
        if (isGrowing) lane.growing -= 1;
        isGrowing = false;
      };
    },
    intervalMs: (name) => laneOf(name).intervalMs(now()),
    isFull: () => queue.length >= maxWaiting,
    waiting() {
      const alike = Map.groupBy(queue, ({ call }) => `${call.method} ${call.urgency}`);
      return Array.from(alike.values(), (waiting) => {
        const { method, urgency } = waiting[0]!.call;
        return { method, urgency, count: waiting.length };
      });
    },
  };
}

/** Windows from this on are those of a minute. */
const longMs = 30_000;
/** The part of a window that growth may use, so that the rest finds room: of a short one, and of a minute. */
const share = { short: 0.8, long: 0.6 };
/** After a refusal growth and first words stay out so many times as long. */
const quietTimes = 2;

type Lane = ReturnType<typeof createLane>;

/** Tracks one limit of the platform. Times such as `at` are milliseconds of one steady clock. */
function createLane({ perWindow, windowMs }: LaneLimit) {
  const isLong = windowMs >= longMs;
  const forGrowth = Math.max(1, Math.floor(perWindow * (isLong ? share.long : share.short)));
  let closedUntil = Number.NEGATIVE_INFINITY;
  let quietUntil = Number.NEGATIVE_INFINITY;
  let inFlight = 0;
  /** When calls were answered. The platform has counted each between its start and then. */
  const times: number[] = [];

  /** Returns the answered calls in the window that ends then. Calls in flight count too. */
  function recent(at: number): readonly number[] {
    while (times.length > 0 && times[0]! <= at - windowMs) times.shift();
    return times;
  }

  const lane = {
    /** How many replies grow here. They share what growth may use. */
    growing: 0,
    /** Returns when such a call may be sent, after `ahead` others. A time up to `at` means at once. */
    freeAt(urgency: Urgency, at: number, ahead = 0): number {
      const missing =
        recent(at).length + inFlight + ahead + 1 - (urgency === "growth" ? forGrowth : perWindow);
      const openAt = urgency === "final" ? closedUntil : quietUntil;
      return missing > 0 ? Math.max(openAt, (times[missing - 1] ?? at) + windowMs) : openAt;
    },
    sent(): void {
      inFlight += 1;
    },
    /** Notes the answer to a call that {@link sent} has counted. One that was refused does not count. */
    answered(at: number, isRefused: boolean): void {
      inFlight -= 1;
      if (!isRefused) times.push(at);
    },
    refused(retryAfterMs: number, at: number): void {
      closedUntil = Math.max(closedUntil, at + retryAfterMs);
      quietUntil = Math.max(quietUntil, at + retryAfterMs * quietTimes);
    },
    /** In a window of a minute a text grows fast at first, and slower the fuller the window is. */
    intervalMs(at: number): number {
      const evenly = (lane.growing * windowMs) / forGrowth;
      return isLong ? (evenly * 2 * recent(at).length) / forGrowth : evenly;
    },
    /** Whether a new lane would know as much as this one. */
    isIdle(at: number): boolean {
      return inFlight === 0 && lane.growing === 0 && recent(at).length === 0 && at >= quietUntil;
    },
  };
  return lane;
}
