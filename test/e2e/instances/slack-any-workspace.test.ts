import { randomBytes } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { createManifest } from "../../../src/platforms/slack/install/manifest.ts";
import { startScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { createSlackSimulator } from "../../simulators/slack/simulator.ts";
import { allCommands } from "../../support/commands.ts";
import { startRedis } from "../../support/redis-server.ts";
import { has } from "../../support/requirements.ts";
import { toStream } from "../slack/slack-story.ts";
import { startInstance } from "./instance.ts";

test.skipIf(!has("redis"))(
  "an installation begun at one instance ends at another, both use it, and one rotates its token",
  async () => {
    const [redis, gateway, slack] = await Promise.all([
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
    onTestFinished(async () => {
      await Promise.all([slack.close(), gateway.close(), redis.remove()]);
    });
    const settings = {
      STORE_URL: redis.url,
      STORE_ENCRYPTION_KEYS: randomBytes(32).toString("base64"),
      SLACK_SIGNING_SECRET: slack.signingSecret,
      SLACK_CLIENT_ID: slack.oauth.clientId,
      SLACK_CLIENT_SECRET: slack.oauth.clientSecret,
      SLACK_API_URL: slack.apiUrl,
      GATEWAY_BASE_URL: gateway.baseUrl,
      CHAT_MODEL: "test/chat-model",
    };
    /** Resolves to where Slack reaches an instance. */
    const start = async (): Promise<string> => {
      const instance = await startInstance({ settings });
      onTestFinished(() => instance.remove());
      return new URL("/slack/events", instance.parley.url).href;
    };
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
    for (const [name, url] of Object.entries({ Ana: one, Bo: other })) {
      slack.endpoint.url = url;
      const person = workspace.person(name);
      const root = person.sends({ channel: person.directMessages, text: "hello" });
      const said = () => workspace.directMessages(person).saidByBot(root);
      await slack.waitFor("the answer", () => said().some(({ text }) => text === "here I am"), 40_000);
    }
    const rotations = slack.calls.filter(({ args }) => args["grant_type"] === "refresh_token");
    expect(rotations.map(({ outcome }) => outcome)).toEqual(["ok"]);
  },
);
