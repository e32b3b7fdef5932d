import { z } from "zod";
import { definePlatform } from "../../core/platform-module.ts";
import { httpUrl, sendsInTheClear, text, type Settings, type SettingValues } from "../../core/settings.ts";
import type { createManifest } from "./install/manifest.ts";
import { eventsPath, installPath } from "./address.ts";

const settings = {
  SLACK_BOT_TOKEN: {
    schema: text.startsWith("xoxb-", "must be the bot token, which starts with xoxb-").optional(),
    description: "the bot token (xoxb-…); empty: Slack is off",
    isSecret: true,
    question: { text: "Bot token (xoxb-…)", isGate: true },
  },
  SLACK_APP_TOKEN: {
    schema: text.startsWith("xapp-", "must be the app-level token, which starts with xapp-").optional(),
    description: "the app-level token (xapp-…), for Socket Mode",
    isSecret: true,
    question: { text: "App-level token with connections:write (xapp-…; empty: HTTP mode)" },
  },
  SLACK_SIGNING_SECRET: {
    schema: text.min(16, "is too short: copy the whole signing secret").optional(),
    description: "for HTTP mode, on where `SLACK_APP_TOKEN` is not set: `POST /slack/events`",
    note: "Slack must reach it over https.",
    isSecret: true,
    question: {
      text: "Signing secret, of Basic Information",
      when: (inForce) => inForce("SLACK_APP_TOKEN") === "",
    },
  },
  SLACK_CLIENT_ID: {
    schema: text.optional(),
    description:
      "HTTP mode: any workspace may install the app, at `/slack/install`; needs `STORE_ENCRYPTION_KEYS`",
  },
  SLACK_CLIENT_SECRET: { schema: text.optional(), description: "its secret", isSecret: true },
  SLACK_PUBLIC_URL: {
    schema: httpUrl.optional(),
    description:
      "HTTP mode: where Slack and browsers reach this server, such as `https://parley.example.com`",
    note: "It is also in the manifest.",
    isAddress: true,
    question: {
      text: "Where Slack reaches this server (https://…)",
      when: (inForce) => inForce("SLACK_APP_TOKEN") === "",
    },
  },
  SLACK_EXTERNAL_PEOPLE: {
    schema: z.enum(["refused", "answered"]).default("refused"),
    description:
      "people of other workspaces in shared channels, while `ALLOW` is empty: `refused` or `answered`",
  },
  SLACK_API_URL: {
    schema: httpUrl.optional(),
    description: "another API address",
    shownDefault: "public",
    warn: sendsInTheClear("SLACK_BOT_TOKEN"),
  },
  SLACK_COMMAND_PREFIX: {
    schema: text.regex(/^[a-z0-9_-]{0,16}$/, "is at most 16 of a-z, 0-9, - and _").default(""),
    description: "put before every command name: `parley-` makes /parley-ask, where another app has /ask",
    question: {
      text: "Prefix of its commands, such as parley- where other apps have /ask too (empty: none)",
    },
  },
} as const satisfies Settings;

export const slack = definePlatform({
  id: "slack",
  title: "Slack",
  settings,
  setup: {
    intro: "An app of your own in Slack, which answers in channels and direct messages (docs/slack.md).",
    isWanted: { text: "Connect Slack?", is: "SLACK_BOT_TOKEN" },
    asks: [
      "SLACK_COMMAND_PREFIX",
      "SLACK_BOT_TOKEN",
      "SLACK_APP_TOKEN",
      "SLACK_SIGNING_SECRET",
      "SLACK_PUBLIC_URL",
    ],
  },
  accessTerms: { team: /^[ET][A-Z\d]+$/, channel: /^[CGD][A-Z\d]+$/, user: /^[UW][A-Z\d]+$/ },
  isOn: (values) => values.SLACK_BOT_TOKEN !== undefined || isForAnyWorkspace(values),
  problems: (values) => findProblems(values),
  startProblems: (values, { isStoreEncrypted }) =>
    isForAnyWorkspace(values) && !isStoreEncrypted
      ? [
          "STORE_ENCRYPTION_KEYS is needed with SLACK_CLIENT_ID: the store keeps a token of every workspace (openssl rand -base64 32 makes a key)",
        ]
      : [],
  startLine: (values, { isOn, url }) =>
    !isOn
      ? "off  SLACK_BOT_TOKEN is not set (docs/slack.md)"
      : !isHttpMode(values)
        ? "on   connecting, Socket Mode"
        : isForAnyWorkspace(values)
          ? `on   HTTP mode, ${url}${eventsPath}, any workspace: ${url}${installPath}`
          : `on   HTTP mode, ${url}${eventsPath}`,
  tools: {
    "slack-manifest": {
      description: "prints the Slack app manifest",
      async run(values, commands) {
        const { createManifest } = await import("./install/manifest.ts");
        return `${JSON.stringify(createManifest(commands, manifestOptions(values)), null, 2)}\n`;
      },
    },
  },
  async checks(values) {
    if (values.SLACK_BOT_TOKEN === undefined && !isForAnyWorkspace(values)) return [];
    const { createSlackChecks } = await import("./install/checks.ts");
    return createSlackChecks({
      botToken: values.SLACK_BOT_TOKEN,
      appToken: values.SLACK_APP_TOKEN,
      signingSecret: values.SLACK_SIGNING_SECRET,
      publicUrl: values.SLACK_PUBLIC_URL,
      ...(isForAnyWorkspace(values)
        ? { clientId: values.SLACK_CLIENT_ID, clientSecret: values.SLACK_CLIENT_SECRET }
        : {}),
      apiUrl: values.SLACK_API_URL,
    });
  },
  async load() {
    const { createSlackPlatform } = await import("./platform.ts");
    return {
      create(values, { commands, log, meter, records, claims, clock }) {
        const { SLACK_PUBLIC_URL: publicUrl, SLACK_CLIENT_ID: clientId = "" } = values;
        const app = { clientId, clientSecret: values.SLACK_CLIENT_SECRET ?? "", publicUrl };
        const platform = createSlackPlatform({
          botToken: values.SLACK_BOT_TOKEN,
          appToken: values.SLACK_APP_TOKEN,
          signingSecret: values.SLACK_SIGNING_SECRET,
          installations: isForAnyWorkspace(values) ? { app, records, claims } : undefined,
          kept: { records, claims },
          apiUrl: values.SLACK_API_URL,
          commandPrefix: values.SLACK_COMMAND_PREFIX,
          admitsStrangers: values.SLACK_EXTERNAL_PEOPLE === "answered",
          commands,
          clock,
          log,
          meter,
        });
        if (!isHttpMode(values)) return { platform };
        return {
          platform,
          handler: platform.handler,
          signedPaths: [eventsPath],
          ...(publicUrl === undefined ? {} : { allowedHosts: [new URL(publicUrl).host] }),
        };
      },
    };
  },
});

