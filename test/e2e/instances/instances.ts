import { allCommands } from "../../support/commands.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import { createManifest } from "../../../src/platforms/slack/manifest.ts";
import { startRedis, type RedisServer } from "../../support/redis-server.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../simulators/discord/simulator.ts";
import { answers, startSlowGateway, type SlowGateway } from "../../simulators/gateway/slow-gateway.ts";
import { createSlackSimulator, type SlackSimulator } from "../../simulators/slack/simulator.ts";
import { runParley, type RunningParley } from "../process/run-parley.ts";

/** How long an instance may be silent before another takes over. */
export const leaseMs = 1500;

/** Several processes of the bot on one Redis, between both platforms and a slow model. */
export interface Instances {
  readonly slack: SlackSimulator;
  readonly discord: DiscordSimulator;
  readonly gateway: SlowGateway;
  readonly redis: RedisServer;
  readonly running: RunningParley[];
  /** Starts one more; resolves when it is connected. */
  start(settings?: Readonly<Record<string, string>>, program?: string): Promise<RunningParley>;
  /** The one whose turn with that label is under way. */
  whoAnswers(label: string): Promise<RunningParley>;
  /** Everything the bot shows anywhere: id and words of each message. */
  shown(): { readonly id: string; readonly text: string }[];
  /** Resolves to the messages that answer the label when there is one and it is whole. */
  answered(label: string): Promise<{ readonly id: string; readonly text: string }[]>;
  close(): Promise<void>;
}

export async function startInstances(
  count: number,
  options: { readonly platforms?: readonly ("slack" | "discord")[]; readonly durationMs?: number } = {},
): Promise<Instances> {
  const { platforms = ["slack"], durationMs = 600 } = options;
  const folder = await mkdtemp(join(tmpdir(), "parley-instances-"));
  const [slack, discord, gateway, redis] = await Promise.all([
    createSlackSimulator({ manifest: createManifest(allCommands, { socketMode: true }) }),
    createDiscordSimulator(),
    startSlowGateway(durationMs),
    startRedis(),
  ]);
  const running: RunningParley[] = [];
  const shown = () => [
    ...slack
      .everything()
      .filter(({ author }) => author === "Parley")
      .map(({ ts, text }) => ({ id: ts, text })),
    ...[...discord.world.channels.keys()].flatMap((id) =>
      discord
        .handle(id)
        .fromBot()
        .map((message) => ({ id: message.id, text: message.text })),
    ),
  ];
  const explain = () =>
    JSON.stringify({ shown: shown(), turns: gateway.turns }, undefined, 1) +
    running.map((parley) => `\n--- ${parley.process.pid}\n${parley.output().slice(-2500)}`).join("");
  const eventually = async <T>(what: string, look: () => T | undefined | false) => {
    try {
      return await vi.waitUntil(look, { timeout: 40_000, interval: 25 });
    } catch (error) {
      throw new Error(`${what} did not happen: ${explain()}`, { cause: error });
    }
  };
  const instances: Instances = {
    slack,
    discord,
    gateway,
    redis,
    running,
    async start(settings = {}, program) {
      const parley = await runParley({
        folder,
        ...(program === undefined ? {} : { program }),
        settings: {
          STORE_URL: redis.url,
          STORE_LEASE_MS: `${leaseMs}`,
          GATEWAY_BASE_URL: gateway.baseUrl,
          GATEWAY_API_KEY: `${running.length}`,
          CHAT_MODEL: "m",
          ...(platforms.includes("slack")
            ? {
                SLACK_BOT_TOKEN: slack.botToken,
                SLACK_APP_TOKEN: slack.appToken,
                SLACK_API_URL: slack.apiUrl,
              }
            : {}),
          ...(platforms.includes("discord")
            ? { DISCORD_TOKEN: discord.token, DISCORD_API_URL: discord.apiUrl }
            : {}),
          ...settings,
        },
      });
      running.push(parley);
      await parley.says(/Ready\./);
      return parley;
    },
    async whoAnswers(label) {
      const from = await eventually(`an answer to ${label} under way`, () => {
        const turn = gateway.turns.findLast(
          ({ labels, endedAt }) => labels.includes(label) && endedAt === undefined,
        );
        return turn !== undefined && shown().some(({ text }) => text.includes(label)) && turn.from;
      });
      return running[Number(from)]!;
    },
    shown,
    answered: (label) =>
      eventually(`an answer to ${label}`, () => {
        const found = shown().filter(({ text }) => text.includes(label));
        return found.some(({ text }) => answers(text, label)) && found;
      }),
    async close() {
      for (const parley of running) {
        parley.process.kill("SIGCONT");
        await parley.remove();
      }
      await Promise.all([slack.close(), discord.close(), gateway.close()]);
      await redis.remove();
      await rm(folder, { recursive: true, force: true });
    },
  };
  for (let index = 0; index < count; index++) await instances.start();
  return instances;
}
