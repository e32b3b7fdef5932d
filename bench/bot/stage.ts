import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { soonAgain } from "../../test/simulators/discord/session-starts.ts";
import { createDiscordSimulator } from "../../test/simulators/discord/simulator.ts";
import { createSlackSimulator } from "../../test/simulators/slack/simulator.ts";
import { modelId, startScriptedGateway, type ScriptedGateway } from "./scripted-gateway.ts";
import { createTalks, type Talk, type TurnKind } from "./talks.ts";
import { createTurnWatch } from "./turn-watch.ts";

/** The simulated platforms. */
export type PlatformName = "discord" | "slack";

/** `platform` applies the platforms' own rate limits. `lifted` has none that could be reached. */
export type Limits = "platform" | "lifted";

/** Simulators of both platforms and a gateway in this process, for one run of a bot. */
export interface Stage {
  /** Settings that connect a bot to it. */
  readonly env: Readonly<Record<string, string>>;
  readonly gateway: ScriptedGateway;
  isConnected(platform: PlatformName): boolean;
  /** Whether the bot has registered `/ask`. */
  hasCommands(): boolean;
  /** Starts a conversation of the next person in the next channel. */
  talk(kind: TurnKind): Talk;
  /** The number of requests to both platforms so far. */
  requestCount(): number;
  /** The number of requests so far that were refused for a rate limit. */
  rateLimited(): number;
  close(): Promise<void>;
}

const plenty = 10_000_000;
/** The requests per second that a bot is allowed by its own setting. */
const plentyRequests = 100_000;
const plentyPerWindow = { limit: plenty, windowMs: 1000 };
const liftedOnDiscord = {
  messages: plentyPerWindow,
  edits: plentyPerWindow,
  webhooks: plentyPerWindow,
  typing: plentyPerWindow,
  threads: plentyPerWindow,
  others: plentyPerWindow,
  globalPerSecond: plenty,
};

/** Starts the simulators and the gateway. */
export async function createStage(limits: Limits): Promise<Stage> {
  const [discord, slack, gateway] = await Promise.all([
    createDiscordSimulator({
      sessionStarts: soonAgain,
      ...(limits === "lifted" ? { rateLimits: liftedOnDiscord } : {}),
    }),
    createSlackSimulator(),
    startScriptedGateway(),
  ]);
  if (limits === "lifted") for (const method of slackMethods) slack.limit(method, plenty);
  const watch = createTurnWatch(gateway);
  const talk = createTalks({ discord, slack }, watch);

  // Both simulators record a request after handling it, but its arrival is what counts here.
  const arrivedAt = new Map<string, number>();
  const noteArrival = (message: unknown): void => {
    const { request } = message as { request: IncomingMessage };
    arrivedAt.set((request.url ?? "").split("?", 1)[0] ?? "", performance.now());
  };
  subscribe("http.server.request.start", noteArrival);
  const takeArrival = (path: string): number => {
    const at = arrivedAt.get(path) ?? performance.now();
    arrivedAt.delete(path);
    return at;
  };

  let rateLimited = 0;
  onPush(discord.requests, ({ path, json, status, template }) => {
    const at = takeArrival(`/api/v10${path}`);
    if (status === 429) rateLimited += 1;
    if (status >= 300) return;
    if (template.startsWith("/interactions/")) watch.acknowledged(path.split("/")[2] ?? "", at);
    watch.inspect(json, at);
  });
  onPush(slack.calls, ({ method, args, outcome }) => {
    const at = takeArrival(`/api/${method}`);
    if (outcome === "429") rateLimited += 1;
    if (outcome === "ok") watch.inspect(args, at);
  });

  return {
    env: {
      DISCORD_TOKEN: discord.token,
      DISCORD_API_URL: discord.apiUrl,
      SLACK_BOT_TOKEN: slack.botToken,
      SLACK_APP_TOKEN: slack.appToken,
      SLACK_API_URL: slack.apiUrl,
      GATEWAY_BASE_URL: gateway.url,
      GATEWAY_API_KEY: "bench-key",
      CHAT_MODEL: modelId,
      // Few people ask everything, and the gateway has room for all of it.
      TURNS_PERSON_MINUTE: "0",
      GATEWAY_CONCURRENCY: "2000",
      GATEWAY_CONCURRENCY_PERSON: "100",
      // Both bots keep to Discord's limit by themselves.
      ...(limits === "lifted" ? { DISCORD_REQUESTS_PER_SECOND: String(plentyRequests) } : {}),
    },
    gateway,
    isConnected: (platform) =>
      platform === "discord" ? discord.gateway.counts.identify > 0 : slack.connections > 0,
    hasCommands: () => discord.world.commands.some(({ name }) => name === "ask"),
    requestCount: () => discord.requests.length + slack.calls.length,
    rateLimited: () => rateLimited,
    talk,
    async close() {
      unsubscribe("http.server.request.start", noteArrival);
      await Promise.all([gateway.close(), slack.close(), discord.close()]);
    },
  };
}

/** The methods whose limits are lifted. */
const slackMethods = [
  "agents.sessions.setStatus",
  "apps.connections.open",
  "chat.delete",
  "chat.postEphemeral",
  "conversations.history",
  "assistant.threads.setSuggestedPrompts",
  "chat.appendStream",
  "chat.postMessage",
  "chat.startStream",
  "chat.stopStream",
  "chat.update",
  "conversations.info",
  "conversations.replies",
  "users.info",
];

/** Calls a listener synchronously for every item that is added, because polling would be too coarse. */
function onPush<T>(record: readonly T[], listener: (item: T) => void): void {
  const push = Array.prototype.push.bind(record as T[]);
  Object.defineProperty(record, "push", {
    value: (...items: T[]) => {
      const length = push(...items);
      for (const item of items) listener(item);
      return length;
    },
  });
}
