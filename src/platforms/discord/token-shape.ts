import { wrong, type Finding } from "../../core/checks.ts";

const remedy = "copy the bot's token: Reset Token under Bot at https://discord.com/developers/applications";

/**
 * What is plainly something else than a bot's token, without asking Discord: it blocks addresses that send many wrong
 * tokens. `undefined`: it may be one.
 */
export function tokenShapeProblem(token: string): Finding | undefined {
  if (/^Bot\s/i.test(token)) return wrong("Token", 'DISCORD_TOKEN begins with "Bot "', "leave that word out");
  if (/^["'`]|["'`]$/.test(token))
    return wrong("Token", "DISCORD_TOKEN has quotation marks", "leave them out");
  if (/\s/.test(token)) return wrong("Token", "DISCORD_TOKEN contains a space or line break", remedy);
  if (/^\d{15,20}$/.test(token)) return wrong("Token", "DISCORD_TOKEN is the application's id", remedy);
  if (/^[\da-f]{64}$/.test(token))
    return wrong("Token", "DISCORD_TOKEN is the application's public key", remedy);
  if (/^[\w-]{32}$/.test(token)) return wrong("Token", "DISCORD_TOKEN is the client secret", remedy);
  // The id of the bot, a time and a signature.
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token))
    return wrong("Token", "DISCORD_TOKEN is not three parts with dots between, as a bot's token is", remedy);
  return undefined;
}
