import { describe, expect, test } from "vitest";
import type { APIMessage } from "discord.js";
import {
  isAnswered,
  type AnswerRule,
  type SaidBefore,
  type SpokenMessage,
} from "../../../src/core/addressee.ts";
import { toSpoken as toDiscordSpoken } from "../../../src/platforms/discord/intake/message-events.ts";
import { toSpoken as toSlackSpoken } from "../../../src/platforms/slack/intake/read-message.ts";

const own = { answerTo: "addressed", isPeoples: false } as const;
const others = { isAlone: false, isNext: false, names: ["Lena Vogt"] };

/** Where a message may stand, and what was said there before. */
const places = {
  mentions: [
    { answerTo: "mentions", isPeoples: false },
    { ...others, isAlone: true },
  ],
  named: [{ answerTo: "named", isPeoples: true }, others],
  all: [{ answerTo: "all", isPeoples: true }, others],
  peoples: [{ answerTo: "addressed", isPeoples: true }, others],
  /** A thread of the bot in which several people write, and another one spoke last. */
  several: [own, others],
  /** The bot has just answered the author. */
  next: [own, { ...others, isNext: true }],
  /** Nobody else writes there. */
  one: [own, { ...others, isAlone: true, names: [] }],
} as const satisfies Record<string, readonly [AnswerRule, SaidBefore]>;
type Rule = keyof typeof places;

const everywhere = Object.keys(places) as readonly Rule[];
const named: readonly Rule[] = ["named", "all", "several", "next", "one"];
const replied: readonly Rule[] = ["named", "all", "peoples", "several", "next", "one"];
const plain: readonly Rule[] = ["all", "next", "one"];
/** It says nothing, or mentions somebody else without speaking to them. */
const alone: readonly Rule[] = ["all", "one"];
const whole: readonly Rule[] = ["all"];

interface Case {
  /** `@parley` is the bot; `@rasha`, `@bo`, `@team` and `@here` are others. */
  readonly text: string;
  readonly repliesTo?: NonNullable<SpokenMessage["repliesTo"]>;
  readonly author?: SpokenMessage["author"];
  readonly isDirect?: boolean;
  /** Where it is answered. */
  readonly where: readonly Rule[];
}

/** What people type in a thread, and what is the same on Discord and Slack. */
const cases: readonly Case[] = [
  { text: "what is a larch?", where: plain },
  { text: "", where: alone },
  { text: "thanks, all", where: plain },
  { text: "@parley what is a larch?", where: everywhere },
  { text: "what do you think, @parley?", where: everywhere },
  { text: "@parley", where: everywhere },
  { text: "@parley @rasha asks for the plan", where: everywhere },
  { text: "@rasha @parley can one of you take this?", where: everywhere },
  { text: "@rasha ask @parley about it", where: everywhere },
  { text: "@rasha can you take this?", where: whole },
  { text: "@rasha", where: whole },
  { text: "@rasha @bo", where: whole },
  { text: "@rasha, @bo: can you take this?", where: whole },
  { text: "  @rasha can you take this?", where: whole },
  { text: "\n@rasha can you take this?", where: whole },
  { text: "(@rasha can you take this?)", where: whole },
  { text: "*@rasha* can you take this?", where: whole },
  { text: "→ @rasha", where: whole },
  { text: "👋 @rasha", where: whole },
  { text: "👍🏽 @rasha look", where: whole },
  { text: "🧑‍💻 @rasha look", where: whole },
  { text: ":wave: @rasha look", where: whole },
  { text: "- @rasha: the tests", where: whole },
  { text: "@team can somebody take this?", where: whole },
  { text: "@here lunch?", where: whole },
  { text: "hey @rasha can you take this?", where: whole },
  { text: "Hi @rasha, @bo: can you take this?", where: whole },
  { text: "Thank you, @rasha!", where: whole },
  { text: "ok @rasha", where: whole },
  { text: "Good morning @team", where: whole },
  { text: "hallo @rasha, kannst du das machen?", where: whole },
  { text: "Merci @rasha", where: whole },
  { text: "¡Gracias, @rasha!", where: whole },
  { text: "ありがとう @rasha", where: whole },
  { text: "hey, what does @rasha mean?", where: alone },
  { text: "hey parley, who is @rasha?", where: named },
  { text: "thanks! what does @rasha mean?", where: alone },
  { text: "okay @parley, and a fir?", where: everywhere },
  { text: "can you take this, @rasha?", where: whole },
  { text: "It is green again. Thanks for that, @rasha 🎉", where: whole },
  { text: "can you take this, @rasha? @parley wrote it", where: everywhere },
  { text: "who is @rasha?", where: alone },
  { text: "write to Ann, Tom, @rasha", where: alone },
  { text: "compare the plans of @bo, @rasha", where: alone },
  { text: "if it is for you, @rasha, say so to Ann", where: alone },
  { text: "what does @rasha mean by larch?", where: alone },
  { text: "write a mail to @rasha", where: alone },
  { text: "cc @rasha", where: alone },
  { text: "1. @rasha 2. @bo: make a table of it", where: alone },
  { text: "`@rasha` is a mention", where: plain },
  { text: "rasha can you take this?", where: plain },
  { text: "rasha@example.org is the address", where: plain },
  { text: "> @rasha is on leave\nwho else can do it?", where: plain },
  { text: "> who else can do it?\n@rasha can", where: whole },
  { text: "> @parley is wrong\n@rasha look", where: everywhere },
  { text: "parley, what is a larch?", where: named },
  { text: "what is a larch?", isDirect: true, where: everywhere },
  { text: "@rasha can you take this?", isDirect: true, where: everywhere },
  { text: "deployed v3", author: "app", where: [] },
  { text: "@rasha deployed v3", author: "app", where: [] },
  { text: "@parley what is a larch?", author: "app", where: [] },
  { text: "hello", author: "app", isDirect: true, where: [] },
];

