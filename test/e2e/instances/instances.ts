import { afterAll, afterEach, beforeAll, vi } from "vitest";
import { createManifest } from "../../../src/platforms/slack/install/manifest.ts";
import { fasterRateLimits } from "../../simulators/discord/rate-limits.ts";
import { soonAgain } from "../../simulators/discord/session-starts.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../simulators/discord/simulator.ts";
import { answers, startSlowGateway, type SlowGateway } from "../../simulators/gateway/slow-gateway.ts";
import { createSlackSimulator, type SlackSimulator } from "../../simulators/slack/simulator.ts";
import { allCommands } from "../../support/commands.ts";
import { startRedis, type RedisServer } from "../../support/redis-server.ts";
import { has } from "../../support/requirements.ts";
import { startInstance, type Instance, type InstanceOptions } from "./instance.ts";

/** The lease of instances that another one takes over from, in milliseconds. */
export const shortLeaseMs = 1000;

/** Several instances of the bot on one Redis, with one or both platforms and a slow model. */
export interface Instances {
  readonly slack: SlackSimulator;
  readonly discord: DiscordSimulator;
  readonly gateway: SlowGateway;
  readonly redis: RedisServer;
  readonly running: Instance[];
  /** Starts one more. Resolves when it is connected. */
  start(options?: Partial<InstanceOptions>): Promise<Instance>;
  /** Returns the instance that is running the turn with that label, once some of it is shown. */
  whoAnswers(label: string): Promise<Instance>;
  /** Returns all messages of the bot on all platforms. */
  shown(): { readonly id: string; readonly text: string }[];
  /** Resolves to the messages that contain the label when one of them is a complete answer. */
  answered(label: string): Promise<{ readonly id: string; readonly text: string }[]>;
}

/** The options of a world that {@link useInstances} makes. */
export interface WorldOptions {
  /** The default is only Slack. */
  readonly platforms?: readonly ("slack" | "discord")[];
  /** How long an answer takes, in milliseconds. Default 400. */
  readonly durationMs?: number;
  /** An expired lease lets another instance take over. In milliseconds; the default of 10 s prevents that. */
  readonly leaseMs?: number | undefined;
  /** How many times faster the instances' own time passes. Default 1. */
  readonly speed?: number;
  /** The instances' settings beside those of their servers. */
  readonly settings?: Readonly<Record<string, string>>;
  /** How many times as fast the windows of the platforms' rate limits pass. Default 1. */
  readonly limitsFactor?: number;
}

/**
 * Gives the tests of a file one Redis, and each of them a database in it and its own instances.
 * @returns starts a world with so many instances, which ends with the test
 */
export function useInstances(): (count: number, options?: WorldOptions) => Promise<Instances> {
  let redis: RedisServer | undefined;
  let database = 0;
  const closing: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    if (has("redis")) redis = await startRedis();
  });
  afterAll(async () => redis?.remove());
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });
  return async (count, options = {}) => {
    database = (database + 1) % 16;
    const [world, close] = await createWorld(redis!, database, options);
    closing.push(close);
    await Promise.all(Array.from({ length: count }, () => world.start()));
    return world;
  };
}

async function createWorld(
  redis: RedisServer,
  database: number,
  {
    platforms = ["slack"],
    durationMs = 400,
    leaseMs = 10_000,
    speed = 1,
    settings: usual = {},
    limitsFactor = 1,
  }: WorldOptions,
): Promise<[Instances, close: () => Promise<void>]> {
  const [slack, discord, gateway] = await Promise.all([
    createSlackSimulator({ manifest: createManifest(allCommands, { socketMode: true }), limitsFactor }),
    createDiscordSimulator({ sessionStarts: soonAgain, rateLimits: fasterRateLimits(limitsFactor) }),
    startSlowGateway(durationMs),
  ]);
  const running: Instance[] = [];
  let started = 0;
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
    running.map((instance, index) => `\n--- ${index}\n${instance.output().slice(-2500)}`).join("");
  const eventually = async <T>(what: string, look: () => T | undefined | false) => {
    try {
      return await vi.waitUntil(look, { timeout: 40_000, interval: 10 });
    } catch (error) {
      throw new Error(`timed out waiting for ${what}: ${explain()}`, { cause: error });
    }
  };
  const world: Instances = {
    slack,
    discord,
    gateway,
    redis,
    running,
    async start({ settings = {}, ...options } = {}) {
      const index = started++;
      const instance = await startInstance({
        speed,
        ...options,
        settings: {
          STORE_URL: `${redis.url}/${database}`,
          STORE_LEASE_MS: `${leaseMs}`,
          GATEWAY_BASE_URL: gateway.baseUrl,
          GATEWAY_API_KEY: `${index}`,
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
          ...usual,
          ...settings,
        },
      });
      running[index] = instance;
      return instance;
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
        return found.some(({ text }) => answers(withoutHint(text), label)) && found;
      }),
  };
  return [
    world,
    async () => {
      gateway.setHanging(false);
      await Promise.all(running.map((instance) => instance.remove()));
      await Promise.all([slack.close(), discord.close(), gateway.close()]);
    },
  ];
}

/** An answer without the small print that says, once in a thread, which messages are answered there. */
export const withoutHint = (text: string): string =>
  text.replace(/\n(?:-# )?Not everything here is for me: .*$/, "");
