import { z } from "zod";
import { definePlatform } from "../../core/platform-module.ts";
import { ParleyError } from "../../core/errors.ts";
import { httpUrl, integerFrom, list, sendsInTheClear, text } from "../../core/settings.ts";
import { shardIdsProblem, type ShardSettings } from "./transport/shards.ts";

const snowflake = /^[1-9]\d{0,19}$/;

const maxShards = 100_000;

/** Parses `auto` or a count. */
const shardCount = text.transform((value, context): "auto" | number => {
  if (value === "auto") return value;
  const count = /^\d{1,6}$/.test(value) ? Number(value) : 0;
  if (count >= 1 && count <= maxShards) return count;
  context.addIssue({ code: "custom", message: "must be auto or a number from 1" });
  return z.NEVER;
});

const shardIds = list
  .refine(
    (ids) => ids.every((id) => /^\d{1,6}$/.test(id)),
    "must be numbers from 0, separated by commas: 0,1",
  )
  .transform((ids) => [...new Set(ids.map(Number))]);

/** Returns what is wrong between the two settings, whatever the deployment. */
function shardProblems(count: "auto" | number | undefined, ids: readonly number[] | undefined): string[] {
  if (count === undefined || ids === undefined || ids.length === 0) return [];
  if (count === "auto")
    return [
      "DISCORD_SHARD_IDS needs DISCORD_SHARDS as a number: Discord may recommend another one to the next process",
    ];
  return [shardIdsProblem(count, ids) ?? []].flat();
}

/** Several processes need one store, because each takes over what another leaves open. */
function sharingProblem(
  count: "auto" | number,
  ids: readonly number[],
  isStoreShared: boolean,
): string | undefined {
  const isPart = ids.length > 0 && count !== "auto" && ids.length < count;
  return isPart && !isStoreShared
    ? "DISCORD_SHARD_IDS leaves shards to other processes, which needs a store that they share: set STORE_URL to redis://…"
    : undefined;
}

function toShardSettings(count: "auto" | number, ids: readonly number[]): ShardSettings {
  return { count, ids: ids.length === 0 ? undefined : ids };
}

/** Describes Discord for the registry. */
export const discord = definePlatform({
  id: "discord",
  title: "Discord",
  settings: {
    DISCORD_TOKEN: {
      schema: text.optional(),
      description: "the bot's token; empty: Discord is off",
      isSecret: true,
      question: { text: "Bot token", isGate: true },
    },
    DISCORD_API_URL: {
      schema: httpUrl.optional(),
      description: "another API address, for tests and proxies",
      shownDefault: "public",
      warn: sendsInTheClear("DISCORD_TOKEN"),
    },
    DISCORD_SHARDS: {
      schema: shardCount.default("auto"),
      description: "connections that share the servers: `auto` (as Discord recommends) or a count",
    },
    DISCORD_SHARD_IDS: {
      schema: shardIds.default([]),
      description: "the shards that this process takes at once (`0,1`), others ten seconds later; empty: all",
      note: "They share one store, and DISCORD_SHARDS is a count.",
    },
    DISCORD_REQUESTS_PER_SECOND: {
      schema: integerFrom(1, 100_000).default(50),
      description:
        "requests a second that Discord allows this process in all channels together; more for large bots",
      note: "Processes that share a bot share them: give each its part.",
    },
  },
  setup: {
    intro: `Create an application at https://discord.com/developers/applications; under Bot turn on
the Message Content Intent, press Save Changes, then Reset Token, which may ask for a 2FA code and shows three parts
with dots between (docs/discord.md). The checks print the address that invites the bot. Empty: no Discord.`,
    asks: ["DISCORD_TOKEN"],
  },
  accessTerms: { guild: snowflake, channel: snowflake, role: snowflake, user: snowflake },
  isOn: ({ DISCORD_TOKEN }) => DISCORD_TOKEN !== undefined,
  problems: ({ DISCORD_SHARDS: count, DISCORD_SHARD_IDS: ids }) => shardProblems(count, ids),
  startProblems({ DISCORD_SHARDS: count = "auto", DISCORD_SHARD_IDS: ids = [] }, { isOn, isStoreShared }) {
    const problem = isOn ? sharingProblem(count, ids, isStoreShared) : undefined;
    return problem === undefined ? [] : [problem];
  },
  startLine: (_, { isOn }) => (isOn ? "on   connecting" : "off  DISCORD_TOKEN is not set (docs/discord.md)"),
  tools: {},
  async checks(
    { DISCORD_TOKEN: token, DISCORD_API_URL: apiUrl, DISCORD_SHARDS: count, DISCORD_SHARD_IDS: ids },
    { commands },
  ) {
    if (token === undefined) return [];
    const { createDiscordChecks } = await import("./checks.ts");
    return createDiscordChecks({
      token,
      commands,
      shards: toShardSettings(count, ids),
      ...(apiUrl === undefined ? {} : { apiUrl }),
    });
  },
  async load() {
    const { createDiscordPlatform } = await import("./platform.ts");
    return {
      create(
        {
          DISCORD_TOKEN: token = "",
          DISCORD_API_URL: apiUrl,
          DISCORD_SHARDS: count,
          DISCORD_SHARD_IDS: ids,
          DISCORD_REQUESTS_PER_SECOND: requestsPerSecond,
        },
        { commands, log, meter, claims, records, clock },
      ) {
        const problem = sharingProblem(count, ids, claims.isShared);
        if (problem !== undefined) throw new ParleyError("config", problem);
        return {
          platform: createDiscordPlatform({
            token,
            commands,
            shards: toShardSettings(count, ids),
            requestsPerSecond,
            isShared: claims.isShared,
            records,
            clock,
            log,
            meter,
            ...(apiUrl === undefined ? {} : { apiUrl }),
          }),
        };
      },
    };
  },
});
