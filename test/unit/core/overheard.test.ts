import { readFileSync } from "node:fs";
import type { APIMessage } from "discord.js";
import { describe, expect, test } from "vitest";
import { isAnswered, type SpokenMessage } from "../../../src/core/addressee.ts";
import { toSpoken as toDiscordSpoken } from "../../../src/platforms/discord/intake/message-events.ts";
import { toSpoken as toSlackSpoken } from "../../../src/platforms/slack/intake/read-message.ts";

/** For whom a message is, and what says so. The head of the fixture explains it. */
type Label = "others" | "mention" | "reply" | "name" | "next" | "bot";

interface Overheard {
  readonly label: Label;
  readonly when: "-" | "next" | "person" | "self" | "app" | "bot";
  readonly text: string;
  readonly hasFile: boolean;
}

const overheard: readonly Overheard[] = readFileSync(
  new URL("../../fixtures/overheard.txt", import.meta.url),
  "utf8",
)
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line) => {
    const [label, when, text] = line.split("\t") as [Label, Overheard["when"], string];
    const typed = text.replaceAll("\\n", "\n");
    return { label, when, text: typed.replace("[file]", "").trim(), hasFile: typed.includes("[file]") };
  });

const ids = new Map(["parley", "tom", "anna", "lena", "kenta"].map((name, at) => [name, `${at + 1}00`]));
/** Everybody who writes there, by all their names. */
const people = [
  ["Lena Vogt", "lena.v", "Tom Becker", "tomb", "Anna Kowalska", "anna_k", "Will Turner", "wturner"],
  ["Mark Evans", "mark_e", "Rose Martin", "rosem", "José Ruiz", "joser", "Chloé Dubois", "chloe"],
  ["佐藤ゆき", "yuki", "田中健太", "kenta"],
].flat();

function asDiscord({ text, when, hasFile }: Overheard): SpokenMessage {
  const content = text.replaceAll(/<(\w+)>/g, (typed, name: string) =>
    name === "here" ? "@here" : ids.has(name) ? `<@${ids.get(name)}>` : typed,
  );
  const repliedTo = { "-": undefined, next: undefined, person: "200", self: "900", app: "800", bot: "100" }[
    when
  ];
  const message = {
    content,
    type: repliedTo === undefined ? 0 : 19,
    author: { id: "900" },
    attachments: hasFile ? [{}] : [],
    mentions: [...content.matchAll(/<@(\d+)>/g)].map(([, id]) => ({ id })),
    mention_roles: [],
    ...(repliedTo === undefined
      ? {}
      : { referenced_message: { author: { id: repliedTo, bot: repliedTo === "800" } } }),
  };
  const names = {
    botId: "100",
    botName: "Parley",
    botNames: ["Parley"],
    botRoleId: undefined,
    channelName: () => undefined,
    roleName: () => undefined,
  };
  return toDiscordSpoken(message as unknown as APIMessage, names, false);
}

function asSlack({ text, hasFile }: Overheard): SpokenMessage {
  const markup = text
    .replaceAll("&", "&amp;")
    .replaceAll(/^>/gm, "&gt;")
    .replaceAll(/<(\w+)>/g, (typed, name: string) =>
      name === "here" ? "<!here>" : ids.has(name) ? `<@U${ids.get(name)}>` : typed,
    );
  const spoken = toSlackSpoken(markup, { author: "person", isDirect: false, botUserId: "U100" });
  return { ...spoken, hasFiles: hasFile, botNames: ["Parley"] };
}

const platforms = {
  discord: { toSpoken: asDiscord, messages: overheard },
  // Slack has no replies to one message within a thread.
  slack: { toSpoken: asSlack, messages: overheard.filter(({ when }) => when === "-" || when === "next") },
};

describe.each(Object.entries(platforms))(
  "what people say in a thread of several people: %s",
  (_, { toSpoken, messages }) => {
    const isForBot = (one: Overheard): boolean =>
      isAnswered(
        toSpoken(one),
        { answerTo: "addressed", isPeoples: false },
        { isAlone: false, isNext: one.when === "next", names: people },
      );
    const wrong = messages.filter((one) => (one.label !== "others") !== isForBot(one));

    test("there are at least 300 messages of all kinds", () => {
      expect(messages.length).toBeGreaterThanOrEqual(300);
      expect(new Set(messages.map(({ label }) => label)).size).toBeGreaterThanOrEqual(5);
    });

    test("of those that are for others at most one in twenty is answered", () => {
      const answered = wrong.filter(({ label }) => label === "others").map(({ text }) => text);
      const all = messages.filter(({ label }) => label === "others");
      expect(answered.length, answered.join("\n")).toBeLessThanOrEqual(all.length / 20);
    });

    test("none is silent that mentions the bot, replies to it or names it, or goes on with it", () => {
      const silent = wrong.filter(({ label }) => label !== "others" && label !== "bot");
      expect(silent.map(({ text }) => text)).toEqual([]);
    });
  },
);
