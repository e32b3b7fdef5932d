import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createManifest } from "../../../src/platforms/slack/manifest.ts";
import { startScriptedGateway, type ScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { createSlackSimulator, type SlackSimulator } from "../../simulators/slack/simulator.ts";
import { runParley, type RunningParley } from "../process/run-parley.ts";
import { allCommands } from "../../support/commands.ts";
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

async function start(): Promise<RunningParley> {
  const parley = await runParley({
    folder,
    settings: {
      LOG_LEVEL: "warn",
      SLACK_BOT_TOKEN: slack.botToken,
      SLACK_APP_TOKEN: slack.appToken,
      SLACK_API_URL: slack.apiUrl,
      GATEWAY_BASE_URL: gateway.baseUrl,
      CHAT_MODEL: "test/chat-model",
    },
  });
  running.push(parley);
  await parley.says(/Ready/);
  return parley;
}

test("a process killed during an answer finishes it in the same message after a restart", async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-crash-"));
  slack = await createSlackSimulator({ manifest: createManifest(allCommands, { socketMode: true }) });
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
  const ana = slack.person("Ana");
  const root = ana.sends({ channel: ana.directMessages, text: "tell me" });
  const said = () => slack.directMessages(ana).saidByBot(root);
  await slack.waitFor("half an answer", () => said().some(({ text }) => text.includes("the first")), 30_000);
  parley.process.kill("SIGKILL");
  await parley.ended;
  isHanging = false;
  await start();
  const answer = await slack.waitFor(
    "the whole answer",
    () => said().find(({ text }) => text === "the first half and the second half"),
    40_000,
  );
  expect(said()).toHaveLength(1);
  expect(answer.thread).toBe(root);
  ana.sends({ channel: ana.directMessages, thread: root, text: "and now?" });
  await slack.waitFor("an answer to the next message", () => said().length === 2, 30_000);
});
