/** This is a client of discord.js with its default caches, for `discord-memory.ts`. */
import { Client, GatewayIntentBits } from "discord.js";

const client = new Client({
  intents: [
    GatewayIntentBits.Guilds,
    GatewayIntentBits.GuildMessages,
    GatewayIntentBits.DirectMessages,
    GatewayIntentBits.MessageContent,
  ],
  rest: { api: process.env["DISCORD_API_URL"] ?? "", offset: 0 },
});
await client.login(process.env["DISCORD_TOKEN"]);