type Values = SettingValues<typeof settings>;

/** Returns one sentence for each thing that is wrong between the settings. */
function findProblems(values: Partial<Values>): string[] {
  const { SLACK_BOT_TOKEN, SLACK_APP_TOKEN, SLACK_SIGNING_SECRET, SLACK_CLIENT_ID, SLACK_CLIENT_SECRET } =
    values;
  const isInstalled = SLACK_CLIENT_ID !== undefined && SLACK_CLIENT_SECRET !== undefined;
  const problems: string[] = [];
  if (SLACK_BOT_TOKEN !== undefined && SLACK_APP_TOKEN === undefined && SLACK_SIGNING_SECRET === undefined)
    problems.push(
      "SLACK_APP_TOKEN is needed with SLACK_BOT_TOKEN: make an app-level token with connections:write, or set SLACK_SIGNING_SECRET for HTTP mode (docs/slack.md)",
    );
  if (SLACK_BOT_TOKEN === undefined && SLACK_APP_TOKEN !== undefined)
    problems.push(
      "SLACK_BOT_TOKEN is needed with SLACK_APP_TOKEN: copy it from OAuth & Permissions (docs/slack.md)",
    );
  if (!isInstalled && (SLACK_CLIENT_ID ?? SLACK_CLIENT_SECRET) !== undefined)
    problems.push(
      "SLACK_CLIENT_ID and SLACK_CLIENT_SECRET are needed together: copy both from Basic Information (docs/slack.md)",
    );
  if (isInstalled && SLACK_APP_TOKEN !== undefined)
    problems.push("SLACK_APP_TOKEN must not be set with SLACK_CLIENT_ID: any workspace needs HTTP mode");
  else if (isInstalled && SLACK_SIGNING_SECRET === undefined)
    problems.push(
      "SLACK_SIGNING_SECRET is needed with SLACK_CLIENT_ID: copy it from Basic Information (docs/slack.md)",
    );
  return problems;
}

/** Returns whether people of any workspace may install the app. */
function isForAnyWorkspace(values: Partial<Values>): boolean {
  const { SLACK_CLIENT_ID, SLACK_CLIENT_SECRET } = values;
  return isHttpMode(values) && SLACK_CLIENT_ID !== undefined && SLACK_CLIENT_SECRET !== undefined;
}

/** Returns whether Slack sends requests, rather than using a socket that Parley opens. */
function isHttpMode({ SLACK_APP_TOKEN, SLACK_SIGNING_SECRET }: Partial<Values>): boolean {
  return SLACK_APP_TOKEN === undefined && SLACK_SIGNING_SECRET !== undefined;
}

/**
 * Returns the options of the manifest.
 * @throws ParleyError `config` where HTTP mode has no address
 */
function manifestOptions(values: Values): Parameters<typeof createManifest>[1] {
  const { SLACK_COMMAND_PREFIX: commandPrefix, SLACK_APP_TOKEN, SLACK_PUBLIC_URL: publicUrl } = values;
  // The address is known before there is an app, and so before there is its signing secret.
  const socketMode = SLACK_APP_TOKEN !== undefined || (publicUrl === undefined && !isHttpMode(values));
  return { commandPrefix, socketMode, ...(publicUrl === undefined ? {} : { publicUrl }) };
}
