import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startScriptedGateway, type ScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { hasTwins } from "../../twins/installed.ts";
import { startEmulatedSlack, type EmulatedMessage, type EmulatedSlack } from "../../twins/slack-emulate.ts";
import { startInstance, type Instance } from "../instances/instance.ts";
import { echoingModel, saidIn } from "./echoing-model.ts";

describe.skipIf(!hasTwins)("on a Slack Web API that others have simulated", () => {
  let slack: EmulatedSlack;
  let gateway: ScriptedGateway;
  let parley: Instance;
  let eventEveryMs = 0;
  let folder: string;
  beforeEach(async () => {
    eventEveryMs = 0;
    folder = await mkdtemp(join(tmpdir(), "parley-twin-"));
    slack = await startEmulatedSlack();
    gateway = await startScriptedGateway((request) => ({ ...echoingModel(request), eventEveryMs }));
    parley = await startInstance({
      settings: {
        STORE_URL: `sqlite:${join(folder, "parley.db")}`,
        SLACK_BOT_TOKEN: slack.botToken,
        SLACK_APP_TOKEN: "xapp-emulated",
        SLACK_API_URL: slack.apiUrl,
        GATEWAY_BASE_URL: gateway.baseUrl,
        GATEWAY_API_KEY: "any",
        CHAT_MODEL: "m",
      },
    });
  });
  afterEach(async () => {
    await parley.remove();
    await gateway.close();
    await rm(folder, { recursive: true });
    await slack.close();
  });

  const shown = async (thread?: string) => (await slack.fromBot(thread)).map(wordsOf);
  const eventually = (thread: string | undefined, texts: readonly unknown[]): Promise<void> =>
    expect
      .poll(() => shown(thread))
      .toEqual(texts)
      .catch((error: unknown) => {
        throw new Error(parley.output(), { cause: error });
      });

  it("a mention is answered in its thread, once, and three turns there are one conversation", async () => {
    const thread = await slack.adaSends({ text: `<@${slack.botUserId}> one`, mentions: true });
    await eventually(thread, ["I heard: one"]);
    await slack.adaSends({ text: "two", thread });
    await eventually(thread, ["I heard: one", "I heard: two"]);
    await slack.adaSends({ text: "three", thread });
    await eventually(thread, ["I heard: one", "I heard: two", "I heard: three"]);
    expect(saidIn(gateway.requests).at(-1)).toEqual(["one", "I heard: one", "two", "I heard: two", "three"]);
    expect(saidIn(gateway.requests)).toHaveLength(3);
  });

  for (const where of ["channel", "direct"] as const) {
    it(`an answer grows by edits of one message where there are no streams: ${where}`, async () => {
      eventEveryMs = 900;
      const channel = slack[where];
      const text = `<@${slack.botUserId}> one two three four`;
      const thread = await slack.adaSends({ channel, text, mentions: where === "channel" });
      const seen = new Map<string, Set<string>>();
      await vi.waitUntil(
        async () => {
          for (const message of await slack.fromBot(thread, channel))
            seen.set(message.ts, (seen.get(message.ts) ?? new Set()).add(wordsOf(message)));
          return [...seen.values()].some((texts) => texts.has("I heard: one two three four"));
        },
        { timeout: 20_000, interval: 20 },
      );
      expect(seen.size).toBe(1);
      const [texts = new Set()] = seen.values();
      expect([...texts].filter((one) => /^I heard: one\b/.test(one)).length).toBeGreaterThan(1);
      // In direct messages a stream is tried first.
      expect(slack.unknownMethods.has("chat.startStream")).toBe(where === "direct");
    });
  }

  it("a slash command is acknowledged and answered in the channel", async () => {
    expect(await slack.adaUses("/ask", "What is new?")).toHaveProperty("ack");
    await eventually(undefined, [expect.stringContaining("I heard: What is new?")]);
  });
});

/** Returns the text of a message's Markdown blocks, without the small print in other blocks. */
function wordsOf({ blocks = [], text }: EmulatedMessage): string {
  const markdown = blocks.filter(({ type }) => type === "markdown").map((block) => block.text ?? "");
  return markdown.length === 0 ? text : markdown.join("\n");
}
