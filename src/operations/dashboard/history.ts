import type { Clock } from "../../core/clock.ts";
import type { Measured } from "../../core/telemetry.ts";
import type { Load } from "../metrics.ts";

/** What happened in ten minutes. */
export interface Slice {
  /** Unix seconds of the beginning. */
  readonly time: number;
  readonly turns: number;
  readonly failed: number;
  /** Requests that were not taken or were given up, by the code of the reason. */
  readonly refused: Readonly<Record<string, number>>;
  readonly models: readonly ModelTimes[];
}

/** How fast a model answered, in seconds, within a fifth. `null` means that there were no answers. */
export interface ModelTimes {
  readonly model: string;
  readonly answers: number;
  readonly failed: number;
  /** The time until the first words of its answer. */
  readonly firstP50: number | null;
  readonly firstP95: number | null;
  /** The time until the end of its answer. */
  readonly wholeP50: number | null;
  readonly wholeP95: number | null;
}

const sliceMs = 600_000;
const keptMs = 24 * 3_600_000;
/** The limit of one slice. Further models count as `other`. */
const maxModels = 6;
const maxCodes = 20;
const maxNameChars = 100;

/** The buckets end at powers of the square root of two, from a sixteenth of a second to half an hour. */
const bucketOf = (seconds: number): number =>
  Math.min(22, Math.max(-8, Math.ceil(2 * Math.log2(Math.max(seconds, 0.001)))));

/** How often each bucket was met. */
type Buckets = Record<string, number>;

interface ModelCounts {
  answers: number;
  failed: number;
  first: Buckets;
  whole: Buckets;
}

interface Counts {
  readonly time: number;
  turns: number;
  failed: number;
  refused: Record<string, number>;
  models: Record<string, ModelCounts>;
}

/** Keeps the last 24 hours of a process, in memory. */
export function createDayHistory(clock: Clock) {
  let kept: Counts[] = [];

  const recent = (): Counts[] => {
    const from = clock.now() - keptMs;
    kept = kept.filter(({ time }) => time > from);
    return kept;
  };
  const current = (): Counts => {
    const time = Math.floor(clock.now() / sliceMs) * sliceMs;
    const last = kept.at(-1);
    if (last?.time === time) return last;
    const started = noCounts(time);
    kept = [...recent(), started];
    return started;
  };
  const countsOf = (model: string): ModelCounts => {
    const { models } = current();
    const name = model.slice(0, maxNameChars);
    const known = Object.hasOwn(models, name) || Object.keys(models).length < maxModels ? name : "other";
    return (models[known] ??= { answers: 0, failed: 0, first: {}, whole: {} });
  };

  return {
    /** Counts turns, refusals and how long models take. */
    take(this: void, event: Measured): void {
      if (event.kind === "turn") {
        const slice = current();
        slice.turns++;
        if (event.outcome === "failed") slice.failed++;
      } else if (event.kind === "refused") {
        const { refused } = current();
        const isKnown = Object.hasOwn(refused, event.code) || Object.keys(refused).length < maxCodes;
        bump(refused, isKnown ? event.code : "other");
      } else if (event.kind === "asked" && event.isAside !== true) {
        const counts = countsOf(event.model);
        if (event.usage === undefined) counts.failed++;
        else {
          counts.answers++;
          bump(counts.whole, bucketOf(event.seconds));
          if (event.operation === "chat") bump(counts.first, bucketOf(event.firstSeconds ?? event.seconds));
        }
      }
    },
    /** Returns the slices, oldest first, without those in which nothing happened. */
    slices: (): readonly Slice[] =>
      recent().map(({ time, turns, failed, refused, models }) => ({
        time: time / 1000,
        turns,
        failed,
        refused,
        models: toTimes(models),
      })),
    /** Returns each model since then (Unix ms), the busiest first. */
    modelsSince(since: number): readonly ModelTimes[] {
      const sum = noCounts(0);
      for (const slice of recent()) if (slice.time + sliceMs > since) merge(sum, slice);
      return toTimes(sum.models);
    },
  };
}

export type DayHistory = ReturnType<typeof createDayHistory>;

/** Models may be called anything, so their counts are in objects without a prototype. */
function noCounts(time: number): Counts {
  const [refused, models] = [Object.create(null), Object.create(null)] as [
    Counts["refused"],
    Counts["models"],
  ];
  return { time, turns: 0, failed: 0, refused, models };
}

function bump(counts: Record<string, number>, name: string | number, by = 1): void {
  counts[name] = (counts[name] ?? 0) + by;
}

