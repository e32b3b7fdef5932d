import { expect, test } from "vitest";
import { readConfig } from "../../../../src/config.ts";
import { slack } from "../../../../src/platforms/slack/slack-module.ts";

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
