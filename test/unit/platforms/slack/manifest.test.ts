import type { App } from "@slack/bolt";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createCommandSet, defineCommand } from "../../../../src/core/command.ts";
import { createSlackChecks, checkSocket } from "../../../../src/platforms/slack/install/checks.ts";
import { registerEvents } from "../../../../src/platforms/slack/listeners.ts";
import { botScopes, createManifest } from "../../../../src/platforms/slack/install/manifest.ts";
import { createSlackSimulator, type SlackSimulator } from "../../../simulators/slack/simulator.ts";
import { allCommands, allCommands as commands } from "../../../support/commands.ts";
import { runDoctorChecks } from "../../../support/run-checks.ts";
import { doNothing } from "../../../support/empty-result.ts";

describe("the manifest", () => {
  interface Manifest {
    features: { slash_commands: Record<string, unknown>[]; shortcuts: Record<string, string>[] };
    settings: Record<string, Record<string, unknown>>;
  }
  const manifest = (options: Parameters<typeof createManifest>[1]) =>
    createManifest(commands, options) as unknown as Manifest;

  test("declares every command", () => {
    const { features } = manifest({ socketMode: true });
    expect(features.slash_commands.map(({ command }) => command)).toEqual(
      [...commands.keys()].map((name) => `/${name}`),
    );
    expect(features.slash_commands.find(({ command }) => command === "/imagine")).toEqual({
      command: "/imagine",
      description: commands.get("imagine")?.description,
      usage_hint: "<prompt> [image:…] [model:…] [size:…] [count:1-4]",
      should_escape: true,
    });
    const labels = [...commands.values()].flatMap(({ messageCommand }) => messageCommand?.label ?? []);
    expect(labels).toContain("Ask about this");
    expect(features.shortcuts.map(({ name, type }) => [name, type])).toEqual(
      labels.map((label) => [label, "message"]),
    );
  });

  test("puts the prefix before every command", () => {
    const { features } = manifest({ socketMode: true, commandPrefix: "parley-" });
    expect(features.slash_commands.map(({ command }) => command)).toContain("/parley-ask");
  });

  test("has the request URL everywhere without Socket Mode", () => {
    const url = "https://parley.example.com/slack/events";
    const { features, settings } = manifest({ socketMode: false, publicUrl: "https://parley.example.com/" });
    expect(features.slash_commands.every((command) => command["url"] === url)).toBe(true);
    expect(settings["event_subscriptions"]?.["request_url"]).toBe(url);
    expect(settings["interactivity"]?.["request_url"]).toBe(url);
    expect(() => manifest({ socketMode: false })).toThrow(/request URL/);
  });

  test("refuses names that Slack reserves, unless there is a prefix", () => {
    const topic = defineCommand({
      name: "topic",
      description: "Says what there is",
      options: {},
      visibility: "private",
      run: doNothing,
    });
    const set = createCommandSet([topic]);
    expect(() => createManifest(set, { socketMode: true })).toThrow(/SLACK_COMMAND_PREFIX/);
    expect(() => createManifest(set, { socketMode: true, commandPrefix: "parley-" })).not.toThrow();
  });

  test("refuses names that Slack would refuse", () => {
    const long = defineCommand({
      name: "a".repeat(30),
      description: "Too long with a prefix",
      options: {},
      visibility: "public",
      run: doNothing,
    });
    const set = createCommandSet([long]);
    expect(() => createManifest(set, { socketMode: true })).not.toThrow();
    expect(() => createManifest(set, { socketMode: true, commandPrefix: "xy-" })).toThrow(/at most 32/);
  });
});

