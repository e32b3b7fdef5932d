import { afterEach, beforeEach, expect, test } from "vitest";
import { isParleyError } from "../../../../src/core/errors.ts";
import type { Platform } from "../../../../src/core/platform.ts";
import { createSlackPlatform } from "../../../../src/platforms/slack/platform.ts";
import { createSlackSimulator, type SlackSimulator } from "../../../simulators/slack/simulator.ts";
import { createSlackReceiver } from "../../../support/slack-receiver.ts";
import { createFlowingClock } from "../../../support/flowing-clock.ts";
import { silentLog } from "../../../support/silent-log.ts";
import { allCommands as commands } from "../../../support/commands.ts";

const clock = createFlowingClock((ms) => slack.clock.advance(ms));
let slack: SlackSimulator;
let platforms: Platform[];
const unhandled: unknown[] = [];
const onUnhandled = (error: unknown) => void unhandled.push(error);

beforeEach(async () => {
  slack = await createSlackSimulator({ botTime: clock });
  platforms = [];
  unhandled.length = 0;
  process.on("unhandledRejection", onUnhandled);
});
afterEach(async () => {
  for (const platform of platforms) await platform.stop();
  await slack.close();
  await new Promise((resolve) => setImmediate(resolve));
  process.off("unhandledRejection", onUnhandled);
  expect(unhandled).toEqual([]);
});

function make(options: { botToken?: string; appToken?: string; apiUrl?: string } = {}): Platform {
  const platform = createSlackPlatform({
    botToken: slack.botToken,
    appToken: slack.appToken,
    apiUrl: slack.apiUrl,
    commands,
    log: silentLog,
    clock,
    ...options,
  });
  platforms.push(platform);
  return platform;
}

const failure = (platform: Platform) =>
  platform.start(createSlackReceiver(), createSlackReceiver()).then(
    () => undefined,
    (error: unknown) => (isParleyError(error) ? error : undefined),
  );

test("a refused bot token is an error at the start that names the setting", async () => {
  const platform = make({ botToken: "xoxb-wrong" });
  const error = await failure(platform);
  expect(error?.code).toBe("platform-unauthorized");
  expect(error?.message).toContain("SLACK_BOT_TOKEN");
  expect(error?.message).not.toContain("xoxb-");
  expect(platform.health().state).toBe("failed");
});

test("a bot token of a whole organisation stops the start, which says what to do", async () => {
  slack.installForOrganisation();
  const error = await failure(make({}));
  expect(error?.code).toBe("config");
  expect(error?.message).toContain("SLACK_BOT_TOKEN is of a whole organisation");
  expect(error?.message).toContain("SLACK_CLIENT_ID");
});

test("so is a refused app token", async () => {
  const platform = make({ appToken: "xapp-wrong" });
  const error = await failure(platform);
  expect(error?.code).toBe("platform-unauthorized");
  expect(error?.message).toContain("SLACK_APP_TOKEN");
});

test("swapped tokens are recognized", async () => {
  const platform = make({ appToken: slack.botToken });
  const error = await failure(platform);
  expect(error?.detail["slackError"]).toBe("not_allowed_token_type");
  expect(error?.message).toContain("SLACK_APP_TOKEN");
});

test("a missing app token is an error at the start that names it", async () => {
  const platform = createSlackPlatform({
    botToken: slack.botToken,
    apiUrl: slack.apiUrl,
    commands,
    log: silentLog,
  });
  expect((await failure(platform))?.message).toContain("SLACK_APP_TOKEN");
});

test("an unreachable Slack can be retried with the same platform", async () => {
  slack.fail("auth.test", { status: 503 });
  const platform = make();
  expect((await failure(platform))?.code).toBe("platform-unreachable");
  expect(platform.health().state).toBe("connecting");
  await platform.start(createSlackReceiver(), createSlackReceiver());
  expect(platform.health().state).toBe("ready");
  expect(slack.connections).toBe(1);
});

test("an address where nothing listens is unreachable", async () => {
  const platform = make({ apiUrl: "http://127.0.0.1:9/api/" });
  expect((await failure(platform))?.code).toBe("platform-unreachable");
});

test("stop resolves when the socket is closed", async () => {
  const platform = make();
  await platform.start(createSlackReceiver(), createSlackReceiver());
  expect(slack.connections).toBe(1);
  await platform.stop();
  await slack.waitFor("no connection", () => slack.connections === 0, 500);
  expect(slack.badAcks).toEqual([]);
});

