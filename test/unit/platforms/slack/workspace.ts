import { allCommands } from "../../../support/commands.ts";
import type { Platform } from "../../../../src/core/platform.ts";
import { createManifest } from "../../../../src/platforms/slack/manifest.ts";
import { createSlackPlatform } from "../../../../src/platforms/slack/platform.ts";
import { createSlackSimulator, type SlackSimulator } from "../../../simulators/slack/simulator.ts";
import { createFakeReceiver, createSilentLog, type FakeReceiver } from "./fake-receiver.ts";

export const commands = allCommands;

export interface SlackRoom {
  readonly slack: SlackSimulator;
  readonly platform: Platform;
  readonly receiver: FakeReceiver;
  close(): Promise<void>;
}

/** The platform on the real client, installed in the simulator from its own manifest, with nobody behind it. */
export async function openSlackRoom(commandPrefix = ""): Promise<SlackRoom> {
  const slack = await createSlackSimulator({
    manifest: createManifest(commands, { socketMode: true, commandPrefix }),
  });
  const receiver = createFakeReceiver();
  const platform = createSlackPlatform({
    botToken: slack.botToken,
    appToken: slack.appToken,
    apiUrl: slack.apiUrl,
    commands,
    commandPrefix,
    log: createSilentLog(),
  });
  await platform.start(receiver, receiver);
  return {
    slack,
    platform,
    receiver,
    async close() {
      await platform.stop();
      await slack.close();
    },
  };
}
