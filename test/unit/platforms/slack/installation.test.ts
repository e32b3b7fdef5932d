import type { Installation } from "@slack/bolt";
import { WebClient } from "@slack/web-api";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readConfig } from "../../../../src/config.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createBolt } from "../../../../src/platforms/slack/transport/durable-app.ts";
import { toParleyError } from "../../../../src/platforms/slack/errors.ts";
import { createInstaller, createInstallStates } from "../../../../src/platforms/slack/install/installer.ts";
import {
  createInstallations,
  teamsOfPayload,
} from "../../../../src/platforms/slack/install/installations.ts";
import type { TeamToken } from "../../../../src/platforms/slack/transport/call.ts";
import { createInstalledToken } from "../../../../src/platforms/slack/install/installed-teams.ts";
import { slack } from "../../../../src/platforms/slack/slack-module.ts";
import { createUninstaller } from "../../../../src/platforms/slack/install/uninstall.ts";
import { systemClock } from "../../../../src/support/clock.ts";
import { createManualClock } from "../../../support/manual-clock.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";
import { silentLog } from "../../../support/silent-log.ts";
import { createSlackReceiver } from "../../../support/slack-receiver.ts";

describe("settings", () => {
  const bot = { SLACK_BOT_TOKEN: "xoxb-1" };
  const http = { SLACK_SIGNING_SECRET: "0123456789abcdef0123456789abcdef" };
  const app = { SLACK_CLIENT_ID: "1.2", SLACK_CLIENT_SECRET: "secret" };
  const keys = { STORE_ENCRYPTION_KEYS: Buffer.alloc(32, 1).toString("base64") };

  function read(environment: Record<string, string>) {
    const { config, problems, startProblems } = readConfig(environment);
    const platform = config.platforms.find(({ module }) => module === slack);
    const isOn = platform?.isOn === true;
    const line = slack.startLine(platform?.values ?? {}, { isOn, url: "http://127.0.0.1:3000" });
    return { problems: [...problems, ...startProblems], isOn, line };
  }

  test.each([
    ["nothing", {}, /^off/],
    ["both tokens", { ...bot, SLACK_APP_TOKEN: "xapp-1" }, /Socket Mode/],
    ["both tokens and a secret", { ...bot, ...http, SLACK_APP_TOKEN: "xapp-1" }, /Socket Mode/],
    ["a bot token and a secret", { ...bot, ...http }, /HTTP mode, \S+\/slack\/events$/],
    ["an app for any workspace", { ...http, ...app, ...keys }, /any workspace: \S+\/slack\/install/],
    ["the same with a workspace of its own", { ...bot, ...http, ...app, ...keys }, /any workspace/],
  ])("%s", (_, environment: Record<string, string>, line) => {
    const found = read(environment);
    expect(found.problems).toEqual([]);
    expect(found.line).toMatch(line);
  });

  test.each([
    ["a bot token alone", bot, /^SLACK_APP_TOKEN is needed.*SLACK_SIGNING_SECRET/],
    ["an app token alone", { SLACK_APP_TOKEN: "xapp-1" }, /^SLACK_BOT_TOKEN is needed/],
    ["a client id alone", { ...http, SLACK_CLIENT_ID: "1.2" }, /are needed together/],
    ["any workspace without a signing secret", { ...app, ...keys }, /^SLACK_SIGNING_SECRET is needed/],
    [
      "any workspace over a socket",
      { ...bot, ...app, ...keys, SLACK_APP_TOKEN: "xapp-1" },
      /^SLACK_APP_TOKEN must not be set/,
    ],
    ["any workspace without encryption", { ...http, ...app }, /^STORE_ENCRYPTION_KEYS is needed/],
  ])("%s is a problem", (_, environment: Record<string, string>, words) => {
    expect(read(environment).problems.join("\n")).toMatch(words);
  });
});