test("stop during the start leaves no connection", async () => {
  const platform = make();
  const started = failure(platform);
  await slack.waitFor("the first call", () => slack.calls.length > 0);
  await platform.stop();
  await started;
  await slack.waitFor("no connection", () => slack.connections === 0, 500);
});

test("missing scopes do not prevent the start", async () => {
  slack.revokeScope("assistant:write");
  const platform = make();
  await platform.start(createSlackReceiver(), createSlackReceiver());
  expect(platform.health().state).toBe("ready");
});

test("a token that is revoked while connected is a failure, until Slack accepts it again", async () => {
  const platform = make();
  await platform.start(createSlackReceiver(), createSlackReceiver());
  const { id } = slack.channel("general", [slack.person("Ann")]);
  slack.fail("conversations.info", { error: "token_revoked" });
  await platform.nameOf(`slack:channel:${id}`);
  expect(platform.health()).toEqual({
    state: "failed",
    detail: "Slack refuses SLACK_BOT_TOKEN (token_revoked)",
  });
  await platform.nameOf(`slack:channel:${id}`);
  expect(platform.health()).toEqual({ state: "ready" });
});

for (const event of [
  { type: "app_uninstalled" },
  { type: "tokens_revoked", tokens: { oauth: [], bot: ["U1"] } },
]) {
  test(`${event.type} is a failure at once, also while nothing is asked of Slack`, async () => {
    const platform = make();
    await platform.start(createSlackReceiver(), createSlackReceiver());
    slack.sendEvent(event);
    await slack.waitFor("the failure", () => platform.health().state === "failed");
    expect(platform.health().detail).toContain("SLACK_BOT_TOKEN");
    await slack.waitFor("its acknowledgement", () => slack.deliveries.at(-1)?.outcome === "acknowledged");
  });
}

test("stop closes the socket first: an event in flight is accepted, and comes again elsewhere; commands are answered before", async () => {
  const platform = make();
  const receiver = createSlackReceiver();
  await platform.start(receiver, receiver);
  const ada = slack.person("Ada");
  const { id } = slack.channel("general", [ada]);
  const { promise: isFree, resolve: free } = Promise.withResolvers<void>();
  const offered: string[] = [];
  const accepted: string[] = [];
  receiver.receive = async (event) => {
    if (event.kind === "aside") return "accepted";
    const { key, kind } = event;
    offered.push(kind);
    if (kind === "message") await isFree;
    accepted.push(key);
    return "accepted";
  };
  ada.sends({ channel: ada.directMessages, text: "one" });
  await slack.waitFor("the event", () => offered.includes("message"));
  const used = ada.usesCommand("/models", "", { channel: id });
  await slack.waitFor("the command", () => slack.deliveries.length === 2);
  expect((await used).kind).toBe("acknowledged");
  const stopped = platform.stop();
  await slack.waitFor("the end of the connection", () => slack.connections === 0, 1500);
  expect(accepted).toHaveLength(1);
  free();
  await stopped;
  expect(accepted).toHaveLength(2);
});

test("a method that this kind of token may not call says nothing of the token", async () => {
  const platform = make();
  await platform.start(createSlackReceiver(), createSlackReceiver());
  const { id } = slack.channel("general", [slack.person("Ann")]);
  slack.fail("conversations.info", { error: "not_allowed_token_type" });
  await platform.nameOf(`slack:channel:${id}`);
  expect(platform.health()).toEqual({ state: "ready" });
});

/** Starts the bot and lets ten minutes pass, after which it has two connections. */
async function startWithTwoConnections(receiver = createSlackReceiver()): Promise<Platform> {
  const platform = make();
  await platform.start(receiver, receiver);
  await clock.skip(10 * 60_000);
  await slack.waitFor("the second connection", () => slack.connections === 2);
  return platform;
}

