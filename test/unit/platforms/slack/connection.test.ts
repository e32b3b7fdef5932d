import { afterEach, beforeEach, expect, test } from "vitest";
import { isParleyError } from "../../../../src/core/errors.ts";
import type { Platform } from "../../../../src/core/platform.ts";
import { createSlackPlatform } from "../../../../src/platforms/slack/platform.ts";
import { createSlackSimulator, type SlackSimulator } from "../../../simulators/slack/simulator.ts";
import { createSlackReceiver } from "../../../support/slack-receiver.ts";
import { silentLog } from "../../../support/silent-log.ts";
import { allCommands as commands } from "../../../support/commands.ts";

let slack: SlackSimulator;
let platforms: Platform[];
const unhandled: unknown[] = [];
const onUnhandled = (error: unknown) => void unhandled.push(error);

beforeEach(async () => {
  slack = await createSlackSimulator();
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
