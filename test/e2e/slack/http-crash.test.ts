import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createManifest } from "../../../src/platforms/slack/manifest.ts";
import { startScriptedGateway, type ScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { createSlackSimulator, type SlackSimulator } from "../../simulators/slack/simulator.ts";
import { allCommands } from "../../support/commands.ts";
import { runParley, type RunningParley } from "../process/run-parley.ts";
import { toStream } from "./slack-story.ts";

const running: RunningParley[] = [];
let slack: SlackSimulator;
let gateway: ScriptedGateway;
let folder: string;

afterEach(async () => {
  for (const parley of running.splice(0)) await parley.remove();
  await slack.close();
  await gateway.close();
  await rm(folder, { recursive: true, force: true });
});

/** Whether the token is that of an installation, or of the settings. */
let isInstalled = false;

async function start(): Promise<RunningParley> {
  const parley = await runParley({
    folder,
    settings: {
      LOG_LEVEL: "warn",
      ...(isInstalled
        ? {
            SLACK_CLIENT_ID: slack.oauth.clientId,
            SLACK_CLIENT_SECRET: slack.oauth.clientSecret,
            STORE_ENCRYPTION_KEYS: "k".repeat(43) + "=",
          }
        : { SLACK_BOT_TOKEN: slack.botToken }),
      SLACK_SIGNING_SECRET: slack.signingSecret,
      SLACK_API_URL: slack.apiUrl,
      GATEWAY_BASE_URL: gateway.baseUrl,
      CHAT_MODEL: "test/chat-model",
    },
  });
  running.push(parley);
  await parley.says(/Ready/);
  const [, url] = await parley.says(/HTTP mode, ([^\s,]+)/);
  slack.endpoint.url = url ?? "";
  return parley;
}

/** As a person's browser does. */
async function install(): Promise<void> {
  const begun = await fetch(new URL("/slack/install", slack.endpoint.url));
  const [, link = ""] = /href="([^"]+)"/.exec(await begun.text()) ?? [];
  const [cookie = ""] = (begun.headers.get("set-cookie") ?? "").split(";");
  const redirect = slack.approve(link.replaceAll("&amp;", "&"), slack);
  expect((await fetch(redirect, { headers: { cookie } })).status).toBe(200);
}

test.each([
  ["of the settings", false],
  ["of an installation", true],
])(
  "with the token %s, over HTTP a killed process finishes its answer after a restart, and answers what Slack could not deliver",
  async (_, isOfInstallation) => {
    isInstalled = isOfInstallation;
    folder = await mkdtemp(join(tmpdir(), "parley-crash-"));
    slack = await createSlackSimulator({
      manifest: createManifest(allCommands, { socketMode: false, publicUrl: "https://parley.example.com" }),
      sendsRequests: true,
    });
    let isHanging = true;
    gateway = await startScriptedGateway((request) => {
      if (request.path === "/v1/models")
        return {
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ object: "list", data: [{ id: "test/chat-model", object: "model" }] }),
        };
      const whole = toStream("the first half and the second half", 14);
      if (!isHanging) return whole;
      const [first = ""] = String(whole.body).split("\n\n");
      return { body: `${first}\n\n`, after: "hang" };
    });
    const parley = await start();
    if (isInstalled) await install();
    const ana = slack.person("Ana");
    const said = (root: string) => slack.directMessages(ana).saidByBot(root);
    const begun = ana.sends({ channel: ana.directMessages, text: "tell me" });
    await slack.waitFor(
      "half an answer",
      () => said(begun).some(({ text }) => text.includes("the first")),
      30_000,
    );
    parley.process.kill("SIGKILL");
    await parley.ended;
    isHanging = false;
    const missed = ana.sends({ channel: ana.directMessages, text: "are you there?" });
    await slack.waitFor("a failed delivery", () =>
      slack.deliveries.some(({ outcome, attempt }) => outcome === "refused" && attempt === 1),
    );
    await start();
    slack.clock.advance(60_000);
    for (const root of [begun, missed]) {
      await slack.waitFor(
        "the whole answer",
        () => said(root).find(({ text }) => text === "the first half and the second half"),
        40_000,
      );
      expect(said(root)).toHaveLength(1);
    }
    expect(slack.lost).toEqual([]);
  },
);
