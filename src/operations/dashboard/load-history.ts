import type { Clock } from "../../core/clock.ts";
import type { Measured } from "../../core/telemetry.ts";
import type { Load } from "../metrics.ts";

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
