import { onTestFinished, vi } from "vitest";
import { setClockOff } from "../../../support/clock-off.ts";
import { allCommands } from "../../../support/commands.ts";
import { createRecordingReceiver, type RecordingReceiver } from "../../../support/recording-receiver.ts";
import type { Command } from "../../../../src/core/command.ts";
import type { Log } from "../../../../src/core/telemetry.ts";
import type { Platform } from "../../../../src/core/platform.ts";
import { createDiscordPlatform } from "../../../../src/platforms/discord/platform.ts";
import { createDiscordApi, type DiscordApi } from "../../../../src/platforms/discord/transport/api.ts";
import { automaticShards, type ShardSettings } from "../../../../src/platforms/discord/transport/shards.ts";
import { soonAgain } from "../../../simulators/discord/session-starts.ts";
import { systemClock } from "../../../../src/support/clock.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../../simulators/discord/simulator.ts";
import { fasterRateLimits } from "../../../simulators/discord/rate-limits.ts";
import { until as look } from "../../../simulators/discord/until.ts";
import { createFlowingClock, hastened } from "../../../support/flowing-clock.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";
import { silentLog } from "../../../support/silent-log.ts";

/** The clock of these tests' platforms. While a test waits, its time passes twenty times as fast. */
export const clock = createFlowingClock();
const factor = 20;

/**
 * Waits like the `until` of the simulator, but the time of the platforms passes faster meanwhile.
 * @throws Error also after three times `timeoutMs` in their time
 */
export function until<T>(
  read: () => T | undefined | false,
  options: NonNullable<Parameters<typeof look>[1]> = {},
): Promise<T> {
  const lastAt = clock.monotonic() + 3 * (options.timeoutMs ?? 10_000);
  return look(read, {
    ...options,
    async between() {
      if (clock.monotonic() > lastAt) throw new Error("too late in the time of the platform");
      await clock.step();
    },
  });
}

let skippedMs = 0;

/** Lets the library identify again at once. It waits for five seconds after the last time, by `Date.now`. */
export function letIdentify(): void {
  skippedMs += 6000;
  setClockOff(skippedMs);
  onTestFinished(() => void vi.restoreAllMocks());
}

type ApiOptions = Parameters<typeof createDiscordApi>[0];

/** Creates the API of a process on a simulated Discord. By default it waits in real time. */
export function createApi(
  { token, apiUrl, world }: DiscordSimulator,
  options: Partial<ApiOptions> = {},
): DiscordApi {
  return createDiscordApi({
    token,
    apiUrl,
    now: world.now,
    clock: systemClock,
    log: silentLog,
    ...options,
  });
}

/** One line of {@link createListLog}. */
export interface LogLine {
  readonly level: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** Creates a log that records its lines. */
export function createListLog(): { readonly log: Log; readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const write = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) =>
    void lines.push({ level, fields, message });
  const log: Log = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: () => log,
  };
  return { log, lines };
}

/** The result of {@link startHarness}. */
export interface Harness {
  readonly simulator: DiscordSimulator;
  /** The platform of the last start, like the receiver. */
  platform: Platform;
  receiver: RecordingReceiver;
  readonly lines: LogLine[];
  /** Stops the platform and starts another one, which remembers nothing but the store's records. */
  readonly restart: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Starts the real platform with the real client on a simulated Discord, with a recording receiver. */
export async function startHarness(
  options: Parameters<typeof createDiscordSimulator>[0] & {
    readonly prepare?: (simulator: DiscordSimulator) => void;
    /** The default is all commands. */
    readonly commands?: ReadonlyMap<string, Command>;
    readonly shards?: ShardSettings;
  } = {},
): Promise<Harness> {
  const { prepare, commands = allCommands, shards = automaticShards, ...simulatorOptions } = options;
  const simulator = await createDiscordSimulator({
    sessionStarts: soonAgain,
    ...simulatorOptions,
    rateLimits: { ...fasterRateLimits(factor), ...simulatorOptions.rateLimits },
  });
  prepare?.(simulator);
  const { log, lines } = createListLog();
  const { records } = createSharedMemory();
  const start = async (acceptedBefore: readonly string[]) => {
    const platform = hastened(
      createDiscordPlatform({
        token: simulator.token,
        apiUrl: simulator.apiUrl,
        commands,
        shards,
        records,
        log,
        now: simulator.world.now,
        clock,
      }),
      clock,
    );
    const receiver = createRecordingReceiver();
    for (const key of acceptedBefore) receiver.acceptedBefore.add(key);
    await clock.passing(platform.start(receiver, receiver));
    return { platform, receiver };
  };
  const started = await start([]);
  await until(() => simulator.world.commands.length > 0);
  const harness: Harness = {
    simulator,
    ...started,
    lines,
    async restart() {
      const { platform, receiver: before } = harness;
      await platform.stop();
      const accepted = before.events.map(({ key }) => key);
      Object.assign(harness, await start([...before.acceptedBefore, ...accepted]));
    },
    async close() {
      await harness.platform.stop();
      await simulator.close();
    },
  };
  return harness;
}
