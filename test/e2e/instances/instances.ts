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

/** Lease of the instances, in milliseconds: when it has expired, another one takes over. */
export const leaseMs = 1500;

/** Several processes of the bot on one Redis, with both platforms and a slow model. */
export interface Instances {
  readonly slack: SlackSimulator;
  readonly discord: DiscordSimulator;
  readonly gateway: SlowGateway;
  readonly redis: RedisServer;
  readonly running: RunningParley[];
  /** Starts one more; resolves when it is connected. */
  start(settings?: Readonly<Record<string, string>>, program?: string): Promise<RunningParley>;
  /** The instance that is running the turn with that label, once some of it is shown. */
  whoAnswers(label: string): Promise<RunningParley>;
  /** All messages of the bot on all platforms. */
  shown(): { readonly id: string; readonly text: string }[];
  /** Resolves to the messages that contain the label when one of them is a complete answer. */
  answered(label: string): Promise<{ readonly id: string; readonly text: string }[]>;
  close(): Promise<void>;
}

/** Starts `count` instances. `platforms` defaults to Slack alone; `durationMs`, how long an answer takes, to 600. */
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
      throw new Error(`timed out waiting for ${what}: ${explain()}`, { cause: error });
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
      const from = await eventually(`a running turn for ${label}`, () => {
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
