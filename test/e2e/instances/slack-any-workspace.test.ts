import { randomBytes } from "node:crypto";
import { afterEach, expect, test } from "vitest";
import { createManifest } from "../../../src/platforms/slack/manifest.ts";
import { startScriptedGateway, type ScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { createSlackSimulator, type SlackSimulator } from "../../simulators/slack/simulator.ts";
import { allCommands } from "../../support/commands.ts";
import { startRedis, type RedisServer } from "../../support/redis-server.ts";
import { runParley, type RunningParley } from "../process/run-parley.ts";
import { toStream } from "../slack/slack-story.ts";

let slack: SlackSimulator;
let gateway: ScriptedGateway;
let redis: RedisServer;
const running: RunningParley[] = [];

afterEach(async () => {
  for (const parley of running.splice(0)) await parley.remove();
  await slack.close();
  await gateway.close();
  await redis.remove();
});

const key = randomBytes(32).toString("base64");

/** Resolves to where Slack reaches the instance. */
async function start(): Promise<string> {
  const parley = await runParley({
    settings: {
      STORE_URL: redis.url,
      STORE_ENCRYPTION_KEYS: key,
      SLACK_SIGNING_SECRET: slack.signingSecret,
      SLACK_CLIENT_ID: slack.oauth.clientId,
      SLACK_CLIENT_SECRET: slack.oauth.clientSecret,
      SLACK_API_URL: slack.apiUrl,
      GATEWAY_BASE_URL: gateway.baseUrl,
      CHAT_MODEL: "test/chat-model",
    },
  });
  running.push(parley);
  await parley.says(/Ready\./);
  return (await parley.says(/HTTP mode, ([^\s,]+)/))[1] ?? "";
}

test("an installation begun at one instance ends at another, both use it, and one rotates its token", async () => {
  [redis, gateway, slack] = await Promise.all([
    startRedis(),
    startScriptedGateway((request) =>
      request.path === "/v1/models"
        ? {
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ object: "list", data: [{ id: "test/chat-model", object: "model" }] }),
          }
        : toStream("here I am"),
    ),
    createSlackSimulator({
      manifest: createManifest(allCommands, { socketMode: false, publicUrl: "https://parley.example.com" }),
      sendsRequests: true,
    }),
  ]);
  const [one, other] = [await start(), await start()];
  const workspace = slack.addWorkspace();
  const begun = await fetch(new URL("/slack/install", one));
  const [, link = ""] = /href="([^"]+)"/.exec(await begun.text()) ?? [];
  const [cookie = ""] = (begun.headers.get("set-cookie") ?? "").split(";");
  slack.endpoint.url = other;
  const redirect = slack.approve(link.replaceAll("&amp;", "&"), workspace, { expiresInS: 3600 });
  expect((await fetch(redirect, { headers: { cookie } })).status).toBe(200);
  const used = new URL(redirect);
  const replayed = await fetch(new URL(used.pathname + used.search, one), { headers: { cookie } });
  expect(replayed.status).toBe(400);
  const people = ["Ana", "Bo"].map((name) => workspace.person(name));
  for (const [index, person] of people.entries()) {
    slack.endpoint.url = index === 0 ? one : other;
    const root = person.sends({ channel: person.directMessages, text: "hello" });
    await slack.waitFor(
      "the answer",
      () =>
        workspace
          .directMessages(person)
          .saidByBot(root)
          .some(({ text }) => text === "here I am"),
      40_000,
    );
  }
  const rotations = slack.calls.filter(({ args }) => args["grant_type"] === "refresh_token");
  expect(rotations.map(({ outcome }) => outcome)).toEqual(["ok"]);
});