function merge(into: Counts, from: Counts): void {
  into.turns += from.turns;
  into.failed += from.failed;
  for (const [code, count] of Object.entries(from.refused)) bump(into.refused, code, count);
  for (const [model, counts] of Object.entries(from.models)) {
    const sum = (into.models[model] ??= { answers: 0, failed: 0, first: {}, whole: {} });
    sum.answers += counts.answers;
    sum.failed += counts.failed;
    for (const name of ["first", "whole"] as const)
      for (const [bucket, count] of Object.entries(counts[name])) bump(sum[name], bucket, count);
  }
}

function toTimes(models: Counts["models"]): ModelTimes[] {
  return Object.entries(models)
    .map(([model, { answers, failed, first, whole }]) => ({
      model,
      answers,
      failed,
      firstP50: quantile(first, 0.5),
      firstP95: quantile(first, 0.95),
      wholeP50: quantile(whole, 0.5),
      wholeP95: quantile(whole, 0.95),
    }))
    .sort((a, b) => b.answers + b.failed - a.answers - a.failed);
}

/** Interpolates within a bucket, as if the values there were spread evenly. */
function quantile(buckets: Buckets, share: number): number | null {
  const sorted = Object.entries(buckets)
    .map(([bucket, count]) => [Number(bucket), count] as const)
    .toSorted(([a], [b]) => a - b);
  let left = share * sorted.reduce((sum, [, count]) => sum + count, 0);
  for (const [bucket, count] of sorted) {
    const low = 2 ** ((bucket - 1) / 2);
    if (left <= count) return low + (2 ** (bucket / 2) - low) * (left / count);
    left -= count;
  }
  return null;
}

/** What is sampled. */
interface LoadSources {
  readonly load: () => Load;
  /** Returns the calls to platforms that wait for room under their limits. */
  readonly deliveryWaiting: () => number;
  /** Returns whether each platform is connected, by its id. */
  readonly isConnected: () => Readonly<Record<string, boolean>>;
  readonly clock: Clock;
}

/** One series for each name, all of the same length. Times are in Unix seconds, oldest first. */
export interface LoadSeries {
  readonly times: readonly number[];
  readonly turnsRunning: readonly number[];
  readonly turnsWaiting: readonly number[];
  readonly callsRunning: readonly number[];
  readonly callsWaiting: readonly number[];
  readonly deliveryWaiting: readonly number[];
}

/** The facts about a platform since the start. Times are in Unix ms. */
export interface PlatformActivity {
  /** When its last event was accepted. */
  readonly lastEventAt?: number;
  /** How often it was connected again, as seen once a second. */
  readonly reconnects: number;
  /** The calls that it refused as too many. */
  readonly limited: number;
}

const sampleEveryMs = 10_000;
const maxSamples = 360;
const watchEveryMs = 1000;

/** Keeps what a process did in the last hour, in memory. */
export function createLoadHistory({ load, deliveryWaiting, isConnected, clock }: LoadSources) {
  const samples: { readonly time: number; readonly load: Load; readonly delivery: number }[] = [];
  const activities = new Map<string, { lastEventAt?: number; reconnects: number; limited: number }>();
  const connected = new Map<string, boolean>();

  const activityOf = (platform: string) => {
    const known = activities.get(platform) ?? { reconnects: 0, limited: 0 };
    activities.set(platform, known);
    return known;
  };
  const sample = (): void => {
    samples.push({ time: clock.now(), load: load(), delivery: deliveryWaiting() });
    if (samples.length > maxSamples) samples.shift();
  };
  const watch = (): void => {
    for (const [platform, isUp] of Object.entries(isConnected())) {
      // The first connection does not count as lost before.
      if (isUp && connected.get(platform) === false) activityOf(platform).reconnects++;
      if (isUp || connected.has(platform)) connected.set(platform, isUp);
    }
  };
  const timers = [clock.every(sampleEveryMs, sample), clock.every(watchEveryMs, watch)];

  return {
    /** Notes what concerns the connection of a platform. */
    take(this: void, event: Measured): void {
      if (event.kind === "accepted") activityOf(event.platform).lastEventAt = clock.now();
      else if (event.kind === "limited") activityOf(event.platform).limited++;
    },
    series(): LoadSeries {
      // This makes a page that was just opened show the present.
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
    activity: (platform: string): PlatformActivity => ({ ...activityOf(platform) }),
    close(): void {
      for (const cancel of timers) cancel();
    },
  };
}

export type LoadHistory = ReturnType<typeof createLoadHistory>;
