import { allCommands } from "../../support/commands.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../src/support/clock.ts";
import { createScaledClock } from "../../support/scaled-clock.ts";
import { fasterRateLimits } from "../../simulators/discord/rate-limits.ts";
import { startParley, type Parley } from "../../../src/compose.ts";
import { parseConfig } from "../../../src/config.ts";
import { bytesOfFolder, holds } from "../../support/store-bytes.ts";
import { createModelScript, type ListedModel, type ScriptedModel } from "../../stories/scripted-model.ts";
import {
  startScriptedGateway,
  type ScriptedGateway,
  type SeenRequest,
} from "../../simulators/gateway/scripted-gateway.ts";
import { soonAgain } from "../../simulators/discord/session-starts.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../simulators/discord/simulator.ts";
import type { SeenMessage } from "../../simulators/discord/transcript.ts";
import { until } from "../../simulators/discord/until.ts";
import { createListLog, type LogLine } from "../../unit/platforms/discord/harness.ts";

export type { ListedModel, SentMessage } from "../../stories/scripted-model.ts";

export interface Story extends ScriptedModel {
  readonly discord: DiscordSimulator;
  readonly gateway: ScriptedGateway;
  readonly lines: LogLine[];
  /** The folder of the store. */
  readonly folder: string;
  /** Resolves to the bot's messages in a channel, once there are `count` and none is still streaming. */
  settled(channel: { fromBot(): SeenMessage[] }, count?: number): Promise<SeenMessage[]>;
  /** Whether the store's files contain a text. */
  isKept(text: string): Promise<boolean>;
  /** Restarts Parley on the same store. `during` is what people do while it does not run. */
  restart(during?: () => unknown): Promise<void>;
  /** Forgets what the model was told to say, and what it was asked. */
  reset(): void;
  /** Whether no turn is under way. */
  isIdle(): boolean;
  readonly close: () => Promise<void>;
}

const apiKey = "key-of-the-story";

/**
 * Starts the whole product on a simulated Discord, with a scripted gateway.
 * @param settings may be made from people and places of the simulator
 * @param models the gateway's list
 * @param haste how many times sooner Parley's waits and Discord's rate limits are over
 */
export async function startStory(
  settings:
    | Readonly<Record<string, string>>
    | ((discord: DiscordSimulator) => Readonly<Record<string, string>>) = {},
  simulator: Parameters<typeof createDiscordSimulator>[0] = {},
  models?: readonly ListedModel[],
  haste = 1,
): Promise<Story> {
  const folder = await mkdtemp(join(tmpdir(), "parley-discord-"));
  const discord = await createDiscordSimulator({
    sessionStarts: soonAgain,
    ...(haste === 1 ? {} : { rateLimits: fasterRateLimits(haste) }),
    ...simulator,
  });
  const clock = haste === 1 ? systemClock : createScaledClock(haste);
  const model = await createModelScript((): readonly SeenRequest[] => gateway.requests, models);
  const gateway = await startScriptedGateway((request) => model.respond(request), { apiKey });
  const { log, lines } = createListLog();
  const commands = allCommands;
  const config = parseConfig({
    DISCORD_TOKEN: discord.token,
    DISCORD_API_URL: discord.apiUrl,
    GATEWAY_BASE_URL: gateway.baseUrl,
    GATEWAY_API_KEY: apiKey,
    CHAT_MODEL: "story/chat",
    IMAGE_MODEL: "story/draw",
    TRANSCRIPTION_MODEL: "story/whisper",
    STORE_URL: `sqlite:${join(folder, "parley.db")}`,
    PORT: "0",
    SHUTDOWN_TIMEOUT_MS: "2000",
    ...(typeof settings === "function" ? settings(discord) : settings),
  });
  const start = async (): Promise<Parley> => {
    const started = await startParley(config, { commands, log, clock });
    await started.connected;
    return started;
  };
  let parley = await start();
  await until(
    () => discord.world.commands.length > 0 && lines.some((line) => line.message.startsWith("commands")),
  );

  return {
    ...model,
    discord,
    gateway,
    lines,
    folder,
    reset() {
      model.reset();
      lines.splice(0);
    },
    isIdle: () => parley.assistant.pending() === 0,
    settled(channel, count = 1) {
      return until(
        () => {
          const shown = channel.fromBot();
          const isStreaming = shown.some(
            (message) => message.isThinking || /^-# (Thinking|…)/m.test(message.text),
          );
          return shown.length >= count && !isStreaming && parley.assistant.pending() === 0 && shown;
        },
        {
          timeoutMs: 20_000,
          explain: () => ({ shown: channel.fromBot(), lines, requests: discord.requests }),
        },
      );
    },
    isKept: async (text) => holds(await bytesOfFolder(folder), text),
    async restart(during = () => {}) {
      await parley.stop();
      await during();
      parley = await start();
    },
    async close() {
      await parley.stop();
      await gateway.close();
      await rm(folder, { recursive: true, force: true });
      await discord.close();
    },
  };
}