describe("the end of an installation", () => {
  test("what is set for channels and people goes too, though their conversations go with the workspace", async () => {
    const receiver = createSlackReceiver();
    receiver.stored.add("slack:T1:C1:1700000000.000001").add("slack:T2:C1:1700000000.000002");
    const changed = receiver.changed.bind(receiver);
    receiver.changed = async (what) => {
      if (what.kind === "delete-place" && what.place === "slack:team:T1")
        receiver.stored.delete("slack:T1:C1:1700000000.000001");
      return await changed(what);
    };
    const { records } = createSharedMemory();
    const uninstaller = createUninstaller({
      installations: createInstallations(records),
      receiver,
      history: {
        conversations: (prefix) => receiver.conversations(prefix),
        history: () => Promise.resolve([]),
      },
      forget: () => {},
      log: silentLog,
    });
    await uninstaller.ending({ team_id: "T1", event_time: 1, event: { type: "app_uninstalled" } })?.();
    expect(receiver.deletions).toEqual(
      expect.arrayContaining(["slack:team:T1", "slack:channel:T1:C1", "people slack:T1:"]),
    );
    expect([...receiver.stored]).toEqual(["slack:T2:C1:1700000000.000002"]);
  });
});

describe("states of an installation", () => {
  const asked = { scopes: ["chat:write"], redirectUri: "https://parley.example.com/slack/oauth_redirect" };
  const open = (secret: string, shared: Parameters<typeof createInstallStates>[1]) => {
    const states = createInstallStates(secret, shared);
    return {
      create: () => states.generateStateParam(asked, new Date()),
      /** Returns whether it is accepted, with what was asked for. */
      use: (state: string) =>
        states.verifyStateParam(new Date(), state).then(
          (options) => {
            expect(options).toEqual(asked);
            return true;
          },
          (error: unknown) => {
            expect(error).toMatchObject({ code: "slack_oauth_invalid_state" });
            return false;
          },
        ),
    };
  };

  test("a state is accepted once, by whichever instance it comes back to", async () => {
    const shared = createSharedMemory();
    const [one, other] = [open("secret", shared), open("secret", shared)];
    const [first, second] = [await one.create(), await one.create()];
    expect(await other.use(first)).toBe(true);
    expect(await one.use(first)).toBe(false);
    expect(new Set(await Promise.all([one.use(second), other.use(second)]))).toEqual(new Set([true, false]));
  });

  test("on a store for one process two uses at once are one", async () => {
    const { records } = createSharedMemory();
    const states = open("secret", {
      records,
      claims: { isShared: false, claim: () => Promise.resolve(true) },
    });
    const state = await states.create();
    expect(new Set(await Promise.all([states.use(state), states.use(state)]))).toEqual(
      new Set([true, false]),
    );
    expect(await states.use(state)).toBe(false);
  });

  test("states of another app, changed ones and other texts are refused", async () => {
    const shared = createSharedMemory();
    const states = open("secret", shared);
    expect(await open("other", shared).use(await states.create())).toBe(false);
    const state = await states.create();
    expect(await states.use(state.replace(/^./, (char) => (char === "A" ? "B" : "A")))).toBe(false);
    const [head = "", , signature = ""] = state.split(".");
    const forged = Buffer.from(JSON.stringify({ installOptions: asked, now: new Date() })).toString(
      "base64url",
    );
    const unsigned = `${Buffer.from('{"alg":"none","typ":"JWT"}').toString("base64url")}.${forged}.`;
    for (const text of [
      "",
      "a.b.c",
      "..",
      state.slice(1),
      `${state}A`,
      `${head}.${forged}.${signature}`,
      unsigned,
    ])
      expect(await states.use(text)).toBe(false);
    expect(await states.use(state)).toBe(true);
  });

  test("a state expires after ten minutes", async () => {
    const clock = createManualClock();
    const states = open("secret", { ...createSharedMemory(), clock });
    const [first, second] = [await states.create(), await states.create()];
    await clock.advance(10 * 60_000);
    expect(await states.use(first)).toBe(true);
    await clock.advance(2000);
    expect(await states.use(second)).toBe(false);
  });
});

