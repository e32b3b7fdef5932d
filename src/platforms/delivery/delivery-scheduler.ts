import type { CancelTimer, Clock } from "../../core/clock.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { DeliveryState } from "../../core/platform.ts";
import type { Meter } from "../../core/telemetry.ts";
import {
  createDeliveryLane,
  type DeliveryLane,
  type LaneLimit,
  type LaneState,
  type Urgency,
} from "./delivery-lane.ts";
import { systemClock } from "../../support/clock.ts";
import { createSuspensionWatch, type SuspensionWatch } from "./suspension-watch.ts";

/** A call of the platform's API that shows something to people. */
export interface DeliveryCall {
  /** The limits it counts against, the most specific first: `chat.postMessage C1`, `chat.postMessage`. */
  readonly lanes: readonly string[];
  readonly urgency: Urgency;
  /** Name of the method, for metrics; from a small fixed set. */
  readonly method: string;
  /** By when it must be sent, by {@link Clock.monotonic}. */
  readonly deadline: number;
  readonly signal?: AbortSignal | undefined;
  /** Room that was kept for it. The call uses it up. */
  readonly reservation?: Reservation | undefined;
}

/** Room in a lane, kept for one later call. */
export interface Reservation {
  readonly lane: string;
  /** Gives the room back. Calling it again has no effect. */
  release(): void;
}

/** Sends the calls of one platform under its limits, the most urgent first. Limits hold for this process. */
export interface DeliveryScheduler extends DeliveryState {
  /**
   * Sends a call when it is its turn: the most urgent first, then the oldest. Where the platform refuses it as too many
   * (a ParleyError with `retryAfterMs`), its first lane (or `detail.lane`) is closed for that time.
   * @throws what `work` throws; the reason of `signal`; ParleyError `platform-unreachable` with `retryAfterMs`: it
   *   would be sent after its deadline
   */
  send<T>(call: DeliveryCall, work: () => Promise<T>): Promise<T>;
  /** How long a call would wait now, in milliseconds. 0: it would be sent at once. */
  waitMs(lanes: readonly string[], urgency: Urgency): number;
  /** Keeps room for one final call of a lane. `undefined`: there is none now. */
  reserve(lane: string): Reservation | undefined;
  /** What a response's headers say of a lane. */
  learn(lane: string, state: LaneState): void;
  /** A reply is live there and shares the room for previews. Returns what ends that. */
  join(lane: string): () => void;
  /** Time between two previews of one live reply, in milliseconds. Infinity: there is no room for previews. */
  previewIntervalMs(lane: string): number;
}

/** Options of {@link createDeliveryScheduler}. */
export interface DeliverySchedulerOptions {
  /** {@link Platform.id}, for metrics. */
  readonly platform: string;
  /** What a lane takes until the platform says otherwise. `undefined`: no limit is known. */
  readonly limitOf: (lane: string) => LaneLimit | undefined;
  /** With so many calls waiting new turns are refused as busy. Default 500. */
  readonly maxWaiting?: number;
  readonly meter?: Pick<Meter, "delivery" | "platformLimited">;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
  /** Default: of this process. */
  readonly suspensions?: Pick<SuspensionWatch, "wasSuspended">;
}

interface Waiting {
  readonly call: DeliveryCall;
  readonly lanes: readonly DeliveryLane[];
  readonly since: number;
  start(): void;
  fail(error: ParleyError): void;
}

const order: Readonly<Record<Urgency, number>> = { final: 0, first: 1, files: 2, preview: 3 };
/** Lanes of channels that are quiet are forgotten past this number. */
const maxLanes = 2000;
/**
 * After a suspension nothing that waited is sent for so long: a process that lost a conversation meanwhile learns that, and
 * abandons the reply, which takes its calls out of the queue.
 */
const afterSuspensionMs = 1000;

