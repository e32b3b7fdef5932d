import { allCommands } from "../../support/commands.ts";
import { createManifest } from "../../../src/platforms/slack/manifest.ts";
import { createDiscordSimulator } from "../../simulators/discord/simulator.ts";
import { until } from "../../simulators/discord/until.ts";
import { createSlackSimulator } from "../../simulators/slack/simulator.ts";
import { firstEvent } from "../../unit/platforms/web/page-server.ts";
import type { RunningParley } from "../process/run-parley.ts";

/** A message of the bot as a person sees it. */
export interface SeenAnswer {
  readonly id: string;
  readonly text: string;
  readonly buttons: readonly string[];
}

/** One person's conversation with the bot, on a platform that outlives the bot's processes. */
export interface Surface {
  /** Environment of the bot's process. */
  readonly settings: Readonly<Record<string, string>>;
  /** Resolves when a started process is connected. */
  waitUntilReady(parley: RunningParley): Promise<void>;
  /** Sends a message. It may be lost if no process is connected. */
  say(text: string): Promise<void>;
  /** The bot's messages so far. */
  seen(): Promise<readonly SeenAnswer[]>;
  /** Lets the platform redeliver. */
  passTime(): void;
  close(): Promise<void>;
}

/** Direct messages on Discord, a thread that a mention has opened, or `/ask` in a channel. */
export async function createDiscordSurface(kind: "direct" | "thread" | "command"): Promise<Surface> {
  const discord = await createDiscordSimulator();
  const ada = discord.person("Ada");
  const general = discord.channel("general");
  const surface = () => (kind === "direct" ? discord.directMessages(ada) : general.threads()[0]);
  return {
    settings: { DISCORD_TOKEN: discord.token, DISCORD_API_URL: discord.apiUrl },
    async waitUntilReady(parley) {
      await parley.says(/Ready\./);
      await until(() => discord.world.commands.length > 0);
    },
    async say(text) {
      if (kind === "command") {
        ada.usesCommand("ask", { prompt: text }, { channel: general });
        return;
      }
      const channel = surface();
      ada.sends(channel === undefined ? { channel: general, text, mentionBot: true } : { channel, text });
    },
    async seen() {
      const channels = kind === "direct" ? [discord.directMessages(ada)] : [general, ...general.threads()];
      return channels
        .flatMap((channel) => channel.fromBot())
        .map(({ id, text, buttons }) => ({ id, text, buttons: buttons.map(({ label }) => label) }));
    },
    passTime() {},
    close: () => discord.close(),
  };
}

/** A thread in direct messages on Slack. */
export async function createSlackSurface(): Promise<Surface> {
  const slack = await createSlackSimulator({
    manifest: createManifest(allCommands, { socketMode: true }),
  });
  const ana = slack.person("Ana");
  let root: string | undefined;
  return {
    settings: {
      SLACK_BOT_TOKEN: slack.botToken,
      SLACK_APP_TOKEN: slack.appToken,
      SLACK_API_URL: slack.apiUrl,
    },
    async waitUntilReady(parley) {
      await parley.says(/Ready\./);
    },
    async say(text) {
      const thread = root === undefined ? {} : { thread: root };
      const ts = ana.sends({ channel: ana.directMessages, text, ...thread });
      root ??= ts;
    },
    async seen() {
      return slack
        .directMessages(ana)
        .saidByBot()
        .map(({ ts, body, smallPrint, buttons }) => ({
          id: ts,
          text: [body, smallPrint].filter((words) => words !== "").join("\n"),
          buttons: buttons.map(({ label }) => label),
        }));
    },
    // Slack redelivers an unacknowledged event after a minute.
    passTime: () => slack.clock.advance(61_000),
    close: () => slack.close(),
  };
}

/** A conversation on the page. */
export function createPageSurface(): Surface {
  const conversation = "crashcrashcrashcrash";
  let url = "";
  let said = 0;
  return {
    settings: { PAGE: "on" },
    async waitUntilReady(parley) {
      [, url = ""] = await parley.says(/Page +on +(\S+)/);
      await parley.says(/Ready\.|Health/);
    },
    async say(text) {
      const id = `message${String(++said).padStart(16, "0")}`;
      await fetch(`${url}/api/conversations/${conversation}/messages`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-parley": "1", origin: url },
        body: JSON.stringify({ id, text }),
      }).catch((error: unknown) => {
        // The process died before it responded.
        if (!(error instanceof TypeError)) throw error;
      });
    },
    async seen() {
      const { data } = await firstEvent(new URL(url).host, `/api/conversations/${conversation}/events`);
      const items = data.items as { id: string; role: string; text: string; retryKey?: string }[];
      return items
        .filter(({ role }) => role === "assistant")
        .map(({ id, text, retryKey }) => ({ id, text, buttons: retryKey === undefined ? [] : ["Retry"] }));
    },
    passTime() {},
    close: () => Promise.resolve(),
  };
}
