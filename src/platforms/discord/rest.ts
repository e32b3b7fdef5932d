/**
 * The REST client of discord.js, in the build that its package has for runtimes with a `fetch`: the one for Node.js loads
 * an undici of its own beside Parley's. Both send with the `makeRequest` that they are given (http-agent.ts).
 */
export {
  DiscordAPIError,
  HTTPError,
  RateLimitError,
  REST,
} from "../../../node_modules/@discordjs/rest/dist/web.mjs";
