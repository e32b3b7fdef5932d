import { hostname } from "node:os";
import type { Clock } from "../../core/clock.ts";
import type { Records } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { toUtcDay } from "../../support/clock.ts";
import type { Metrics, Reading } from "../metrics.ts";

/** What was counted between two times. */
export interface Counted {
  readonly turns: number;
  readonly failed: number;
  /** Requests that were not taken or were given up, by the code of the reason. */
  readonly refused: Readonly<Record<string, number>>;
  /** The busiest model first. */
  readonly models: readonly ModelTimes[];
}

/** What was counted in one minute, and what ran at its end. */
export interface Minute extends Counted {
  /** Unix seconds of the end. */
  readonly time: number;
  readonly turnsRunning: number;
  readonly turnsWaiting: number;
  readonly callsRunning: number;
}

/** How fast a model answered, in seconds, as far as buckets tell. `null` means that there were no answers. */
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

const minuteMs = 60_000;
const keptMinutes = 60;
/** A stored day outlives the day, and not the machine that it is named after. */
const storedForMs = 2 * 24 * 3_600_000;

const turnSeconds = "parley_turn_seconds";
const refusals = "parley_refusals_total";
const firstWords = "parley_model_first_words_seconds";
const modelSeconds = "parley_model_seconds";
const counters = [turnSeconds, refusals, firstWords, modelSeconds];
const turnsRunning = "parley_turns_running";
const turnsWaiting = "parley_turns_waiting";
const callsRunning = "parley_gateway_calls_running";

/** The counters at one time, or their differences between two times. */
type Counts = ReadonlyMap<string, Reading>;

const toCounts = (readings: readonly Reading[]): Counts =>
  new Map(
    readings.map((reading) => [
      JSON.stringify(reading, ["name", "labels", "le", "platform", "kind", "outcome", "code", "model"]),
      reading,
    ]),
  );

/** Adds or subtracts counts. */
function combine(all: Counts, others: Counts, sign: 1 | -1): Counts {
  const sums = new Map(all);
  for (const [key, reading] of others)
    sums.set(key, { ...reading, value: (all.get(key)?.value ?? 0) + sign * reading.value });
  return sums;
}

