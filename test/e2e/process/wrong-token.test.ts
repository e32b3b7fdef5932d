import { afterEach, expect, it } from "vitest";
import { createDiscordSimulator } from "../../simulators/discord/simulator.ts";
import { createSlackSimulator } from "../../simulators/slack/simulator.ts";
import { runParley, type RunningParley } from "./run-parley.ts";

let parley: RunningParley | undefined;

afterEach(async () => {
  await parley?.remove();
});

it("a refused Discord token fails the start with its variable's name, without its value", async () => {
  const discord = await createDiscordSimulator();
  const token = "MTIzNDU2Nzg5MDEyMzQ1Njc4.wrong.token-of-the-test";
  parley = await runParley({ settings: { DISCORD_TOKEN: token, DISCORD_API_URL: discord.apiUrl } });
  expect(await parley.ended).toBe(1);
  expect(parley.output()).toContain("DISCORD_TOKEN");
  expect(parley.output()).not.toContain(token);
  expect(parley.output()).not.toContain("    at ");
  await discord.close();
});

it("a refused Slack token fails the start with its variable's name, without its value", async () => {
  const slack = await createSlackSimulator();
  const token = "xoxb-wrong-token-of-the-test";
  parley = await runParley({
    settings: { SLACK_BOT_TOKEN: token, SLACK_APP_TOKEN: slack.appToken, SLACK_API_URL: slack.apiUrl },
  });
  expect(await parley.ended).toBe(1);
  expect(parley.output()).toContain("SLACK_BOT_TOKEN");
  expect(parley.output()).not.toContain(token);
  expect(parley.output()).not.toContain("    at ");
  await slack.close();
});

it("a setting that would keep secrets in the clear stops the start", async () => {
  parley = await runParley({
    settings: {
      SLACK_CLIENT_ID: "1.2",
      SLACK_CLIENT_SECRET: "secret",
      SLACK_SIGNING_SECRET: "0123456789abcdef0123456789abcdef",
      SLACK_PUBLIC_URL: "https://parley.example.com",
    },
  });
  expect(await parley.ended).toBe(1);
  expect(parley.output()).toContain("STORE_ENCRYPTION_KEYS is needed with SLACK_CLIENT_ID");
});
