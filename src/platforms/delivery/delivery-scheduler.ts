import type { Clock, CancelTimer } from "../../core/clock.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { DeliveryState } from "../../core/platform.ts";
import type { Meter } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";

/** A preview is left out where there is no room for it: growing text, a sign of work. All else is final. */
export type Urgency = "final" | "preview";

/** What a lane takes. */
export interface LaneLimit {
  /** How many calls fit into any `windowMs`. */
  readonly perWindow: number;
  readonly windowMs: number;
  /**
   * Whether the platform takes at least `perWindow`, and perhaps more. Final calls above that are sent one
   * after another. Default false.
   */
  readonly isMinimum?: boolean;
}

/** A call of the platform's API that shows something to people. */
export interface DeliveryCall {
  /** The limits it counts against, the most specific first: `chat.postMessage C1`, `chat.postMessage`. */
  readonly lanes: readonly string[];
  readonly urgency: Urgency;
  /** The name of the method, for metrics. It is from a small fixed set. */
  readonly method: string;
  /** By when it must be sent, by {@link Clock.monotonic}. */
  readonly deadline: number;
  readonly signal?: AbortSignal | undefined;
  /** Capacity that was reserved for this call, which uses it up. */
  readonly reservation?: Reservation | undefined;
}

/** Capacity in a lane that is reserved for one later call. */
export interface Reservation {
  readonly lane: string;
  /** Gives the capacity back. Calling it again has no effect. */
  release(): void;
}

/** Sends the calls of one platform under its limits, final ones first. They hold for this process. */
export interface DeliveryScheduler extends DeliveryState {
  isFull(): boolean;
  /**
   * Sends a call when it is its turn: final ones first, then the oldest. Where the platform refuses it
   * as too many (a ParleyError with `retryAfterMs`), its first lane (or `detail.lane`) is closed for that
   * time. Nothing else changes: the call does not count, and later ones find the same room.
   * @throws what `work` throws; the reason of `signal`; ParleyError `platform-unreachable` with
   *   `retryAfterMs` where it would be sent after its deadline
   */
  send<T>(call: DeliveryCall, work: () => Promise<T>): Promise<T>;
  /** Returns how long a call would wait now, in milliseconds. 0 means that it would be sent at once. */
  waitMs(lanes: readonly string[], urgency: Urgency): number;
  /** Reserves capacity for one final call of a lane. Returns `undefined` where there is none now. */
  reserve(lane: string): Reservation | undefined;
  /** Notes that a reply is live there and shares the room for previews. Returns what ends that. */
  join(lane: string): () => void;
  /** Returns the time between two previews of a live reply, in milliseconds. Infinity means no previews. */
  previewIntervalMs(lane: string): number;
}

/** The options of {@link createDeliveryScheduler}. */
export interface DeliverySchedulerOptions {
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
  readonly lanes: readonly DeliveryLane[];
  start(): void;
  fail(error: ParleyError): void;
}

