/**
 * The bot that a good tutorial ends with, for comparison. It has the official SDKs, history in a Map, and a
 * placeholder that is edited at most once a second. It forgets everything when it stops, and does not notice
 * what it misses. It reads the same variables as Parley.
 */
import { App } from "@slack/bolt";
import {
  Client,
  Events,
  GatewayIntentBits,
  Partials,
  SlashCommandBuilder,
  type ChatInputCommandInteraction,
  type Message,
} from "discord.js";
import OpenAI from "openai";

const env = process.env as Record<string, string>;
const systemPrompt = "You are an assistant in a team's chat. Answer plainly and to the point.";
const maxHistory = 200;
const editEveryMs = 1000;

const openai = new OpenAI({
  baseURL: `${env["GATEWAY_BASE_URL"]}/v1`,
  apiKey: env["GATEWAY_API_KEY"] ?? "none",
});

type Said = { role: "user" | "assistant"; content: string };
const histories = new Map<string, Said[]>();

function historyOf(id: string): Said[] {
  const history = histories.get(id) ?? [];
  histories.set(id, history);
  return history;
}

async function answer(
  history: Said[],
  text: string,
  edit: (text: string) => Promise<unknown>,
): Promise<void> {
  history.push({ role: "user", content: text });
  if (history.length > maxHistory) history.splice(0, history.length - maxHistory);
  try {
    const stream = await openai.chat.completions.create({
      model: env["CHAT_MODEL"] ?? "gpt-4o-mini",
      messages: [{ role: "system", content: systemPrompt }, ...history],
      max_tokens: 1024,
      stream: true,
    });
    let shown = "";
    let whole = "";
    let editedAt = 0;
    for await (const chunk of stream) {
      whole += chunk.choices[0]?.delta.content ?? "";
      if (whole !== shown && Date.now() - editedAt >= editEveryMs) {
        editedAt = Date.now();
        shown = whole;
        await edit(whole);
      }
    }
    if (whole !== shown) await edit(whole);
    history.push({ role: "assistant", content: whole });
  } catch (error) {
    console.error(error);
    await edit("Sorry, something went wrong.");
  }
}

const discord = new Client({
  intents: [
    GatewayIntentBits.Guilds,
    GatewayIntentBits.GuildMessages,
    GatewayIntentBits.DirectMessages,
    GatewayIntentBits.MessageContent,
  ],
  partials: [Partials.Channel],
  rest: {
    ...(env["DISCORD_API_URL"] === undefined ? {} : { api: env["DISCORD_API_URL"] }),
    globalRequestsPerSecond: Number(env["DISCORD_REQUESTS_PER_SECOND"] ?? 50),
  },
});

async function answerDiscord(message: Message): Promise<void> {
  if (message.author.bot || discord.user === null) return;
  if (!message.channel.isDMBased() && !message.mentions.has(discord.user)) return;
  const text = message.content.replace(`<@${discord.user.id}>`, "").trim();
  const reply = await message.reply({ content: "…", allowedMentions: { parse: [] } });
  await answer(historyOf(message.channelId), text, (content) => reply.edit(content.slice(0, 2000)));
}

discord.on(Events.MessageCreate, (message) => {
  answerDiscord(message).catch(console.error);
});

const askCommand = new SlashCommandBuilder()
  .setName("ask")
  .setDescription("Ask the model a question")
  .addStringOption((option) => option.setName("prompt").setDescription("What to ask").setRequired(true));

async function answerCommand(interaction: ChatInputCommandInteraction): Promise<void> {
  await interaction.deferReply();
  const text = interaction.options.getString("prompt", true);
  await answer([], text, (content) =>
    interaction.editReply({ content: content.slice(0, 2000), allowedMentions: { parse: [] } }),
  );
}

discord.once(Events.ClientReady, (client) => {
  client.application.commands.set([askCommand]).catch(console.error);
});
discord.on(Events.InteractionCreate, (interaction) => {
  if (interaction.isChatInputCommand() && interaction.commandName === "ask")
    answerCommand(interaction).catch(console.error);
});

const slack = new App({
  token: env["SLACK_BOT_TOKEN"] ?? "",
  appToken: env["SLACK_APP_TOKEN"] ?? "",
  socketMode: true,
  ...(env["SLACK_API_URL"] === undefined ? {} : { clientOptions: { slackApiUrl: env["SLACK_API_URL"] } }),
});

interface SlackMessage {
  readonly channel: string;
  readonly ts: string;
  readonly thread_ts?: string;
  readonly text?: string;
}

async function answerSlack(message: SlackMessage): Promise<void> {
  const { channel } = message;
  const thread = message.thread_ts ?? message.ts;
  const text = (message.text ?? "").replace(/<@\w+>/, "").trim();
  // eslint-disable-next-line unicorn/require-post-message-target-origin -- not a window's
  const { ts } = await slack.client.chat.postMessage({ channel, thread_ts: thread, text: "…" });
  await answer(historyOf(`${channel}:${thread}`), text, (content) =>
    slack.client.chat.update({ channel, ts: ts ?? "", text: content.slice(0, 4000) }),
  );
}

slack.message(async ({ message }) => {
  if (message.channel_type === "im" && message.subtype === undefined) await answerSlack(message);
});
slack.event("app_mention", async ({ event }) => {
  await answerSlack(event);
});

process.once("SIGTERM", () => process.exit(0));

await Promise.all([discord.login(env["DISCORD_TOKEN"]), slack.start()]);
console.log("Ready.");
