import type { App } from "@slack/bolt";
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { registerEvents, type EventOptions } from "../../../../src/platforms/slack/events.ts";
import { botScopes, createManifest } from "../../../../src/platforms/slack/manifest.ts";
import { allCommands } from "../../../support/commands.ts";

const folder = "src/platforms/slack";
const sources = readdirSync(folder)
  .filter((name) => name.endsWith(".ts"))
  .map((name) => readFileSync(`${folder}/${name}`, "utf8"));

/**
 * What a bot token needs for a method; one of them is enough. Empty: nothing, or a token of another kind.
 * @see https://docs.slack.dev/reference/methods
 */
const scopesOfMethod: Readonly<Record<string, readonly string[]>> = {
  "agents.sessions.setStatus": ["chat:write"],
  "agents.sessions.rename": ["chat:write"],
  "apps.connections.open": [],
  "assistant.threads.setStatus": ["chat:write", "assistant:write"],
  "assistant.threads.setSuggestedPrompts": ["assistant:write"],
  "auth.test": [],
  "bots.info": ["users:read"],
  "chat.appendStream": ["chat:write"],
  "chat.delete": ["chat:write"],
  "chat.postEphemeral": ["chat:write"],
  "chat.postMessage": ["chat:write"],
  "chat.startStream": ["chat:write"],
  "chat.stopStream": ["chat:write"],
  "chat.update": ["chat:write"],
  "conversations.history": ["channels:history", "groups:history", "im:history", "mpim:history"],
  "conversations.info": ["channels:read", "groups:read"],
  "conversations.open": ["im:write"],
  "conversations.replies": ["channels:history", "groups:history", "im:history", "mpim:history"],
  "files.completeUploadExternal": ["files:write"],
  "files.getUploadURLExternal": ["files:write"],
  "files.info": ["files:read"],
  "oauth.v2.access": [],
  "users.info": ["users:read"],
  "views.open": [],
  "views.publish": [],
  "views.update": [],
};

/** What an event needs. @see https://docs.slack.dev/reference/events */
const scopesOfEvent: Readonly<Record<string, readonly string[]>> = {
  agent_session_stopped: ["assistant:write"],
  app_home_opened: [],
  app_mention: ["app_mentions:read"],
  app_uninstalled: [],
  channel_deleted: ["channels:read"],
  group_deleted: ["groups:read"],
  member_joined_channel: ["channels:read"],
  "message.channels": ["channels:history"],
  "message.groups": ["groups:history"],
  "message.im": ["im:history"],
  "message.mpim": ["mpim:history"],
  tokens_revoked: [],
};

/** Methods that the sources name, in a call or as a constant. */
const methods = new Set(
  sources.flatMap((text) =>
    Array.from(
      text.matchAll(
        /"((?:agents|apps|assistant|auth|bots|chat|conversations|files|oauth|reactions|team|users|views)(?:\.\w+)+)"/g,
      ),
      ([, method = ""]) => method,
    ),
  ),
);

function handledEvents(): Set<string> {
  const names = new Set<string>();
  const app = { event: (name: string) => names.add(name) } as unknown as App;
  registerEvents(app, {} as unknown as EventOptions);
  return names;
}

function eventsOf(options: Parameters<typeof createManifest>[1]): string[] {
  const { settings } = createManifest(allCommands, options) as {
    settings: { event_subscriptions: { bot_events: string[] } };
  };
  return settings.event_subscriptions.bot_events;
}

const modes = {
  socket: { socketMode: true },
  http: { socketMode: false, publicUrl: "https://parley.example.com" },
} as const;

test("each method that is called is known, with a scope of the manifest", () => {
  expect([...methods].filter((method) => scopesOfMethod[method] === undefined)).toEqual([]);
  const granted = new Set<string>(botScopes);
  for (const method of methods) {
    const scopes = scopesOfMethod[method] ?? [];
    expect({ method, isCovered: scopes.length === 0 || scopes.some((scope) => granted.has(scope)) }).toEqual({
      method,
      isCovered: true,
    });
  }
});

test.each(["socket", "http"] as const)(
  "over %s each event that is handled is subscribed to, and none besides",
  (mode) => {
    const subscribed = new Set(eventsOf(modes[mode]).map((name) => name.replace(/^message\..*/, "message")));
    // Those that end an installation have no listener of Bolt's: they are handled before a workspace is looked for.
    const ends = ["app_uninstalled", "tokens_revoked"];
    expect([...subscribed].toSorted()).toEqual([...handledEvents(), ...ends].toSorted());
    for (const name of ends) expect(sources.some((text) => text.includes(`type === "${name}"`))).toBe(true);
  },
);

test("each event has its scopes, and each scope is needed", () => {
  const events = eventsOf(modes.http);
  expect(events.filter((name) => scopesOfEvent[name] === undefined)).toEqual([]);
  const needed = new Set([
    "commands",
    ...events.flatMap((name) => scopesOfEvent[name] ?? []),
    ...[...methods].flatMap((method) => scopesOfMethod[method] ?? []),
  ]);
  for (const scope of events.flatMap((name) => scopesOfEvent[name] ?? [])) expect(botScopes).toContain(scope);
  expect(botScopes.filter((scope) => !needed.has(scope))).toEqual([]);
});

test("both modes ask for the same scopes and have the same commands", () => {
  const parts = Object.values(modes).map((options) => {
    const { features, oauth_config } = createManifest(allCommands, options) as {
      features: { slash_commands: { command: string }[]; shortcuts: unknown };
      oauth_config: { scopes: unknown };
    };
    const commands = features.slash_commands.map(({ command }) => command);
    return { commands, shortcuts: features.shortcuts, scopes: oauth_config.scopes };
  });
  expect(parts[0]).toEqual(parts[1]);
});

test("over HTTP the manifest has the address that browsers come back to after an installation", () => {
  const manifest = createManifest(allCommands, modes.http) as {
    oauth_config: { redirect_urls: string[] };
    settings: { org_deploy_enabled: boolean };
  };
  expect(manifest.oauth_config.redirect_urls).toEqual(["https://parley.example.com/slack/oauth_redirect"]);
  expect(manifest.settings.org_deploy_enabled).toBe(true);
});
