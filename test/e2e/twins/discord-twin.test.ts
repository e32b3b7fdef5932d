import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startScriptedGateway, type ScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { startDiscordTwin, twinIds, type DiscordTwin } from "../../twins/discord-twin.ts";
import { hasTwins } from "../../twins/installed.ts";
import { startInstance, type Instance } from "../instances/instance.ts";
import { echoingModel, saidIn } from "./echoing-model.ts";

const mention = `<@${twinIds.bot}>`;

describe.skipIf(!hasTwins)("on a Discord that others have simulated", () => {
  let twin: DiscordTwin;
  let gateway: ScriptedGateway;
  let parley: Instance;
  let eventEveryMs = 0;
  let folder: string;
  beforeEach(async () => {
    eventEveryMs = 0;
    folder = await mkdtemp(join(tmpdir(), "parley-twin-"));
    twin = await startDiscordTwin();
    gateway = await startScriptedGateway((request) => ({ ...echoingModel(request), eventEveryMs }));
    parley = await startInstance({
      settings: {
        STORE_URL: `sqlite:${join(folder, "parley.db")}`,
        DISCORD_TOKEN: twin.token,
        DISCORD_API_URL: twin.apiUrl,
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
    await twin.close();
  });

  const ada = (channelId: string) => twin.channel(channelId).user(twinIds.ada);
  const shown = async (channelId: string) => (await twin.fromBot(channelId)).map(({ content }) => content);
  const eventually = async (channelId: string, texts: readonly string[]): Promise<void> => {
    await expect
      .poll(() => shown(channelId))
      .toEqual(texts)
      .catch((error: unknown) => {
        throw new Error(parley.output(), { cause: error });
      });
  };
  const asked = () => saidIn(gateway.requests);

  it("a mention opens a thread, and three turns there are one conversation", async () => {
    const first = await ada(twinIds.channel).sendMessage({ content: `${mention} one` });
    await eventually(first.id, ["I heard: one"]);
    for (const [index, text] of ["two", "three"].entries()) {
      await ada(first.id).sendMessage({ content: text });
      await eventually(
        first.id,
        ["one", "two", "three"].slice(0, index + 2).map((said) => `I heard: ${said}`),
      );
    }
    expect(asked().at(-1)).toEqual(["one", "I heard: one", "two", "I heard: two", "three"]);
    expect(await shown(twinIds.channel)).toEqual([]);
    expect((await twin.channel(twinIds.channel).getThreads()).map(({ id }) => id)).toEqual([first.id]);
  });

  it("a slash command is answered in its deferred response", async () => {
    await expect.poll(() => twin.commands()).toBeGreaterThan(0);
    await ada(twinIds.channel).runSlashCommand({
      name: "ask",
      options: [{ name: "prompt", type: 3, value: "What is new?" }],
    });
    await expect
      .poll(() => shown(twinIds.channel))
      .toEqual([expect.stringContaining("I heard: What is new?")]);
  });

  it("an answer grows by edits of one message", async () => {
    eventEveryMs = 900;
    const first = await ada(twinIds.channel).sendMessage({ content: `${mention} one two three four` });
    const seen = new Map<string, Set<string>>();
    await vi.waitUntil(
      async () => {
        for (const { id, content } of await twin.fromBot(first.id))
          seen.set(id, (seen.get(id) ?? new Set()).add(content));
        return [...seen.values()].some((texts) => texts.has("I heard: one two three four"));
      },
      { timeout: 20_000, interval: 20 },
    );
    expect(seen.size).toBe(1);
    const [texts = new Set()] = seen.values();
    expect([...texts].filter((text) => /^I heard: one\b/.test(text)).length).toBeGreaterThan(1);
  });

  it("a person's edit of an answered message is answered anew, in the same reply", async () => {
    const first = await ada(twinIds.channel).sendMessage({ content: `${mention} one` });
    await eventually(first.id, ["I heard: one"]);
    await ada(twinIds.channel).editMessage({ messageId: first.id, content: `${mention} other` });
    await eventually(first.id, ["I heard: other"]);
    await ada(first.id).sendMessage({ content: "two" });
    await eventually(first.id, ["I heard: other", "I heard: two"]);
    expect(asked()).toHaveLength(3);
    expect(await shown(twinIds.channel)).toEqual([]);
  });
});
