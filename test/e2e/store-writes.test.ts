import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startParley, type Parley } from "../../src/compose.ts";
import { openConfiguredStore } from "../../src/compose-store.ts";
import { parseConfig } from "../../src/config.ts";
import type { Store } from "../../src/conversations/open-store.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../simulators/discord/simulator.ts";
import { startScriptedGateway, type ScriptedGateway } from "../simulators/gateway/scripted-gateway.ts";
import { createSlackSimulator, type SlackSimulator } from "../simulators/slack/simulator.ts";
import { until } from "../simulators/discord/until.ts";
import { allCommands } from "../support/commands.ts";
import { silentLog } from "../support/silent-log.ts";

let folder: string;
let discord: DiscordSimulator;
let slack: SlackSimulator;
let gateway: ScriptedGateway;
let parley: Parley;
let store: Store;
const answer = "All of it is written.";
const answerStream = [
  { choices: [{ index: 0, delta: { content: answer }, finish_reason: null }] },
  { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
]
  .map(
    (chunk) =>
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", ...chunk })}\n\n`,
  )
  .concat("data: [DONE]\n\n")
  .join("");

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-writes-"));
  [discord, slack, gateway] = await Promise.all([
    createDiscordSimulator(),
    createSlackSimulator(),
    startScriptedGateway(
      ({ path }) =>
        path === "/v1/models"
          ? { body: JSON.stringify({ object: "list", data: [{ id: "m", object: "model" }] }) }
          : { body: answerStream },
      { apiKey: "key" },
    ),
  ]);
  const config = parseConfig({
    DISCORD_TOKEN: discord.token,
    DISCORD_API_URL: discord.apiUrl,
    SLACK_BOT_TOKEN: slack.botToken,
    SLACK_APP_TOKEN: slack.appToken,
    SLACK_API_URL: slack.apiUrl,
    GATEWAY_BASE_URL: gateway.baseUrl,
    GATEWAY_API_KEY: "key",
    CHAT_MODEL: "m",
    // Their counts are written too.
    BUDGET_DAY_USD: "100",
    STORE_URL: `sqlite:${join(folder, "parley.db")}`,
    PORT: "0",
  });
  parley = await startParley(config, {
    commands: allCommands,
    log: silentLog,
    openStore: async (...options) => (store = await openConfiguredStore(...options)),
  });
  await parley.connected;
  await until(() => discord.world.commands.some(({ name }) => name === "ask"));
});
afterAll(async () => {
  await parley.stop();
  await Promise.all([discord.close(), slack.close(), gateway.close()]);
  await rm(folder, { recursive: true });
});

describe("a turn on SQLite waits for three durable writes at most: accept, question and claim, answer", () => {
  /** Durable transactions of one turn. A first one is not counted: it opens the conversation. */
  async function countTurn(ask: () => () => boolean): Promise<number> {
    const run = async (): Promise<void> => {
      const isAnswered = ask();
      await until(isAnswered);
      await until(() => parley.assistant.pending() === 0);
    };
    await run();
    const before = store.writes().durableCommits;
    await run();
    return store.writes().durableCommits - before;
  }

  it("for a mention on Discord", async () => {
    const person = discord.person("Ada");
    const channel = discord.channel("mentions");
    const count = await countTurn(() => {
      const { id } = person.sends({ channel, text: "hello", mentionBot: true });
      return () => discord.world.channels.has(id) && discord.handle(id).fromBot().some(hasAnswer);
    });
    expect(count).toBeLessThanOrEqual(3);
  });

  it("for a message in the bot's thread on Discord", async () => {
    const person = discord.person("Ada");
    const { id } = person.sends({ channel: discord.channel("threads"), text: "hello", mentionBot: true });
    await until(() => discord.world.channels.has(id) && discord.handle(id).fromBot().some(hasAnswer));
    const thread = discord.handle(id);
    const count = await countTurn(() => {
      const wanted = thread.fromBot().filter(hasAnswer).length + 1;
      person.sends({ channel: { id }, text: "hello" });
      return () => thread.fromBot().filter(hasAnswer).length === wanted;
    });
    expect(count).toBeLessThanOrEqual(3);
  });

  // The question is stored after what was said before it has been read, and so not together with the claim.
  it("and one more for a mention in people's thread, on Discord", async () => {
    const person = discord.person("Ada");
    const thread = discord.thread(discord.channel("people"), person);
    const count = await countTurn(() => {
      const wanted = thread.fromBot().filter(hasAnswer).length + 1;
      person.sends({ channel: thread, text: "hello", mentionBot: true });
      return () => thread.fromBot().filter(hasAnswer).length === wanted;
    });
    expect(count).toBeLessThanOrEqual(4);
  });

  it("for a slash command on Discord", async () => {
    const person = discord.person("Ada");
    const channel = discord.channel("commands");
    const count = await countTurn(() => {
      const wanted = channel.fromBot().filter(hasAnswer).length + 1;
      person.usesCommand("ask", { prompt: "hello" }, { channel });
      return () => channel.fromBot().filter(hasAnswer).length === wanted;
    });
    expect(count).toBeLessThanOrEqual(3);
  });

  it("for a mention on Slack", async () => {
    const person = slack.person("Grace");
    const channel = slack.channel("mentions", [person]);
    const count = await countTurn(() => {
      const ts = person.sends({ channel: channel.id, text: "hello", mentionBot: true });
      return () => channel.saidByBot(ts).some(hasAnswer);
    });
    expect(count).toBeLessThanOrEqual(3);
  });

  it("for a message in a mention's thread on Slack", async () => {
    const person = slack.person("Grace");
    const channel = slack.channel("threads", [person]);
    const thread = person.sends({ channel: channel.id, text: "to begin with", mentionBot: true });
    await until(() => channel.saidByBot(thread).some(hasAnswer));
    const count = await countTurn(() => {
      const wanted = channel.saidByBot(thread).filter(hasAnswer).length + 1;
      person.sends({ channel: channel.id, thread, text: "hello", mentionBot: true });
      return () => channel.saidByBot(thread).filter(hasAnswer).length === wanted;
    });
    expect(count).toBeLessThanOrEqual(3);
  });
});

function hasAnswer(message: { readonly text: string }): boolean {
  return message.text.includes(answer);
}
