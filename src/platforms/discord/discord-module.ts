import { definePlatform } from "../../core/platform-module.ts";
import { httpUrl, text } from "../../core/settings.ts";

const snowflake = /^[1-9]\d{0,19}$/;

/** Discord for the registry. */
export const discord = definePlatform({
  id: "discord",
  title: "Discord",
  settings: {
    DISCORD_TOKEN: {
      schema: text.optional(),
      description: "the bot's token; empty: Discord is off",
      isSecret: true,
    },
    DISCORD_API_URL: {
      schema: httpUrl.optional(),
      description: "another API address, for tests and proxies",
      shownDefault: "public",
    },
  },
  accessTerms: { guild: snowflake, channel: snowflake, role: snowflake, user: snowflake },
  isOn: ({ DISCORD_TOKEN }) => DISCORD_TOKEN !== undefined,
  problems: () => [],
  startLine: (_, { isOn }) => (isOn ? "on   connecting" : "off  DISCORD_TOKEN is not set (docs/discord.md)"),
  tools: {},
  async checks({ DISCORD_TOKEN: token, DISCORD_API_URL: apiUrl }, { commands }) {
    if (token === undefined) return [];
    const { createDiscordChecks } = await import("./checks.ts");
    return createDiscordChecks({ token, commands, ...(apiUrl === undefined ? {} : { apiUrl }) });
  },
  async load() {
    const { createDiscordPlatform } = await import("./platform.ts");
    return {
      create: ({ DISCORD_TOKEN: token = "", DISCORD_API_URL: apiUrl }, { commands, log, meter }) => ({
        platform: createDiscordPlatform({
          token,
          commands,
          log,
          meter,
          ...(apiUrl === undefined ? {} : { apiUrl }),
        }),
      }),
    };
  },
});