describe("the token of an installation", () => {
  const hourMs = 3_600_000;

  interface Slack {
    /** The store takes no writes after so many exchanges. */
    readonly fails?: (exchanges: number) => boolean;
    readonly exchangeMs?: number;
  }

  /** Opens two instances on one store. Slack exchanges a refresh token once. */
  async function open(leftMs: number | undefined, { fails = () => false, exchangeMs = 20 }: Slack = {}) {
    const { records, claims } = createSharedMemory();
    let exchanges = 0;
    let isFailing = false;
    const installations = createInstallations({
      ...records,
      update: (key, change) =>
        isFailing && fails(exchanges)
          ? Promise.reject(new ParleyError("store-unavailable", "the test's store is full"))
          : records.update(key, change),
    });
    const rotation =
      leftMs === undefined
        ? {}
        : { refreshToken: "refresh old", expiresAt: Math.floor((Date.now() + leftMs) / 1000) };
    await installations.store.storeInstallation({
      team: { id: "T1", name: "One" },
      enterprise: undefined,
      isEnterpriseInstall: false,
      user: { id: "U1", token: "xoxp-of-a-person", scopes: undefined },
      bot: { id: "B1", userId: "UB", scopes: ["chat:write"], token: "xoxe.xoxb-old", ...rotation },
      authVersion: "v2",
    });
    isFailing = true;
    let refreshToken = "refresh old";
    const exchange = async (_: unknown, { body = "" }: { body?: unknown } = {}) => {
      const isGood = new URLSearchParams(String(body)).get("refresh_token") === refreshToken;
      if (!isGood) return new Response(JSON.stringify({ ok: false, error: "invalid_refresh_token" }));
      exchanges += 1;
      refreshToken = "refresh new";
      await new Promise((resolve) => setTimeout(resolve, exchangeMs));
      const tokens = { access_token: "xoxe.xoxb-new", refresh_token: refreshToken, expires_in: 43_200 };
      return new Response(JSON.stringify({ ok: true, token_type: "bot", ...tokens }));
    };
    const bolt = createBolt("https://slack.example.com/api/", silentLog);
    const instance = async (): Promise<TeamToken> => {
      const { tokenOf } = createInstaller({
        clientId: "1.2",
        clientSecret: "secret",
        bolt: { ...bolt, clientOptions: () => ({ ...bolt.clientOptions(), fetch: exchange }) },
        apiUrl: "https://slack.example.com/api/",
        installations,
        records,
        claims,
        clock: systemClock,
        onInstalled: () => {},
        log: silentLog,
      });
      const found = (await installations.find("T1"))!;
      return createInstalledToken({ found, tokenOf, log: silentLog });
    };
    return {
      installations,
      exchanges: () => exchanges,
      instances: [await instance(), await instance()] as const,
    };
  }

  test("a token without an expiry is used as it is, and that of the person is not kept", async () => {
    const { installations, exchanges, instances } = await open(undefined);
    expect(await instances[0].current()).toBe("xoxe.xoxb-old");
    expect(exchanges()).toBe(0);
    expect(JSON.stringify(await installations.read("T1"))).not.toContain("xoxp");
  });

  test("of two instances one exchanges a token that expires soon; the other uses the old one meanwhile", async () => {
    const { exchanges, instances } = await open(hourMs);
    const tokens = await Promise.all([...instances, ...instances].map((one) => one.current()));
    expect(exchanges()).toBe(1);
    expect(new Set(tokens)).toEqual(new Set(["xoxe.xoxb-new", "xoxe.xoxb-old"]));
  });

  test("where the token has expired, the other instance waits for the new one", async () => {
    const { exchanges, instances } = await open(-2 * hourMs);
    const tokens = await Promise.all(instances.map((one) => one.current()));
    expect(exchanges()).toBe(1);
    expect(tokens).toEqual(["xoxe.xoxb-new", "xoxe.xoxb-new"]);
  });

  test("without an installation there is no token", async () => {
    const { installations, instances } = await open(hourMs);
    await installations.delete("T1");
    await expect(instances[0].current()).rejects.toMatchObject({ code: "platform-unauthorized" });
  });

  test("a store that fails for a moment after the exchange has the new tokens at last", async () => {
    let failures = 1;
    const { instances, installations } = await open(hourMs, {
      fails: (exchanges) => exchanges > 0 && failures-- > 0,
    });
    expect(await instances[0].current()).toBe("xoxe.xoxb-new");
    expect(await installations.read("T1")).toMatchObject({
      installation: { bot: { token: "xoxe.xoxb-new", refreshToken: "refresh new" } },
    });
  });

  test("with a store that takes no writes nothing is exchanged, and the old token stays in use", async () => {
    const { instances, installations, exchanges } = await open(hourMs, { fails: () => true });
    expect(await instances[0].current()).toBe("xoxe.xoxb-old");
    expect(exchanges()).toBe(0);
    expect(await installations.read("T1")).toMatchObject({
      installation: { bot: { refreshToken: "refresh old" } },
    });
  });
});

