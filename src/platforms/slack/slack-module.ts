import { definePlatform } from "../../core/platform-module.ts";
import { httpUrl, text } from "../../core/settings.ts";

/** Slack for the registry. */
export const slack = definePlatform({
  id: "slack",
  title: "Slack",
  settings: {
    SLACK_BOT_TOKEN: {
      schema: text.startsWith("xoxb-", "must be the bot token, which starts with xoxb-").optional(),
      description: "the bot token; empty: Slack is off",
      isSecret: true,
    },
    SLACK_APP_TOKEN: {
      schema: text.startsWith("xapp-", "must be the app-level token, which starts with xapp-").optional(),
      description: "the app-level token, for Socket Mode",
      isSecret: true,
    },
    SLACK_SIGNING_SECRET: {
      schema: text.optional(),
      description: "for HTTP mode, which is not served yet",
      isSecret: true,
    },
    SLACK_API_URL: { schema: httpUrl.optional(), description: "another API address", shownDefault: "public" },
    SLACK_COMMAND_PREFIX: {
      schema: text.regex(/^[a-z0-9_-]{0,16}$/, "is at most 16 of a-z, 0-9, - and _").default(""),
      description: "put before every command name",
    },
  },
  accessTerms: { team: /^[ET][A-Z\d]+$/, channel: /^[CGD][A-Z\d]+$/, user: /^[UW][A-Z\d]+$/ },
  isOn: ({ SLACK_BOT_TOKEN }) => SLACK_BOT_TOKEN !== undefined,
  problems({ SLACK_BOT_TOKEN, SLACK_APP_TOKEN }) {
    if (SLACK_BOT_TOKEN !== undefined && SLACK_APP_TOKEN === undefined) {
      return [
        "SLACK_APP_TOKEN is needed with SLACK_BOT_TOKEN: make an app-level token with connections:write (docs/slack.md)",
      ];
    }
    if (SLACK_BOT_TOKEN === undefined && SLACK_APP_TOKEN !== undefined)
      return [
        "SLACK_BOT_TOKEN is needed with SLACK_APP_TOKEN: copy it from OAuth & Permissions (docs/slack.md)",
      ];
    return [];
  },
  startLine: (_, { isOn }) =>
    isOn ? "on   connecting, Socket Mode" : "off  SLACK_BOT_TOKEN is not set (docs/slack.md)",
  tools: {
    "slack-manifest": {
      description: "prints the Slack app manifest",
      async run({ SLACK_COMMAND_PREFIX: commandPrefix }, commands) {
        const { createManifest } = await import("./manifest.ts");
        return `${JSON.stringify(createManifest(commands, { commandPrefix, socketMode: true }), null, 2)}\n`;
      },
    },
  },
  async checks({ SLACK_BOT_TOKEN: botToken, SLACK_APP_TOKEN: appToken, SLACK_API_URL: apiUrl }) {
    if (botToken === undefined) return [];
    const { createSlackChecks } = await import("./checks.ts");
    return createSlackChecks({ botToken, appToken, ...(apiUrl === undefined ? {} : { apiUrl }) });
  },
  async load() {
    const { createSlackPlatform } = await import("./platform.ts");
    return {
      create: (values, { commands, log, meter }) => ({
        platform: createSlackPlatform({
          botToken: values.SLACK_BOT_TOKEN ?? "",
          commandPrefix: values.SLACK_COMMAND_PREFIX,
          commands,
          log,
          meter,
          ...(values.SLACK_APP_TOKEN === undefined ? {} : { appToken: values.SLACK_APP_TOKEN }),
          ...(values.SLACK_API_URL === undefined ? {} : { apiUrl: values.SLACK_API_URL }),
        }),
      }),
    };
  },
});