test("commands and clicks never fail while Slack refreshes a connection", async () => {
  const platform = await startWithTwoConnections();
  const ada = slack.person("Ada");
  const general = slack.channel("general", [ada]);
  const use = () => ada.usesCommand("/models", "", { channel: general.id });
  const opened = () => slack.calls.filter(({ method }) => method === "apps.connections.open").length;
  for (const refresh of [1, 2]) {
    slack.recycleConnections();
    await slack.waitFor("the end of one", () => slack.connections === 1);
    const results = await Promise.all([use(), use()]);
    expect(platform.health().state).toBe("ready");
    slack.clock.advance(10_000);
    await slack.waitFor("the replacement", () => {
      void use().then((result) => results.push(result));
      return opened() === refresh + 2 && slack.connections === 2;
    });
    results.push(...(await Promise.all([use(), use()])));
    expect(results.filter(({ kind }) => kind !== "acknowledged")).toEqual([]);
  }
  expect(platform.health().state).toBe("ready");
  expect(slack.badAcks).toEqual([]);
});

test("the only connection is replaced at once, and not when Slack has ended TCP seconds later", async () => {
  const platform = make();
  const receiver = createSlackReceiver();
  await platform.start(receiver, receiver);
  const ada = slack.person("Ada");
  const opened = () => slack.calls.filter(({ method }) => method === "apps.connections.open").length;
  for (const opens of [2, 3]) {
    const startedAt = clock.now();
    slack.recycleConnections();
    await slack.waitFor("the replacement", () => opened() === opens && slack.connections === 1);
    expect(clock.now() - startedAt).toBeLessThan(5000);
    const { kind } = await ada.usesCommand("/models", "", { channel: slack.channel("general", [ada]).id });
    expect(kind).toBe("acknowledged");
  }
  expect(platform.health().state).toBe("ready");
});

test("a message comes again where its connection is refreshed before it is acknowledged", async () => {
  const receiver = createSlackReceiver();
  await startWithTwoConnections(receiver);
  const { promise: isFree, resolve: free } = Promise.withResolvers<void>();
  const keys: string[] = [];
  receiver.receive = async (event) => {
    if (event.kind !== "aside") keys.push(event.key);
    if (keys.length <= 2) await isFree;
    return "accepted";
  };
  for (const person of [slack.person("Ada"), slack.person("Ben")])
    person.sends({ channel: person.directMessages, text: "one" });
  await slack.waitFor("both, over a connection each", () => keys.length === 2);
  slack.recycleConnections();
  await slack.waitFor("the end of one", () => slack.connections === 1);
  free();
  const acknowledged = () => slack.deliveries.filter(({ outcome }) => outcome === "acknowledged").length;
  await slack.waitFor("one acknowledgement", () => acknowledged() === 1);
  slack.clock.advance(10_000);
  await slack.waitFor("the acknowledgement of the other", () => {
    slack.clock.advance(100);
    return acknowledged() === 2;
  });
  expect(keys).toHaveLength(3);
  expect(new Set(keys).size).toBe(2);
  expect(slack.lost).toEqual([]);
});

test("Slack takes ten connections; an eleventh is open as soon as one of them has ended", async () => {
  const others = Array.from({ length: 10 }, () => make());
  await Promise.all(others.map((platform) => platform.start(createSlackReceiver(), createSlackReceiver())));
  expect(slack.connections).toBe(10);
  const platform = make();
  expect((await failure(platform))?.code).toBe("platform-unreachable");
  await others[0]?.stop();
  await platform.start(createSlackReceiver(), createSlackReceiver());
  expect(platform.health().state).toBe("ready");
  expect(slack.connections).toBe(10);
});

test("an open socket that is lost is replaced", async () => {
  const platform = make();
  await platform.start(createSlackReceiver(), createSlackReceiver());
  slack.cutConnections();
  const opened = () => slack.calls.filter(({ method }) => method === "apps.connections.open").length;
  await slack.waitFor("the replacement", () => opened() === 2 && slack.connections === 1);
  await slack.waitFor("the greeting", () => platform.health().state === "ready");
});

test("a socket over which nothing comes any more is replaced within seconds", async () => {
  const platform = make();
  await platform.start(createSlackReceiver(), createSlackReceiver());
  const ada = slack.person("Ada");
  const general = slack.channel("general", [ada]);
  slack.silenceConnections();
  const opened = () => slack.calls.filter(({ method }) => method === "apps.connections.open").length;
  await slack.waitFor("the replacement", () => opened() === 2, 15_000);
  await slack.waitFor("the greeting", () => platform.health().state === "ready");
  slack.clock.advance(30_000);
  await slack.waitFor("the end of the silent one", () => slack.connections === 1);
  expect((await ada.usesCommand("/models", "", { channel: general.id })).kind).toBe("acknowledged");
});
