import {
  Client,
  GatewayIntentBits,
  Options,
  RESTEvents,
  SimpleShardingStrategy,
  type ClientOptions,
} from "discord.js";
import { publicApiUrl } from "./api.ts";
import type { IdentifyThrottle } from "./identify-throttle.ts";
import { createMakeRequest, type DiscordClock, type RequestGuard } from "./make-request.ts";
import type { ShardSettings } from "./shards.ts";

/** The settings that every client of a connection shares. */
export interface ClientSettings {
  readonly apiUrl: string;
  readonly shards: ShardSettings;
  readonly onResponse: DiscordClock["observe"];
  readonly guard: RequestGuard;
}

/** The shard manager that the client passes, of `@discordjs/ws`. */
type ShardManager = Parameters<NonNullable<NonNullable<ClientOptions["ws"]>["buildStrategy"]>>[0];

/** How the shards of a client are run. */
interface ShardControl {
  readonly throttle: Pick<IdentifyThrottle, "note" | "waitForIdentify" | "waitForBudget">;
  /** Whether the client was given up. Its shards then connect no more. */
  readonly isClosed: () => boolean;
  /** Aborts everything that waits. */
  readonly signal: AbortSignal;
}

/** These are never looked up in the cache. Messages, people and the like are read where they are needed. */
const uncached = {
  ApplicationCommandManager: 0,
  ApplicationEmojiManager: 0,
  AutoModerationRuleManager: 0,
  BaseGuildEmojiManager: 0,
  DMMessageManager: 0,
  EntitlementManager: 0,
  GuildBanManager: 0,
  GuildEmojiManager: 0,
  GuildInviteManager: 0,
  GuildMemberManager: 0,
  GuildMessageManager: 0,
  GuildScheduledEventManager: 0,
  GuildStickerManager: 0,
  MessageManager: 0,
  PresenceManager: 0,
  ReactionManager: 0,
  ReactionUserManager: 0,
  StageInstanceManager: 0,
  ThreadMemberManager: 0,
  UserManager: 0,
  VoiceStateManager: 0,
};

/**
 * Creates the client of discord.js, whose caches hold servers, channels, threads and roles. Partials are off.
 * Events are read in their raw form, which needs no partials, and each partial would keep a channel of direct
 * messages for ever.
 */
export function createClient(
  { apiUrl, shards, onResponse, guard }: ClientSettings,
  hasContentIntent: boolean,
  control: ShardControl,
): Client {
  const client = new Client({
    intents: [
      GatewayIntentBits.Guilds,
      GatewayIntentBits.GuildMessages,
      GatewayIntentBits.DirectMessages,
      ...(hasContentIntent ? [GatewayIntentBits.MessageContent] : []),
    ],
    ...toShardOptions(shards),
    makeCache: Options.cacheWithLimits(uncached),
    rest: {
      api: apiUrl,
      offset: apiUrl === publicApiUrl ? 50 : 0,
      makeRequest: createMakeRequest(guard),
    },
    ws: {
      buildIdentifyThrottler: (manager) => ({
        waitForIdentify: (shardId, given) =>
          control.throttle.waitForIdentify(
            shardId,
            () => askLimit(manager),
            AbortSignal.any([given, control.signal]),
          ),
      }),
      buildStrategy: (manager) => createShardingStrategy(manager, control),
    },
  });
  client.rest.on(RESTEvents.Response, (_, response) => onResponse(response));
  return client;
}

/** Asks for the limit. The library notes it too. */
async function askLimit(manager: ShardManager) {
  return (await manager.fetchGatewayInformation(true)).session_start_limit;
}

/** Names all shards. Where none is named, the client takes them from SHARDS in the environment. */
function toShardOptions({ count, ids }: ShardSettings) {
  if (count === "auto") return { shards: count } as const;
  return { shards: ids ?? Array.from({ length: count }, (_, id) => id), shardCount: count };
}

/** Wraps the library's strategy, which runs all shards in this process, and adds what it lacks. */
function createShardingStrategy(manager: ShardManager, { throttle, isClosed, signal }: ShardControl) {
  const strategy = new SimpleShardingStrategy(manager);
  const retrieve = manager.options.retrieveSessionInfo.bind(manager.options);
  const never = new Promise<never>(() => {});
  // The library cannot cancel its pause before it reconnects. A shard that was closed meanwhile stays here.
  manager.options.retrieveSessionInfo = (shardId) => (isClosed() ? never : retrieve(shardId));
  return {
    async spawn(shardIds: number[]) {
      // The client has just asked. Where too few starts are left, the library gives up and does not wait.
      throttle.note((await manager.fetchGatewayInformation()).session_start_limit);
      await throttle.waitForBudget(shardIds.length, () => askLimit(manager), signal);
      await strategy.spawn(shardIds);
    },
    // The client would be destroyed by an error of one connection, which the library opens again.
    connect() {
      strategy.connect().catch(() => undefined);
      return Promise.resolve();
    },
    destroy: (options) => strategy.destroy(options),
    send: (shardId, payload) => strategy.send(shardId, payload),
    fetchStatus: () => strategy.fetchStatus(),
  } satisfies Pick<SimpleShardingStrategy, "spawn" | "connect" | "destroy" | "send" | "fetchStatus">;
}
