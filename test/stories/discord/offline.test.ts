import { copyFile, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { runParley } from "../../e2e/process/run-parley.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { until } from "../../simulators/discord/until.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

/** Returns the label of each question, sorted. */
const asked = (story: Story): string[] =>
  story
    .chats()
    .map((_, index) => /#\w$/.exec(story.said(index).at(-1) ?? "")?.[0] ?? "")
    .toSorted((one, other) => one.localeCompare(other));

function setUp(story: Story) {
  const { discord } = story;
  const ada = discord.person("Ada");
  const shown = () => [...discord.world.channels.keys()].flatMap((id) => discord.handle(id).fromBot());
  /** Each question is answered in its own message. */
  const answered = async (...labels: string[]) => {
    for (const label of labels)
      await until(() => shown().some(({ text }) => text.includes(label)), {
        timeoutMs: 20_000,
        explain: shown,
      });
    await until(() => story.isIdle());
  };
  return {
    ada,
    direct: discord.directMessages(ada),
    general: discord.channel("general"),
    answered,
  };
}

it("a store restored from a backup answers nothing again, and what came while the bot was off", async () => {
  const story = await stage.start();
  const { folder } = story;
  const { ada, direct, general, answered } = setUp(story);
  ada.sends({ channel: direct, text: "before #a" });
  await answered("#a");
  ada.sends({ channel: general, text: "before #b", mentionBot: true });
  await answered("#b");
  const [thread] = general.threads();
  const backup = await runParley({
    args: ["backup", join(folder, "backup")],
    folder,
    settings: { STORE_URL: `sqlite:${join(folder, "parley.db")}` },
  });
  expect(await backup.ended).toBe(0);
  ada.sends({ channel: direct, text: "after #c" });
  ada.sends({ channel: thread!, text: "after #d" });
  ada.sends({ channel: general, text: "after #e", mentionBot: true });
  await answered("#c", "#d", "#e");
  await story.restart(async () => {
    for (const name of await readdir(folder)) if (name.startsWith("parley.db")) await rm(join(folder, name));
    for (const name of await readdir(join(folder, "backup")))
      if (name.endsWith(".db")) await copyFile(join(folder, "backup", name), join(folder, "parley.db"));
    ada.sends({ channel: direct, text: "offline #f" });
    ada.sends({ channel: thread!, text: "offline #g" });
    ada.sends({ channel: general, text: "offline #h", mentionBot: true });
  });
  await answered("#f", "#g", "#h");
  expect(asked(story)).toEqual(["#a", "#b", "#c", "#d", "#e", "#f", "#g", "#h"]);
});

it("a first mention while the bot was off is answered, also in channels that it has never used", async () => {
  const story = await stage.start();
  const { discord } = story;
  const { ada, general, answered } = setUp(story);
  const use = ada.usesCommand("models", {}, { channel: general });
  await until(() => use.state() === "answered" && general.fromBot().some(({ isThinking }) => !isThinking));
  await story.restart(() => {
    ada.sends({ channel: general, text: "offline #a", mentionBot: true });
    ada.sends({ channel: general, text: "among people" });
    ada.sends({ channel: discord.channel("other"), text: "offline #b", mentionBot: true });
  });
  await answered("#a", "#b");
  await story.restart();
  ada.sends({ channel: discord.channel("third"), text: "online #c", mentionBot: true });
  await answered("#c");
  expect(asked(story)).toEqual(["#a", "#b", "#c"]);
});

describe("a start that looks up 40 conversations, while people write already", () => {
  const count = 40;

  /** Starts a Parley that knows 40 conversations, each in its own channel. Time passes as Discord's does. */
  async function startKnowing() {
    const story = await stage.start({}, {}, undefined, 1);
    const { discord } = story;
    const known = Array.from({ length: count }, (_, n) => discord.channel(`known ${n}`));
    for (const [n, channel] of known.entries()) {
      discord.person(`Known ${n}`).sends({ channel, text: `before ${n}`, mentionBot: true });
      await sleep(80);
    }
    await until(() => story.chats().length === count && story.isIdle(), { timeoutMs: 20_000 });
    /** Deletes two more channels and restarts. Resolves when Discord delivers events to the new process. */
    const restart = async (): Promise<{ readonly ready: Promise<void> }> => {
      const before = discord.gateway.counts.identify;
      const ready = story.restart(() => {
        for (const channel of known.splice(0, 2)) channel.remove();
        // After this time the requests of the process before do not count against Discord's limit.
        return sleep(1000);
      });
      await until(() => discord.gateway.counts.identify > before && discord.gateway.isConnected());
      return { ready };
    };
    return { ...setUp(story), story, discord, restart };
  }

  it("answers what is said in a thread that it has just opened, however soon", async () => {
    const { story, discord, ada, answered, restart } = await startKnowing();
    for (const [delayMs, first, second] of [
      [0, "#a", "#b"],
      [100, "#c", "#d"],
      [300, "#e", "#f"],
      [500, "#g", "#h"],
    ] as const) {
      const fresh = discord.channel("fresh");
      const { ready } = await restart();
      ada.sends({ channel: fresh, text: `first ${first}`, mentionBot: true });
      const thread = await until(() => fresh.threads()[0]);
      await sleep(delayMs);
      ada.sends({ channel: thread, text: `second ${second}` });
      await answered(first, second);
      await ready;
      expect(thread.fromBot().map(({ text }) => text)).toEqual([
        `I heard: first ${first}`,
        `I heard: second ${second}`,
      ]);
    }
    expect(asked(story).filter((label) => label !== "")).toEqual([
      "#a",
      "#b",
      "#c",
      "#d",
      "#e",
      "#f",
      "#g",
      "#h",
    ]);
  });

  it("opens a thread for each of three mentions, also where Discord refuses the first edit as one request too many", async () => {
    const { discord, ada, answered, restart } = await startKnowing();
    const fresh = discord.channel("fresh");
    discord.fail({
      method: "PATCH",
      route: "/messages/{message_id}",
      status: 429,
      isGlobal: true,
      retryAfterMs: 100,
      times: 1,
    });
    const { ready } = await restart();
    for (const label of ["#a", "#b", "#c"]) {
      ada.sends({ channel: fresh, text: `mention ${label}`, mentionBot: true });
      await sleep(300);
    }
    await answered("#a", "#b", "#c");
    await ready;
    expect(fresh.fromBot()).toEqual([]);
    expect(fresh.threads()).toHaveLength(3);
  });
});
