import type { Clock } from "../../core/clock.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Meter } from "../../core/telemetry.ts";
import type { Load } from "../metric-sources.ts";

/** What is sampled. */
export interface LoadSources {
  readonly load: () => Load;
  /** Calls to platforms that wait for room under their limits. */
  readonly deliveryWaiting: () => number;
  /** Whether each platform is connected, by its id. */
  readonly isConnected: () => Readonly<Record<string, boolean>>;
  readonly clock: Clock;
}

/** One series for each of its names, all of the same length; times in Unix seconds, oldest first. */
export interface LoadSeries {
  readonly times: readonly number[];
  readonly turnsRunning: readonly number[];
  readonly turnsWaiting: readonly number[];
  readonly callsRunning: readonly number[];
  readonly callsWaiting: readonly number[];
  readonly deliveryWaiting: readonly number[];
}

/** Turns that ended in one minute. Times in seconds; `null`: there were none. */
export interface MinuteFigures {
  /** Unix seconds, when it began. */
  readonly time: number;
  readonly turns: number;
  readonly failed: number;
  readonly refused: number;
  readonly turnP50: number | null;
  readonly turnP95: number | null;
  readonly firstTextP50: number | null;
  readonly firstTextP95: number | null;
}

/** What is known of a platform since the start. Times in Unix ms. */
export interface PlatformActivity {
  /** When its last event was accepted. */
  readonly lastEventAt?: number;
  /** How often it was connected again, as seen once a second. */
  readonly reconnects: number;
  /** Calls that it refused as too many. */
  readonly limited: number;
}

/** What a process did in the last hour, in memory. */
export interface LoadHistory {
  /** Passes everything on, and counts. */
  countInto(meter: Meter): Meter;
  /** Notes when the last event of each platform was accepted. */
  watchEvents<T extends Pick<Receiver, "receive" | "keep">>(receiver: T): T;
  series(): LoadSeries;
  minutes(): readonly MinuteFigures[];
  activity(platform: string): PlatformActivity;
  /** Requests that were not taken or were given up since the start, by the code of the reason. */
  refusals(): Readonly<Record<string, number>>;
  close(): void;
}

const sampleEveryMs = 10_000;
const maxSamples = 360;
const watchEveryMs = 1000;
const minuteMs = 60_000;
const maxMinutes = 60;
/** Of one minute; of more, each further one replaces one at random. */
const maxValues = 1000;

interface Minute {
  readonly time: number;
  readonly turns: Values;
  readonly firstTexts: Values;
  failed: number;
  refused: number;
}

interface Values {
  readonly kept: number[];
  count: number;
}

/** @see {@link LoadHistory} */
export function createLoadHistory({ load, deliveryWaiting, isConnected, clock }: LoadSources): LoadHistory {
  const samples: { readonly time: number; readonly load: Load; readonly delivery: number }[] = [];
  const minutes: Minute[] = [];
  const activities = new Map<string, { lastEventAt?: number; reconnects: number; limited: number }>();
  const connected = new Map<string, boolean>();
  const refusals = new Map<string, number>();

  const activityOf = (platform: string) => {
    const known = activities.get(platform) ?? { reconnects: 0, limited: 0 };
    activities.set(platform, known);
    return known;
  };
  const minute = (): Minute => {
    const time = Math.floor(clock.now() / minuteMs) * minuteMs;
    const last = minutes.at(-1);
    if (last?.time === time) return last;
    const started: Minute = {
      time,
      turns: { kept: [], count: 0 },
      firstTexts: { kept: [], count: 0 },
      failed: 0,
      refused: 0,
    };
    minutes.push(started);
    if (minutes.length > maxMinutes) minutes.shift();
    return started;
  };
  const noted = async <T>({ platform }: IncomingEvent, accepting: Promise<T>): Promise<T> => {
    const accepted = await accepting;
    activityOf(platform).lastEventAt = clock.now();
    return accepted;
  };
  const sample = (): void => {
    samples.push({ time: clock.now(), load: load(), delivery: deliveryWaiting() });
    if (samples.length > maxSamples) samples.shift();
  };
  const watch = (): void => {
    for (const [platform, isUp] of Object.entries(isConnected())) {
      // The first connection is none that was lost.
      if (isUp && connected.get(platform) === false) activityOf(platform).reconnects++;
      if (isUp || connected.has(platform)) connected.set(platform, isUp);
    }
  };
  const timers = [clock.every(sampleEveryMs, sample), clock.every(watchEveryMs, watch)];

  return {
    countInto: (meter) => ({
      ...meter,
      turn(labels, seconds) {
        const current = minute();
        add(current.turns, seconds);
        if (labels.outcome === "failed") current.failed++;
        meter.turn(labels, seconds);
      },
      firstText(labels, seconds) {
        add(minute().firstTexts, seconds);
        meter.firstText(labels, seconds);
      },
      refused(labels) {
        minute().refused++;
        refusals.set(labels.code, (refusals.get(labels.code) ?? 0) + 1);
        meter.refused(labels);
      },
      platformLimited(labels) {
        activityOf(labels.platform).limited++;
        meter.platformLimited(labels);
      },
    }),
    watchEvents: (receiver) => ({
      ...receiver,
      receive: (event) => noted(event, receiver.receive(event)),
      keep: (event) => noted(event, receiver.keep(event)),
    }),
    series() {
      // So that a page that was just opened shows the present.
      const current = [...samples, { time: clock.now(), load: load(), delivery: deliveryWaiting() }];
      return {
        times: current.map(({ time }) => Math.floor(time / 1000)),
        turnsRunning: current.map((each) => each.load.turns.running),
        turnsWaiting: current.map((each) => each.load.turns.waiting),
        callsRunning: current.map((each) => each.load.gatewayCalls.running),
        callsWaiting: current.map((each) => each.load.gatewayCalls.waiting),
        deliveryWaiting: current.map(({ delivery }) => delivery),
      };
    },
    minutes: () =>
      minutes.map(({ time, turns, firstTexts, failed, refused }) => ({
        time: time / 1000,
        turns: turns.count,
        failed,
        refused,
        turnP50: quantile(turns, 0.5),
        turnP95: quantile(turns, 0.95),
        firstTextP50: quantile(firstTexts, 0.5),
        firstTextP95: quantile(firstTexts, 0.95),
      })),
    activity: (platform) => ({ ...activityOf(platform) }),
    refusals: () => Object.fromEntries(refusals),
    close() {
      for (const cancel of timers) cancel();
    },
  };
}

function add(values: Values, value: number): void {
  values.count++;
  const { kept } = values;
  if (kept.length < maxValues) {
    kept.push(value);
    return;
  }
  const at = Math.floor(Math.random() * values.count);
  if (at < maxValues) kept[at] = value;
}

function quantile({ kept }: Values, share: number): number | null {
  const sorted = kept.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
}
