import { createServer } from "node:net";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createSlackChecks } from "../../../../src/platforms/slack/checks.ts";
import { botScopes } from "../../../../src/platforms/slack/manifest.ts";
import { checkSocket } from "../../../../src/platforms/slack/socket-check.ts";
import { createSlackSimulator, type SlackSimulator } from "../../../simulators/slack/simulator.ts";
import { runDoctorChecks } from "../../../support/run-checks.ts";

let slack: SlackSimulator;

beforeEach(async () => {
  slack = await createSlackSimulator();
});
afterEach(() => slack.close());

/** Of HTTP mode. */
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