/** @see {@link DeliveryScheduler} */
export function createDeliveryScheduler(options: DeliverySchedulerOptions): DeliveryScheduler {
  const { platform, limitOf, maxWaiting = 500, meter, clock = systemClock } = options;
  const lanes = new Map<string, DeliveryLane>();
  /** By urgency, then age. */
  const queue: Waiting[] = [];
  const { suspensions = createSuspensionWatch(clock) } = options;
  const now = (): number => clock.monotonic();
  let cancelTimer: CancelTimer | undefined;
  let isPumping = false;
  let resumesAt = Number.NEGATIVE_INFINITY;

  function laneOf(name: string): DeliveryLane {
    const known = lanes.get(name);
    if (known !== undefined) return known;
    if (lanes.size >= maxLanes) {
      for (const [other, lane] of lanes) if (lane.isIdle()) lanes.delete(other);
    }
    const lane = createDeliveryLane(limitOf(name), now);
    lanes.set(name, lane);
    return lane;
  }

  function freeAt({ call, lanes: its }: Waiting): number {
    let free = Number.NEGATIVE_INFINITY;
    for (const [index, lane] of its.entries()) {
      const isReserved = call.reservation !== undefined && call.reservation.lane === call.lanes[index];
      free = Math.max(free, lane.freeAt(call.urgency, 0, isReserved));
    }
    return free;
  }

  function enqueue(waiting: Waiting): void {
    const rank = order[waiting.call.urgency];
    const at = queue.findLastIndex((other) => order[other.call.urgency] <= rank);
    queue.splice(at + 1, 0, waiting);
  }

  function remove(waiting: Waiting): void {
    const at = queue.indexOf(waiting);
    if (at !== -1) queue.splice(at, 1);
  }

  /** Starts what may be sent now, and sleeps until the next may be. */
  function pump(): void {
    if (isPumping || queue.length === 0) return;
    isPumping = true;
    cancelTimer?.();
    const time = now();
    if (suspensions.wasSuspended()) resumesAt = time + afterSuspensionMs;
    if (resumesAt > time) {
      isPumping = false;
      cancelTimer = clock.after(resumesAt - time, pump);
      return;
    }
    let wakeAt = Infinity;
    for (const waiting of queue.slice()) {
      const free = freeAt(waiting);
      if (free <= time) {
        remove(waiting);
        waiting.start();
      } else if (free > waiting.call.deadline) {
        remove(waiting);
        waiting.fail(tooLate(waiting.call, free - time));
      } else wakeAt = Math.min(wakeAt, free);
    }
    isPumping = false;
    if (wakeAt < Infinity) cancelTimer = clock.after(Math.max(1, wakeAt - time), pump);
  }

  function tooLate({ method }: DeliveryCall, retryAfterMs: number): ParleyError {
    return new ParleyError("platform-unreachable", `no room under the platform's limits: ${method}`, {
      retryAfterMs: Math.ceil(retryAfterMs),
    });
  }

  /** Resolves when the call may be sent, counted as sent. */
  function turnOf(call: DeliveryCall, its: readonly DeliveryLane[]): Promise<void> | undefined {
    const count = (): void => {
      call.reservation?.release();
      for (const lane of its) lane.sent();
    };
    const time = now();
    const probe: Waiting = { call, lanes: its, since: time, start: count, fail: () => undefined };
    const free = freeAt(probe);
    const isOvertaking = queue.some(
      (other) =>
        order[other.call.urgency] <= order[call.urgency] && other.lanes.some((lane) => its.includes(lane)),
    );
    if (free <= time && !isOvertaking) {
      count();
      return undefined;
    }
    if (free > call.deadline) return Promise.reject(tooLate(call, free - time));
    return new Promise((resolve, reject) => {
      const { signal } = call;
      const settle = (): void => signal?.removeEventListener("abort", onAbort);
      const waiting: Waiting = {
        ...probe,
        start() {
          settle();
          count();
          resolve();
        },
        fail(error) {
          settle();
          reject(error);
        },
      };
      function onAbort(): void {
        remove(waiting);
        reject(signal?.reason as Error);
      }
      signal?.addEventListener("abort", onAbort, { once: true });
      enqueue(waiting);
      pump();
    });
  }

  return {
    async send(call, work) {
      call.signal?.throwIfAborted();
      const { method, urgency } = call;
      const its = call.lanes.map(laneOf);
      const since = now();
      const turn = turnOf(call, its);
      if (turn !== undefined) {
        await turn;
        meter?.delivery({ platform, method, urgency }, (now() - since) / 1000);
      }
      try {
        return await work();
      } catch (error) {
        if (isParleyError(error) && error.retryAfterMs !== undefined) {
          meter?.platformLimited({ platform, method });
          const { lane } = error.detail;
          const limited = typeof lane === "string" && call.lanes.includes(lane) ? laneOf(lane) : its[0];
          limited?.limited(error.retryAfterMs);
        }
        throw error;
      } finally {
        for (const lane of its) lane.answered();
        pump();
      }
    },
    waitMs(names, urgency) {
      const time = now();
      let free = time;
      for (const name of names) {
        const lane = laneOf(name);
        const ahead = queue.filter(
          (other) => order[other.call.urgency] <= order[urgency] && other.lanes.includes(lane),
        ).length;
        free = Math.max(free, lane.freeAt(urgency, ahead));
      }
      return free - time;
    },
    reserve(name) {
      const lane = laneOf(name);
      if (!lane.reserve()) return undefined;
      let isKept = true;
      return {
        lane: name,
        release() {
          if (!isKept) return;
          isKept = false;
          lane.unreserve();
          pump();
        },
      };
    },
    learn(name, state) {
      laneOf(name).learn(state);
    },
    join(name) {
      const lane = laneOf(name);
      lane.live += 1;
      let isLive = true;
      return () => {
        if (isLive) lane.live -= 1;
        isLive = false;
      };
    },
    previewIntervalMs: (name) => laneOf(name).previewIntervalMs(),
    isFull: () => queue.length >= maxWaiting,
    waiting() {
      const counts = new Map<string, { method: string; urgency: Urgency; count: number }>();
      for (const { call } of queue) {
        const key = `${call.method} ${call.urgency}`;
        const entry = counts.get(key) ?? { method: call.method, urgency: call.urgency, count: 0 };
        entry.count += 1;
        counts.set(key, entry);
      }
      return [...counts.values()];
    },
  };
}
