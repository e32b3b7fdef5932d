/** What a call is for, the most urgent first: a final text or refusal, a first text, threads and files, a preview. */
export type Urgency = "final" | "first" | "files" | "preview";

/** What a lane is expected to take. */
export interface LaneLimit {
  /** Calls in any `windowMs`, until the platform says otherwise. */
  readonly perWindow: number;
  readonly windowMs: number;
  /** Rate limits never lower it below. */
  readonly floor: number;
  /**
   * The platform takes at least that, maybe more: until it has refused a call, only previews and kept room count on no
   * more. Default false.
   */
  readonly isMinimum?: boolean;
}

/** What the headers of a response say of a lane. */
export interface LaneState {
  readonly remaining: number;
  readonly resetMs: number;
  readonly limit?: number;
}

/** What may be sent against one limit of the platform. Times are milliseconds of one steady clock. */
export interface DeliveryLane {
  /** When a call of that urgency may be sent, with `ahead` others sent before it. Not after now: at once. */
  freeAt(urgency: Urgency, ahead?: number, hasReservation?: boolean): number;
  /** Counts a call, from now until a window after its answer. */
  sent(): void;
  /** Counted by {@link sent}, and now answered. */
  answered(): void;
  /** The platform refused a call: nothing is sent for that long, and less from then on. */
  limited(retryAfterMs: number): void;
  /** What the headers of a response say. `limit`: calls in a window, in place of what was expected. */
  learn(state: LaneState): void;
  /** Keeps room for one call. False: there is none. */
  reserve(): boolean;
  unreserve(): void;
  /** Replies that are live here: they share what is left for previews. */
  live: number;
  /** Time between two previews of one reply. Infinity: there is no room for previews. */
  previewIntervalMs(): number;
  /** Nothing is known of it that a new lane would not know. */
  isIdle(): boolean;
}

/** The part of a lane that calls of each urgency may use, so that the most urgent find room. */
const shares: Readonly<Record<Urgency, number>> = { final: 1, first: 0.85, files: 0.85, preview: 0.7 };
/** A window without a refusal gives back this part of what refusals have taken. */
const recoveryShare = 0.1;
const loweredShare = 0.9;
/** How long a refusal shows what a lane takes at most. */
const refusalMs = 10 * 60_000;
/** Ends of one window as different responses say it. */
const sameWindowMs = 250;
/** Previews that would be further apart are left out. */
const maxPreviewIntervalMs = 15_000;

/** @see {@link DeliveryLane} */
export function createDeliveryLane(limit: LaneLimit | undefined, now: () => number): DeliveryLane {
  const windowMs = limit?.windowMs ?? 0;
  let most = limit?.perWindow ?? Infinity;
  let capacity = most;
  let raisedAt = now();
  let closedUntil = Number.NEGATIVE_INFINITY;
  let refusedAt = Number.NEGATIVE_INFINITY;
  let reserved = 0;
  let inFlight = 0;
  let said: { readonly remaining: number; readonly resetAt: number } | undefined;
  /** When calls were answered: the platform has counted each between its start and then. */
  const times: number[] = [];

  /** Answered calls within the window that ends now. Those in flight count too. */
  function recent(): number[] {
    const start = now() - windowMs;
    while (times.length > 0 && (times[0] ?? 0) <= start) times.shift();
    return times;
  }

  function recover(): void {
    if (capacity >= most || windowMs === 0) return;
    const windows = Math.floor((now() - raisedAt) / windowMs);
    if (windows < 1) return;
    raisedAt += windows * windowMs;
    capacity = Math.min(most, capacity + Math.max(1, most * recoveryShare) * windows);
  }

  function roomOf(urgency: Urgency, hasReservation: boolean): number {
    recover();
    if (capacity === Infinity) return Infinity;
    if (limit?.isMinimum === true && urgency !== "preview" && now() > refusedAt + refusalMs) return Infinity;
    const share = Math.ceil(capacity * shares[urgency]);
    const usable = urgency === "final" || capacity <= 1 ? share : Math.min(share, Math.floor(capacity) - 1);
    return Math.max(1, usable - (hasReservation ? 0 : reserved));
  }

  const lane: DeliveryLane = {
    live: 0,
    freeAt(urgency, ahead = 0, hasReservation = false) {
      const at = now();
      let free = closedUntil;
      if (said !== undefined && at < said.resetAt && inFlight + ahead >= said.remaining)
        free = Math.max(free, said.resetAt);
      const room = roomOf(urgency, hasReservation);
      const used = recent();
      const count = used.length + inFlight;
      const missing = count + ahead + 1 - room;
      if (missing > 0) {
        const rounds = Math.floor((missing - 1) / Math.max(1, count));
        const slot = (missing - 1) % Math.max(1, count);
        free = Math.max(free, (used[slot] ?? at) + (rounds + 1) * windowMs);
      }
      return free;
    },
    sent() {
      inFlight += 1;
    },
    answered() {
      inFlight -= 1;
      if (limit !== undefined) times.push(now());
    },
    limited(retryAfterMs) {
      const at = now();
      closedUntil = Math.max(closedUntil, at + retryAfterMs);
      refusedAt = at;
      if (limit === undefined) return;
      // The refused call, which is still in flight, does not count.
      const taken = Math.max(0, recent().length + inFlight - 1);
      capacity = Math.max(limit.floor, Math.min(capacity, Math.floor(taken * loweredShare)));
      raisedAt = at + retryAfterMs;
    },
    learn({ remaining, resetMs, limit: perWindow }) {
      const resetAt = now() + resetMs;
      // Responses overtake each other within a window.
      const isSameWindow = said !== undefined && Math.abs(said.resetAt - resetAt) < sameWindowMs;
      said = { remaining: isSameWindow ? Math.min(said?.remaining ?? 0, remaining) : remaining, resetAt };
      if (perWindow === undefined || most === Infinity) return;
      capacity = capacity >= most ? perWindow : Math.min(capacity, perWindow);
      most = perWindow;
    },
    reserve() {
      recover();
      if (recent().length + inFlight + reserved + 1 > Math.max(1, Math.ceil(capacity))) return false;
      reserved += 1;
      return true;
    },
    unreserve() {
      reserved -= 1;
    },
    previewIntervalMs() {
      const room = roomOf("preview", false);
      if (room === Infinity) return 0;
      const interval = (lane.live * windowMs) / room;
      return interval > maxPreviewIntervalMs ? Infinity : interval;
    },
    isIdle() {
      recover();
      const isQuiet = inFlight === 0 && reserved === 0 && lane.live === 0 && recent().length === 0;
      return isQuiet && capacity >= most && now() >= Math.max(closedUntil, said?.resetAt ?? 0);
    },
  };
  return lane;
}