describe("what the manifest declares", () => {
  const folder = "src/platforms/slack";
  const sources = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(`${folder}/${name}`, "utf8"));

  /**
   * The scopes that a bot token needs for a method, of which one is enough. An empty list means that it needs
   * none, or a token of another kind.
   * @see https://docs.slack.dev/reference/methods
   */
  const scopesOfMethod: Readonly<Record<string, readonly string[]>> = {
    "agents.sessions.setStatus": ["chat:write"],
    "apps.connections.open": [],
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
    "conversations.replies": ["channels:history", "groups:history", "im:history", "mpim:history"],
    "files.completeUploadExternal": ["files:write"],
    "files.getUploadURLExternal": ["files:write"],
    "files.delete": ["files:write"],
    "files.info": ["files:read"],
    "oauth.v2.access": [],
    "users.conversations": ["channels:read", "groups:read"],
    "users.info": ["users:read"],
    "views.open": [],
    "views.publish": [],
    "views.update": [],
  };

  /** The scopes that an event needs. @see https://docs.slack.dev/reference/events */
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

  /** The methods that the sources name, in a call or as a constant. */
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
    registerEvents(app, {} as unknown as Parameters<typeof registerEvents>[1]);
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
      expect({
        method,
        isCovered: scopes.length === 0 || scopes.some((scope) => granted.has(scope)),
      }).toEqual({
        method,
        isCovered: true,
      });
    }
  });

  test.each(["socket", "http"] as const)(
    "over %s each event that is handled is subscribed to, and none besides",
    (mode) => {
      const subscribed = new Set(
        eventsOf(modes[mode]).map((name) => name.replace(/^message\..*/, "message")),
      );
      // Events that end an installation need no Bolt listener: they are handled before a workspace is found.
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
    for (const scope of events.flatMap((name) => scopesOfEvent[name] ?? []))
      expect(botScopes).toContain(scope);
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
});