/** Only Discord has replies within a thread. */
const replies: readonly Case[] = [
  { text: "yes, do that", repliesTo: "person", where: whole },
  { text: "", repliesTo: "person", where: whole },
  { text: "@rasha yes", repliesTo: "person", where: whole },
  { text: "what does @rasha say?", repliesTo: "person", where: whole },
  { text: "@parley is that right?", repliesTo: "person", where: everywhere },
  { text: "is that right, @parley?", repliesTo: "person", where: everywhere },
  { text: "Parley, is that right?", repliesTo: "person", where: named },
  { text: "parley?", repliesTo: "person", where: named },
  { text: "parleying does not help", repliesTo: "person", where: whole },
  { text: "ask parley", repliesTo: "person", where: named },
  { text: "I mean the tree", repliesTo: "self", where: plain },
  { text: "@rasha I mean you", repliesTo: "self", where: whole },
  { text: "@parley I mean the tree", repliesTo: "self", where: everywhere },
  { text: "and a fir?", repliesTo: "bot", where: replied },
  { text: "@rasha look at this", repliesTo: "bot", where: whole },
  { text: "what failed here?", repliesTo: "app", where: alone },
  { text: "@parley what failed here?", repliesTo: "app", where: everywhere },
  { text: "@rasha it failed again", repliesTo: "app", where: whole },
  { text: "deployed again", repliesTo: "app", author: "app", where: [] },
  { text: "thank you", repliesTo: "bot", author: "app", where: [] },
];

const botId = "100";
const names = {
  botId,
  botName: "Parley",
  botNames: ["Parley"],
  botRoleId: "900",
  channelName: () => undefined,
  roleName: () => undefined,
};
const discordIds: Readonly<Record<string, string>> = {
  "@parley": `<@${botId}>`,
  "@rasha": "<@!200>",
  "@bo": "<@300>",
  "@team": "<@&901>",
  "@here": "@here",
};
const slackIds: Readonly<Record<string, string>> = {
  "@parley": "<@UBOT|parley>",
  "@rasha": "<@U2>",
  "@bo": "<@W3|bo>",
  "@team": "<!subteam^S1|@team>",
  "@here": "<!here>",
};

/** In code a platform leaves a mention as it was typed. */
const typed = (text: string, ids: Readonly<Record<string, string>>): string =>
  text.replaceAll(/(?<![`\w])@\w+/g, (name) => ids[name] ?? name);

function asDiscord({ text, repliesTo, author, isDirect = false }: Case): SpokenMessage {
  const content = typed(text, discordIds);
  const ids = { bot: botId, self: "400", person: "500", app: "600" };
  const message = {
    content,
    type: repliesTo === undefined ? 0 : 19,
    author: { id: "400", ...(author === undefined ? {} : { bot: true }) },
    mentions: [...content.matchAll(/<@!?(\d+)>/g)].map(([, id]) => ({ id })),
    mention_roles: [],
    attachments: [],
    ...(repliesTo === undefined
      ? {}
      : { referenced_message: { author: { id: ids[repliesTo], bot: repliesTo === "app" } } }),
  };
  return toDiscordSpoken(message as unknown as APIMessage, names, isDirect);
}

function asSlack({ text, author = "person", isDirect = false }: Case): SpokenMessage {
  const escaped = text.replaceAll(/^>/gm, "&gt;");
  return {
    ...toSlackSpoken(typed(escaped, slackIds), { author, isDirect, botUserId: "UBOT" }),
    botNames: names.botNames,
  };
}

const answeredIn = (message: SpokenMessage): readonly Rule[] =>
  everywhere.filter((rule) => isAnswered(message, places[rule][0], places[rule][1]));
const title = ({ text, repliesTo, author, isDirect }: Case): string =>
  [JSON.stringify(text), author, isDirect && "in private", repliesTo && `to ${repliesTo}`]
    .filter(Boolean)
    .join(" ");

describe("a message is answered where it is said to the bot", () => {
  test.each(cases.map((one) => [title(one), one] as const))("%s", (_, one) => {
    expect(answeredIn(asDiscord(one))).toEqual(one.where);
    expect(answeredIn(asSlack(one))).toEqual(one.where);
  });

  test.each(replies.map((one) => [title(one), one] as const))("a reply on Discord: %s", (_, one) => {
    expect(answeredIn(asDiscord(one))).toEqual(one.where);
  });

  test("a mention of the bot's own role, and a reply that pings it, call it", () => {
    const message = asDiscord({ text: "look", repliesTo: "bot", where: [] });
    expect(answeredIn({ ...message, isCall: true })).toEqual(everywhere);
    const role = {
      content: "<@&900> look",
      type: 0,
      author: { id: "400" },
      mentions: [],
      mention_roles: ["900"],
      attachments: [],
    } as unknown as APIMessage;
    expect(answeredIn(toDiscordSpoken(role, names, false))).toEqual(everywhere);
  });

  test("a reply to a message that is gone, and a forwarded message, are said to the bot", () => {
    const gone = { content: "yes", author: { id: "400" }, mentions: [], mention_roles: [], attachments: [] };
    for (const message of [
      { ...gone, type: 19, referenced_message: null },
      { ...gone, type: 0, message_reference: { type: 1, channel_id: "1", message_id: "2" } },
    ])
      expect(answeredIn(toDiscordSpoken(message as unknown as APIMessage, names, false))).toEqual(plain);
  });
});