describe("an organisation's installation", () => {
  test("whose token is rotated while a new workspace is noted keeps the new token", async () => {
    const { records } = createSharedMemory();
    const toInstallation = (token: string): Installation => ({
      team: undefined,
      enterprise: { id: "E1" },
      isEnterpriseInstall: true,
      user: { id: "U1", token: undefined, scopes: undefined },
      bot: { id: "B1", userId: "UB", scopes: [], token },
    });
    const other = createInstallations(records);
    await other.store.storeInstallation(toInstallation("old"));
    const installations = createInstallations({
      ...records,
      async set(key, value) {
        if (key.includes("T1")) await other.store.storeInstallation(toInstallation("new"));
        await records.set(key, value);
      },
    });
    const found = await installations.find("T1", "E1");
    expect(found).toMatchObject({ teams: ["T1"], installation: { bot: { token: "new" } } });
    expect(await other.read("E1")).toEqual(found);
  });
});

describe("workspaces of a payload", () => {
  const ids = (body: Record<string, unknown>) => teamsOfPayload(body).map(({ teamId }) => teamId);

  test("an event is that of its authorization, whoever wrote it", () => {
    const body = {
      type: "event_callback",
      team_id: "T2",
      authorizations: [{ team_id: "T1", enterprise_id: "E1", is_enterprise_install: true }],
    };
    expect(teamsOfPayload(body)).toEqual([
      { teamId: "T1", enterpriseId: "E1" },
      { teamId: "T2", enterpriseId: "E1" },
    ]);
  });

  test("a submitted form is that of the workspace where the app is installed, before the person's", () => {
    expect(
      ids({
        type: "view_submission",
        view: { app_installed_team_id: "T1" },
        team: { id: "T2" },
        user: { team_id: "T3" },
      }),
    ).toEqual(["T1", "T2", "T3"]);
  });

  test("with an installation of an organisation a button names no workspace but the person's", () => {
    expect(
      teamsOfPayload({
        type: "block_actions",
        team: null,
        enterprise: { id: "E1" },
        user: { team_id: "T1" },
      }),
    ).toEqual([{ teamId: "T1", enterpriseId: "E1" }]);
  });

  test("other payloads name none", () => {
    for (const body of [{}, { authorizations: [null] }, { team: "T1", user: 3, view: [] }])
      expect(ids(body)).toEqual([]);
  });
});

describe("requests of the client", () => {
  let requests = 0;
  let connections = 0;
  let answer: (response: ServerResponse) => void;
  const server = createServer((request, response) => {
    requests += 1;
    request.resume().once("end", () => answer(response));
  }).on("connection", () => (connections += 1));

  let url = "";
  beforeEach(async () => {
    [requests, connections] = [0, 0];
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/`;
  });
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });

  const failure = async (at = url, timeout = 5000) => {
    const client = new WebClient("xoxb-1", { ...createBolt(at, silentLog).clientOptions(), timeout });
    const error: unknown = await client.apiCall("auth.test").catch((reason: unknown) => reason);
    return toParleyError(error, "auth.test");
  };

  test("a refusal for a rate limit says how long, and does not keep its connection", async () => {
    answer = (response) =>
      response.writeHead(429, { "retry-after": "7" }).end('{"ok":false,"error":"ratelimited"}');
    for (let n = 0; n < 10; n += 1) expect(await failure()).toMatchObject({ retryAfterMs: 7000 });
    expect(requests).toBe(10);
    // A second one may be opened before the first is known to be free.
    expect(connections).toBeLessThan(3);
  });

  test.each([
    [503, "HTTP status 503"],
    [302, "no response"],
  ])("an answer with status %i is a failure, and no other request", async (status, words) => {
    answer = (response) => response.writeHead(status, { location: `${url}elsewhere` }).end("not JSON");
    expect((await failure()).message).toBe(`Slack auth.test: ${words}`);
    expect(requests).toBe(1);
  });

  test.each([
    ["before it begins", () => undefined],
    ["in its middle", (response: ServerResponse) => void response.writeHead(200).write('{"ok":')],
  ])("an answer that stops %s ends with the client's timeout", async (_, stops) => {
    answer = stops;
    expect(await failure(url, 100)).toMatchObject({ code: "platform-unreachable" });
  });

  test("a server that is not there is no answer", async () => {
    expect(await failure("http://127.0.0.1:1/api/")).toMatchObject({
      code: "platform-unreachable",
      message: "Slack auth.test: no response",
    });
  });
});
