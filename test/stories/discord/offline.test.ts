import { copyFile, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runParley } from "../../e2e/process/run-parley.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { until } from "../../simulators/discord/until.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

/** The label of each question, sorted. */
const asked = (story: Story): string[] =>
  story
    .chats()
    .map((_, index) => /#\w$/.exec(story.said(index).at(-1) ?? "")?.[0] ?? "")
    .toSorted((one, other) => one.localeCompare(other));

function setUp(story: Story) {
  const { discord } = story;
  const ada = discord.person("Ada");
  const shown = () => [...discord.world.channels.keys()].flatMap((id) => discord.handle(id).fromBot());
  /** Each is answered in a message of its own. */
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
