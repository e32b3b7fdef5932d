import { expect, it } from "vitest";
import { ParleyError } from "../../../src/core/errors.ts";
import type { LogLine } from "../../unit/platforms/discord/harness.ts";
import { until } from "../../simulators/discord/until.ts";
import type { Permission } from "../../simulators/discord/world.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

let story: Story;

/** Says where the answer to a mention is found, and what else it says. */
interface Outcome {
  readonly without: readonly Permission[];
  readonly asks?: string;
  readonly where: "thread" | "channel" | "nowhere";
  /** The words stand below the answer or in place of it. */
  readonly says?: RegExp;
  /** A line of the log names this permission. */
  readonly logs?: string;
}

const outcomes: readonly Outcome[] = [
  // The answer goes into a thread.
  { without: ["SEND_MESSAGES"], where: "thread" },
  // Parley does not use these.
  { without: ["EMBED_LINKS"], where: "thread" },
  { without: ["MENTION_EVERYONE"], where: "thread" },
  { without: ["CREATE_PRIVATE_THREADS"], where: "thread" },
  { without: ["READ_MESSAGE_HISTORY"], where: "thread" },
  { without: ["CREATE_PUBLIC_THREADS"], where: "channel", says: /missing: Create Public Threads/ },
  { without: ["SEND_MESSAGES_IN_THREADS"], where: "channel", says: /missing: Send Messages in Threads/ },
  {
    without: ["ATTACH_FILES"],
    asks: "/imagine a fox",
    where: "thread",
    says: /Attach Files/,
    logs: "Attach Files",
  },
  {
    without: ["CREATE_PUBLIC_THREADS", "READ_MESSAGE_HISTORY"],
    where: "channel",
    says: /missing: Create Public Threads/,
    logs: "Read Message History",
  },
  { without: ["CREATE_PUBLIC_THREADS", "SEND_MESSAGES"], where: "nowhere", logs: "Send Messages" },
  { without: ["SEND_MESSAGES_IN_THREADS", "SEND_MESSAGES"], where: "nowhere", logs: "Send Messages" },
];

function permissionIn(fields: LogLine["fields"]): unknown {
  const { permission, err } = fields;
  return permission ?? (err instanceof ParleyError ? err.detail["permission"] : undefined);
}

const named = outcomes.map((outcome) => [outcome.without.join(" and "), outcome] as const);

it.each(named)("a mention without %s", async (_, { without, asks = "why?", where, says, logs }) => {
  story = await stage.begin();
  const { discord } = story;
  const ada = discord.person("Ada");
  const general = discord.channel("general");
  general.deny(...without);
  ada.sends({ channel: general, text: asks, mentionBot: true });
  const explain = () => ({ lines: story.lines, requests: discord.requests });
  if (logs !== undefined)
    await until(
      () =>
        story.lines.some(
          ({ level, fields }) => ["warn", "error"].includes(level) && permissionIn(fields) === logs,
        ),
      { explain },
    );
  if (where === "nowhere") return;
  const place = where === "channel" ? general : await until(() => general.threads()[0], { explain });
  const shown = await story.settled(place);
  if (asks === "why?") expect(shown[0]?.text).toMatch(/^I heard: why\?/);
  if (says !== undefined) expect(shown.map(({ text }) => text).join("\n")).toMatch(says);
});

it("commands work without View Channel; /chat says that it is missing", async () => {
  story = await stage.begin();
  const { discord } = story;
  const ada = discord.person("Ada");
  const general = discord.channel("general");
  general.deny("VIEW_CHANNEL");
  ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
  expect(await story.settled(general)).toMatchObject([{ text: expect.stringContaining("I heard: why?") }]);
  ada.usesCommand("chat", { message: "Hello" }, { channel: general });
  await until(() => general.fromBot().some(({ text }) => text.includes("it lacks View Channel")), {
    explain: () => general.fromBot(),
  });
});

it("a server that the bot is removed from in mid-answer leaves nothing behind", async () => {
  story = await stage.begin();
  const { discord } = story;
  const ada = discord.person("Ada");
  const general = discord.channel("general");
  story.setStalled(true);
  ada.sends({ channel: general, text: "the secret is plovers-and-terns", mentionBot: true });
  const thread = await until(() => general.threads()[0]);
  await until(() => thread.fromBot().length > 0);
  expect(await story.isKept("plovers-and-terns")).toBe(true);
  discord.removeGuild();
  story.setStalled(false);
  const direct = discord.directMessages(ada);
  ada.sends({ channel: direct, text: "Hello" });
  // She shares no server with the bot after its removal.
  expect(await story.settled(direct)).toMatchObject([{ text: expect.stringContaining("add discord:user:") }]);
  await expect.poll(() => story.isKept("plovers-and-terns"), { timeout: 5000 }).toBe(false);
});
