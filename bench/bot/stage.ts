import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { createDiscordSimulator } from "../../test/simulators/discord/simulator.ts";
import { createSlackSimulator } from "../../test/simulators/slack/simulator.ts";
import { marks, modelId, startScriptedGateway, type ScriptedGateway } from "./scripted-gateway.ts";

/** The simulated platforms. */
export type PlatformName = "discord" | "slack";

/** One conversation of a new person with the bot: direct messages on Discord, a thread in them on Slack. */
export interface Talk {
  readonly platform: PlatformName;
  /** Sends the next question. Resolves when the platform has the whole answer. */
  ask(): Promise<Turn>;
}

/** Times of one turn, as `performance.now()` of this process. */
export interface Turn {
  readonly sentAt: number;
  readonly askedAt: number;
  readonly firstTokenAt: number;
  /** Arrival at the platform of the first request that contains the first token. */
  readonly firstVisibleAt: number;
  readonly lastVisibleAt: number;
}

/** Simulators of both platforms and a gateway for one run of a bot, in this process. */
export interface Stage {
  /** Settings that connect a bot to it. */
  readonly env: Readonly<Record<string, string>>;
  readonly gateway: ScriptedGateway;
  isConnected(platform: PlatformName): boolean;
  /** Starts a conversation. */
  talk(platform: PlatformName): Talk;
  /** Requests to a platform so far. */
  requestCount(platform: PlatformName): number;
  close(): Promise<void>;
}

/** So high that the platforms' rate limits do not affect the comparison. */
const plenty = 10_000_000;
const plentyPerWindow = { limit: plenty, windowMs: 1000 };
const turnWithinMs = 30_000;

/** Starts the simulators and the gateway. */
export async function createStage(): Promise<Stage> {
  const [discord, slack, gateway] = await Promise.all([
    createDiscordSimulator({
      rateLimits: {
        messages: plentyPerWindow,
        edits: plentyPerWindow,
        webhooks: plentyPerWindow,
        others: plentyPerWindow,
        globalPerSecond: plenty,
      },
    }),
    createSlackSimulator(),
    startScriptedGateway(),
  ]);
  for (const method of slackMethods) slack.limit(method, plenty);

  // Both simulators record a request after handling it; the arrival is what counts here.
  const arrivedAt = new Map<string, number>();
  const noteArrival = (message: unknown): void => {
    const { request } = message as { request: IncomingMessage };
    arrivedAt.set((request.url ?? "").split("?", 1)[0] ?? "", performance.now());
  };
  subscribe("http.server.request.start", noteArrival);

  const watches = new Map<number, { first?: number; done(at: number): void }>();
  const inspect = (path: string, content: unknown): void => {
    const text = JSON.stringify(content);
    const at = arrivedAt.get(path) ?? Number.NaN;
    for (const [, turn] of text.matchAll(/first(\d+)\./g)) {
      const watch = watches.get(Number(turn));
      if (watch !== undefined) watch.first ??= at;
    }
    for (const [, turn] of text.matchAll(/last(\d+)\./g)) watches.get(Number(turn))?.done(at);
  };
  onPush(discord.requests, ({ path, json, status }) => {
    if (status < 300) inspect(`/api/v10${path}`, json);
  });
  onPush(slack.calls, ({ method, args, outcome }) => {
    if (outcome === "ok") inspect(`/api/${method}`, args);
  });

  let turns = 0;
  let people = 0;
  async function follow(send: (text: string) => void): Promise<Turn> {
    turns += 1;
    const turn = turns;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`turn ${turn} was not answered within ${turnWithinMs} ms`));
      }, turnWithinMs);
      const sentAt = performance.now();
      const watch = {
        first: undefined as number | undefined,
        done(lastVisibleAt: number) {
          clearTimeout(timer);
          watches.delete(turn);
          resolve({
            sentAt,
            askedAt: gateway.askedAt.get(turn) ?? Number.NaN,
            firstTokenAt: gateway.firstTokenAt.get(turn) ?? Number.NaN,
            firstVisibleAt: watch.first ?? Number.NaN,
            lastVisibleAt,
          });
        },
      };
      watches.set(turn, watch as { first?: number; done(at: number): void });
      send(marks.question(turn));
    });
  }

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
      // One person asks everything.
      TURNS_PERSON_MINUTE: "0",
    },
    gateway,
    isConnected: (platform) =>
      platform === "discord" ? discord.gateway.counts.identify > 0 : slack.connections > 0,
    requestCount: (platform) => (platform === "discord" ? discord.requests.length : slack.calls.length),
    talk(platform) {
      people += 1;
      if (platform === "discord") {
        const person = discord.person(`Person ${people}`);
        const channel = discord.directMessages(person);
        return { platform, ask: () => follow((text) => void person.sends({ channel, text })) };
      }
      const person = slack.person(`Person ${people}`);
      let thread: string | undefined;
      return {
        platform,
        ask: () =>
          follow((text) => {
            const channel = person.directMessages;
            const ts = person.sends({ channel, text, ...(thread === undefined ? {} : { thread }) });
            thread ??= ts;
          }),
      };
    },
    async close() {
      unsubscribe("http.server.request.start", noteArrival);
      await Promise.all([gateway.close(), slack.close(), discord.close()]);
    },
  };
}

const slackMethods = [
  "agents.sessions.setStatus",
  "apps.connections.open",
  "assistant.threads.setStatus",
  "assistant.threads.setSuggestedPrompts",
  "chat.postMessage",
  "chat.update",
  "conversations.replies",
  "users.info",
];

/** Calls a listener synchronously for every item added to a record: polling would be too coarse. */
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