/** Past this number, lanes of quiet channels are forgotten. */
const maxLanes = 2000;
export function createDeliveryScheduler(options: DeliverySchedulerOptions): DeliveryScheduler {
  const { platform, limitOf, maxWaiting = 500, meter, clock = systemClock } = options;
  const lanes = new Map<string, DeliveryLane>();
  /** The queue is sorted by urgency, then age. */
  const queue: Waiting[] = [];
  const now = (): number => clock.monotonic();
  let cancelTimer: CancelTimer | undefined;
  let isPumping = false;

  function laneOf(name: string, time: number): DeliveryLane {
    const known = lanes.get(name);
    if (known !== undefined) return known;
    if (lanes.size >= maxLanes) {
      for (const [other, lane] of lanes) if (lane.isIdle(time)) lanes.delete(other);
    }
    const lane = createDeliveryLane(limitOf(name));
    lanes.set(name, lane);
    return lane;
  }

  function freeAt({ call, lanes: its }: Waiting, time: number): number {
    let free = Number.NEGATIVE_INFINITY;
    for (const [index, lane] of its.entries()) {
      const isReserved = call.reservation !== undefined && call.reservation.lane === call.lanes[index];
      free = Math.max(free, lane.freeAt(call.urgency, time, 0, isReserved));
    }
    return free;
  }

  function enqueue(waiting: Waiting): void {
    const { urgency } = waiting.call;
    const at = queue.findLastIndex((other) => isBefore(other.call.urgency, urgency));
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
    let wakeAt = Infinity;
    for (const waiting of queue.slice()) {
      const free = freeAt(waiting, time);
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

  /** Resolves when the call may be sent, and counts it as sent. */
  function turnOf(call: DeliveryCall, its: readonly DeliveryLane[], time: number): Promise<void> | undefined {
    const count = (): void => {
      call.reservation?.release();
      for (const lane of its) lane.sent();
    };
    const probe: Waiting = { call, lanes: its, start: count, fail: () => undefined };
    const free = freeAt(probe, time);
    const isOvertaking = queue.some(
      (other) => isBefore(other.call.urgency, call.urgency) && other.lanes.some((lane) => its.includes(lane)),
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

  async function send<T>(call: DeliveryCall, work: () => Promise<T>): Promise<T> {
    call.signal?.throwIfAborted();
    const { method, urgency } = call;
    const since = now();
    const its = call.lanes.map((name) => laneOf(name, since));
    const turn = turnOf(call, its, since);
    if (turn !== undefined) {
      await turn;
      meter?.({ kind: "delivered", platform, method, urgency, seconds: (now() - since) / 1000 });
    }
    let isRefused = false;
    try {
      return await work();
    } catch (error) {
      if (isParleyError(error) && error.retryAfterMs !== undefined) {
        isRefused = true;
        meter?.({ kind: "limited", platform, method });
        const { lane } = error.detail;
        const named = call.lanes.findIndex((name) => name === lane);
        its[Math.max(0, named)]?.limited(error.retryAfterMs, now());
      }
      throw error;
    } finally {
      const answeredAt = now();
      for (const lane of its) lane.answered(answeredAt, isRefused);
      pump();
    }
  }

  return {
    send,
    waitMs(names, urgency) {
      const time = now();
      let free = time;
      for (const name of names) {
        const lane = laneOf(name, time);
        const ahead = queue.filter(
          (other) => isBefore(other.call.urgency, urgency) && other.lanes.includes(lane),
        ).length;
        free = Math.max(free, lane.freeAt(urgency, time, ahead));
      }
      return free - time;
    },
    reserve(name) {
      const time = now();
      const lane = laneOf(name, time);
      if (!lane.reserve(time)) return undefined;
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
    join(name) {
      const lane = laneOf(name, now());
      lane.live += 1;
      let isLive = true;
      return () => {
        if (isLive) lane.live -= 1;
        isLive = false;
      };
    },
    previewIntervalMs(name) {
      return laneOf(name, now()).previewIntervalMs();
    },
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

/** Whether a call that waits goes before a later one. */
function isBefore(waiting: Urgency, later: Urgency): boolean {
  return waiting === "final" || later === "preview";
}

/** The part of a lane that previews may use, so that final calls find room. */
const previewShare = 0.7;
/** How long an answer takes. A call that waits for one is looked at again then. */
const answerMs = 100;
/** Previews that would be further apart are left out. */
const maxPreviewIntervalMs = 15_000;

type DeliveryLane = ReturnType<typeof createDeliveryLane>;

/** Tracks one limit of the platform. Times such as `at` are milliseconds of one steady clock. */
function createDeliveryLane(limit: LaneLimit | undefined) {
  const { perWindow = Infinity, windowMs = 0, isMinimum = false } = limit ?? {};
  let closedUntil = Number.NEGATIVE_INFINITY;
  let reserved = 0;
  let inFlight = 0;
  /** When calls were answered. The platform has counted each between its start and then. */
  const times: number[] = [];

  /** Returns the answered calls in the window that ends then. Calls in flight count too. */
  function recent(at: number): number[] {
    const start = at - windowMs;
    while (times.length > 0 && (times[0] ?? 0) <= start) times.shift();
    return times;
  }

  function roomOf(urgency: Urgency, hasReservation: boolean): number {
    if (perWindow === Infinity) return Infinity;
    const usable =
      urgency === "final" || perWindow <= 1
        ? perWindow
        : Math.min(Math.ceil(perWindow * previewShare), perWindow - 1);
    return Math.max(1, usable - (hasReservation ? 0 : reserved));
  }

  const lane = {
    /** How many replies are live here. They share what is left for previews. */
    live: 0,
    /** Returns when such a call may be sent, after `ahead` others. A time up to `at` means at once. */
    freeAt(urgency: Urgency, at: number, ahead = 0, hasReservation = false): number {
      const used = recent(at);
      const count = used.length + inFlight;
      const missing = count + ahead + 1 - roomOf(urgency, hasReservation);
      if (missing <= 0) return closedUntil;
      if (isMinimum && urgency === "final") return Math.max(closedUntil, at + (inFlight + ahead) * answerMs);
      const rounds = Math.floor((missing - 1) / Math.max(1, count));
      const slot = (missing - 1) % Math.max(1, count);
      return Math.max(closedUntil, (used[slot] ?? at) + (rounds + 1) * windowMs);
    },
    /** Counts a call, from now until a window after its answer. */
    sent(): void {
      inFlight += 1;
    },
    /** Notes the answer to a call that {@link sent} has counted. One that was refused does not count. */
    answered(at: number, isRefused: boolean): void {
      inFlight -= 1;
      if (limit !== undefined && !isRefused) times.push(at);
    },
    /** Notes that the platform refused a call. Nothing is sent for that long. */
    limited(retryAfterMs: number, at: number): void {
      closedUntil = Math.max(closedUntil, at + retryAfterMs);
    },
    /** Reserves capacity for one call. Returns false where there is none. */
    reserve(at: number): boolean {
      if (recent(at).length + inFlight + reserved + 1 > perWindow) return false;
      reserved += 1;
      return true;
    },
    unreserve(): void {
      reserved -= 1;
    },
    /** Returns the time between two previews of one reply. Infinity means that there is no room for them. */
    previewIntervalMs(): number {
      const room = roomOf("preview", false);
      if (room === Infinity) return 0;
      const interval = (lane.live * windowMs) / room;
      return interval > maxPreviewIntervalMs ? Infinity : interval;
    },
    /** Whether a new lane would know as much as this one. */
    isIdle(at: number): boolean {
      const isQuiet = inFlight === 0 && reserved === 0 && lane.live === 0 && recent(at).length === 0;
      return isQuiet && at >= closedUntil;
    },
  };
  return lane;
}