describe("checks", () => {
  let slack: SlackSimulator;

  beforeEach(async () => {
    slack = await createSlackSimulator();
  });
  afterEach(() => slack.close());

  /** Checks HTTP mode. */
  async function checkHttp(options: { readonly signingSecret?: string; readonly publicUrl?: string } = {}) {
    const { botToken, apiUrl, signingSecret } = slack;
    const checks = createSlackChecks({ botToken, appToken: undefined, apiUrl, signingSecret, ...options });
    return (await runDoctorChecks(checks, { isLive: false })).text;
  }

  async function check(
    tokens: { readonly botToken?: string; readonly appToken?: string; readonly apiUrl?: string } = {},
    isLive = false,
  ): Promise<string> {
    const { botToken, appToken, apiUrl } = slack;
    const checks = createSlackChecks({ botToken, appToken, apiUrl, ...tokens });
    return (await runDoctorChecks(checks, { isLive })).text;
  }

  describe("Slack's part of the doctor", () => {
    test("with everything right, without taking part in the bot's work", async () => {
      expect(await check()).toBe(`Checks
  ✓ Bot token  accepted: parley in Simulated
  ✓ Scopes     all ${botScopes.length} of the manifest
  ✓ App token  accepted
  ✓ Socket     127.0.0.1 can be reached

All right.
`);
      expect(slack.connections).toBe(0);
      expect(new Set(slack.calls.map(({ method }) => method))).toEqual(
        new Set(["auth.test", "bots.info", "apps.connections.open"]),
      );
    });

    test("--live opens the socket and closes it", async () => {
      expect(await check({}, true)).toContain("✓ Socket     opened at 127.0.0.1");
      await slack.waitFor("the socket's end", () => slack.connections === 0);
    });

    test("a bot token that was revoked", async () => {
      const { botToken } = slack;
      slack.revokeToken();
      const text = await check({ botToken });
      expect(text).toContain(`  ✗ Bot token  Slack refused auth.test: invalid_auth
               → copy the Bot User OAuth Token again: OAuth & Permissions at https://api.slack.com/apps; after a reinstall it may be another
`);
      expect(text).toContain("✓ App token  accepted");
      expect(text).not.toContain(botToken);
    });

    test("a bot token of a whole organisation", async () => {
      slack.installForOrganisation();
      const text = await check();
      expect(text).toContain("✗ Bot token  SLACK_BOT_TOKEN is of a whole organisation");
      expect(text).toContain("→ install the app in one workspace");
    });

    test("scopes of an older manifest", async () => {
      slack.revokeScope("files:read");
      slack.revokeScope("channels:read");
      expect(await check()).toContain(`  ✗ Scopes     the app lacks channels:read, files:read
               → paste the manifest again (npm run slack:manifest) at https://api.slack.com/apps under App Manifest, then reinstall the app
`);
    });

    test("a scope that Parley works without is a warning", async () => {
      slack.revokeScope("assistant:write");
      expect(await check()).toContain("! Scopes     the app lacks assistant:write: no status");
    });

    test("tokens of two apps", async () => {
      slack.mixApps();
      expect(await check()).toMatch(
        /✗ App {8}the bot token is of the app A\w+, the app-level token of A\w+: events/,
      );
    });

    test("the two tokens swapped", async () => {
      const text = await check({ appToken: slack.botToken });
      expect(text).toContain("✗ App token  Slack refused apps.connections.open: not_allowed_token_type");
      expect(text).toContain(
        "→ SLACK_APP_TOKEN takes the app-level token (xapp-…), SLACK_BOT_TOKEN the bot token",
      );
    });

    test("an app-level token without connections:write, and Socket Mode turned off", async () => {
      slack.fail("apps.connections.open", { error: "missing_scope" });
      expect(await check()).toContain("→ make an app-level token with connections:write: Basic Information");
      slack.fail("apps.connections.open", { error: "forbidden_socket_mode" });
      expect(await check()).toContain("→ turn on Socket Mode");
    });

    test("Slack out of reach or failing", async () => {
      slack.fail("auth.test", { status: 503 });
      const text = await check();
      expect(text).toContain("✗ Bot token  Slack auth.test: HTTP status 503");
      const away = await check({ apiUrl: "http://127.0.0.1:9/api/" });
      expect(away.match(/→ look at the network, a proxy and SLACK_API_URL/g)).toHaveLength(2);
    });

    test("a firewall in front of the socket", async () => {
      const server = createServer().listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port } = server.address() as { port: number };
      server.close();
      await once(server, "close");
      const context = { signal: new AbortController().signal, isLive: false, noteDate() {} };
      expect(await checkSocket(`ws://127.0.0.1:${port}/link`, context)).toMatchObject({
        level: "wrong",
        text: "no connection to 127.0.0.1 (ECONNREFUSED)",
        remedy: expect.stringContaining(`connect to 127.0.0.1:${port}`),
      });
      expect(await checkSocket(`ws://127.0.0.1:${port}/link`, { ...context, isLive: true })).toMatchObject({
        level: "wrong",
      });
    });
  });

  describe("in HTTP mode", () => {
    test("the secret's form and the public address are shown", async () => {
      const text = await checkHttp({ publicUrl: "https://parley.example.com/" });
      expect(text).toContain("✓ Signing    the secret has the form of Slack's");
      expect(text).toContain("✓ Requests   expected at https://parley.example.com/slack/events");
      expect(text).not.toContain(slack.signingSecret);
    });

    test("a client secret with another form, and a missing address, are warned of", async () => {
      const text = await checkHttp({ signingSecret: "not-a-signing-secret" });
      expect(text).toContain("! Signing");
      expect(text).toContain("! Requests   SLACK_PUBLIC_URL is not set");
      expect(text).not.toContain("not-a-signing-secret");
    });

    test("an address without https is wrong", async () => {
      expect(await checkHttp({ publicUrl: "http://parley.example.com" })).toContain("✗ Requests");
    });

    test("of an app for any workspace Slack is asked whether it knows it", async () => {
      const { apiUrl, oauth } = slack;
      const text = async (clientSecret: string): Promise<string> => {
        const checks = createSlackChecks({
          botToken: undefined,
          appToken: undefined,
          apiUrl,
          clientId: oauth.clientId,
          clientSecret,
        });
        return (await runDoctorChecks(checks, { isLive: false })).text;
      };
      expect(await text(oauth.clientSecret)).toContain("Slack knows the app and its secret");
      const wrong = await text("not-the-secret");
      expect(wrong).toContain("bad_client_secret");
      expect(wrong).not.toContain("not-the-secret");
    });
  });
});