interface HistoryOptions {
  readonly metrics: Pick<Metrics, "read">;
  readonly records: Pick<Records, "get" | "set">;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Reads the metrics each minute: what was counted in each of the last 60, in memory, and on this day (UTC).
 * The day is stored for this machine, so that it survives a restart.
 */
export function createHistory({ metrics, records, clock, log }: HistoryOptions) {
  const key = `operations:day:${hostname()}`;
  const minutes: Minute[] = [];
  let day = toUtcDay(clock.now());
  /** The counters at the last full minute, when the day or this process began, and when they were kept. */
  let lastMinute: Counts = new Map();
  let atStart: Counts = new Map();
  let saved: Counts = new Map();
  /** What earlier processes have counted on this day. */
  let earlier: Counts = new Map();
  const restored = records.get(key).then(
    (stored) => {
      earlier = toStoredCounts(stored, day);
    },
    (error: unknown) => log.debug({ err: error }, "the dashboard's day was not read"),
  );

  const readCounts = async (): Promise<Counts> => toCounts(await metrics.read(counters));
  const countsOfDay = (now: Counts): Counts => combine(combine(now, atStart, -1), earlier, 1);
  const toMinute = async (now: Counts): Promise<Minute> => {
    const running = await metrics.read([turnsRunning, turnsWaiting, callsRunning]);
    const valueOf = (name: string): number => running.find((one) => one.name === name)?.value ?? 0;
    return {
      time: Math.floor(clock.now() / 1000),
      ...toCounted(combine(now, lastMinute, -1)),
      turnsRunning: valueOf(turnsRunning),
      turnsWaiting: valueOf(turnsWaiting),
      callsRunning: valueOf(callsRunning),
    };
  };
  const save = async (now: Counts): Promise<void> => {
    if (sum([...combine(now, saved, -1).values()]) === 0) return;
    saved = now;
    await restored;
    try {
      await records.set(
        key,
        { day, counts: [...countsOfDay(now).values()].map((one) => ({ ...one })) },
        storedForMs,
      );
    } catch (error) {
      log.debug({ err: error }, "the dashboard's day was not stored");
    }
  };
  const endMinute = async (): Promise<void> => {
    const now = await readCounts();
    minutes.push(await toMinute(now));
    if (minutes.length > keptMinutes) minutes.shift();
    lastMinute = now;
    const today = toUtcDay(clock.now());
    if (today === day) await save(now);
    else [day, atStart, saved, earlier] = [today, now, now, new Map()];
  };
  const stop = clock.every(minuteMs, () => void endMinute());

  return {
    /** Resolves to the last 60 minutes, oldest first, with the one that has begun as the last. */
    minutes: async (): Promise<readonly Minute[]> => [...minutes, await toMinute(await readCounts())],
    /** Resolves to what was counted on this day. */
    async day(): Promise<Counted> {
      await restored;
      return toCounted(countsOfDay(await readCounts()));
    },
    async close(): Promise<void> {
      stop();
      await save(await readCounts());
    },
  };
}

export type History = ReturnType<typeof createHistory>;

/** Reads what another process has stored, if it is of this day. */
function toStoredCounts(stored: unknown, day: string): Counts {
  const known = stored as { readonly day?: unknown; readonly counts?: unknown } | undefined;
  return known?.day === day && Array.isArray(known.counts) ? toCounts(known.counts as Reading[]) : new Map();
}

function toCounted(counts: Counts): Counted {
  const byName = Map.groupBy(counts.values(), ({ name }) => name);
  const turns = byName.get(`${turnSeconds}_count`) ?? [];
  const reasons = Map.groupBy(byName.get(refusals) ?? [], ({ labels }) => labels["code"] ?? "");
  const ofModels = [...byName.values()].flat().filter(({ labels }) => labels["model"] !== undefined);
  return {
    turns: sum(turns),
    failed: sum(turns.filter(({ labels }) => labels["outcome"] === "failed")),
    refused: Object.fromEntries(
      [...reasons].map(([code, same]) => [code, sum(same)] as const).filter(([, count]) => count > 0),
    ),
    models: [...Map.groupBy(ofModels, ({ labels }) => labels["model"] ?? "")]
      .map(([model, readings]) => toTimes(model, readings))
      .filter(({ answers, failed }) => answers + failed > 0)
      .sort((a, b) => b.answers + b.failed - a.answers - a.failed),
  };
}

function toTimes(model: string, readings: readonly Reading[]): ModelTimes {
  const of = (name: string, outcome?: string): Reading[] =>
    readings.filter((one) => one.name === name && one.labels["outcome"] === outcome);
  const first = of(`${firstWords}_bucket`);
  const whole = of(`${modelSeconds}_bucket`, "answered");
  return {
    model,
    answers: sum(of(`${modelSeconds}_count`, "answered")),
    failed: sum(of(`${modelSeconds}_count`, "failed")),
    firstP50: quantile(first, 0.5),
    firstP95: quantile(first, 0.95),
    wholeP50: quantile(whole, 0.5),
    wholeP95: quantile(whole, 0.95),
  };
}

function sum(readings: readonly Reading[]): number {
  return readings.reduce((total, { value }) => total + value, 0);
}

/** Interpolates within a bucket like Prometheus, as if the values there were spread evenly. */
function quantile(buckets: readonly Reading[], share: number): number | null {
  const sorted = buckets
    .map(({ labels, value }) => ({
      to: labels["le"] === "+Inf" ? Infinity : Number(labels["le"]),
      below: value,
    }))
    .sort((a, b) => a.to - b.to);
  const wanted = share * (sorted.at(-1)?.below ?? 0);
  const at = sorted.findIndex(({ below }) => below >= wanted && below > 0);
  const bucket = sorted[at];
  if (bucket === undefined) return null;
  const { to: from, below } = sorted[at - 1] ?? { to: 0, below: 0 };
  if (bucket.to === Infinity) return from;
  return from + (bucket.to - from) * ((wanted - below) / (bucket.below - below));
}
