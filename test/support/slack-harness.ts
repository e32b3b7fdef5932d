import type { Command } from "../../src/core/command.ts";
import type { Platform } from "../../src/core/platform.ts";
import { createManifest } from "../../src/platforms/slack/install/manifest.ts";
import { createSlackPlatform } from "../../src/platforms/slack/platform.ts";
import { createSlackSimulator, type SlackSimulator } from "../simulators/slack/simulator.ts";
import { allCommands } from "./commands.ts";
import type { SharedMemory } from "./memory-records.ts";
import { createSlackReceiver, type SlackReceiver } from "./slack-receiver.ts";
import { createFlowingClock, hastened, type FlowingClock } from "./flowing-clock.ts";
import { silentLog } from "./silent-log.ts";

/** The Slack platform with the real client, connected to the simulator, and a receiver that records. */
export interface SlackHarness {
  readonly slack: SlackSimulator;
  /** The clock of the platform and of Slack. Time passes faster while a test waits for either. */
  readonly clock: FlowingClock;
  /** The running platform. */
  readonly platform: Platform;
  readonly receiver: SlackReceiver;
  /** Stops the platform and starts another one with these commands. Meanwhile, `during` happens. */
  restart(commands?: ReadonlyMap<string, Command>, during?: () => unknown): Promise<void>;
  close(): Promise<void>;
  /**
   * Closes it, for tests that put no clock forward while an acknowledgement is on its way.
   * @throws Error where Slack did not take an acknowledgement
   */
  closeStrictly(): Promise<void>;
}

/** The options of {@link openSlackHarness}. */
export interface SlackHarnessOptions {
  /** The default is none. */
  readonly commandPrefix?: string;
  /** The default is all commands of `commands/`. */
  readonly commands?: ReadonlyMap<string, Command>;
  /** What outlives the platform. By default nothing does. */
  readonly kept?: SharedMemory;
}

/** Starts a simulator with the app of the generated manifest, and the platform. */
export async function openSlackHarness(options: SlackHarnessOptions = {}): Promise<SlackHarness> {
  const { commandPrefix = "", commands = allCommands } = options;
  const clock = createFlowingClock((ms) => slack.clock.advance(ms));
  const slack: SlackSimulator = await createSlackSimulator({
    botTime: clock,
    manifest: createManifest(commands, { socketMode: true, commandPrefix }),
  });
  const receiver = createSlackReceiver();

  async function start(declared: ReadonlyMap<string, Command>): Promise<Platform> {
    const started = hastened(
      createSlackPlatform({
        botToken: slack.botToken,
        appToken: slack.appToken,
        apiUrl: slack.apiUrl,
        commands: declared,
        commandPrefix,
        kept: options.kept,
        log: silentLog,
        clock,
      }),
      clock,
    );
    await started.start(receiver, receiver);
    return started;
  }

  async function close(): Promise<void> {
    await platform.stop();
    await slack.close();
  }

  let platform = await start(commands);
  return {
    slack,
    clock,
    get platform() {
      return platform;
    },
    receiver,
    async restart(declared = commands, during = () => undefined) {
      await platform.stop();
      await during();
      platform = await start(declared);
    },
    close,
    async closeStrictly() {
      await close();
      const { badAcks } = slack;
      if (badAcks.length > 0) throw new Error(`not acknowledged as Slack wants it: ${badAcks.join(", ")}`);
    },
  };
}
