import { describe, expect, test } from "vitest";
import { parseCommandText, parseOptions } from "../../../src/core/command-input.ts";
import { parseCommandLine } from "../../../src/core/command.ts";
import { declarationOf, settingNames } from "../../../src/core/layered-settings.ts";
import { allCommands } from "../../support/commands.ts";
import { describeRule } from "../../../src/core/rule-words.ts";
import { call, message } from "../../support/fakes.ts";
import { worldOfEachTest } from "../../support/world-of-each-test.ts";

const origin = {
  server: "fake:guild:1",
  channel: "fake:channel:1",
  isMember: true,
  isManager: false,
  user: "fake:user:ada",
};

/** There are no roles here. */
const namesHere = settingNames.filter((name) => name !== "role-budgets");

describe("/help", () => {
  const world = worldOfEachTest({
    rules: { admins: ["fake:user:root", "other:user:7"] },
    spending: { personDayUsd: 2 },
  });

  async function help(command?: string) {
    const before = world.platform.replies.length;
    const options = command === undefined ? {} : { command };
    await world.assistant.receive(call("help", options, { isPrivate: true, origin }));
    await world.store.queue.idle();
    return world.platform.replies[before]!;
  }

  test("explains every command, this platform, limits, admins and privacy", async () => {
    const { text } = await help();
    for (const { name, description } of allCommands.values())
      expect(text).toContain(`- \`/${name}\`: ${description}`);
    expect(text).toContain("Every message is answered.");
    expect(text).toContain("**Ask about this**");
    expect(text).toContain("Daily budget, for you: $2.00.");
    expect(text).toMatch(/Requests: (no limit|\d+ a minute)/);
    expect(text).toContain("user root");
    expect(text).not.toContain("user 7");
    expect(text).toContain("`/forget`");
    expect(text).toContain(
      "Settings now: `chat-model` `chatty`, `language` `automatic`, `calm` `off`, `answer-to` `addressed`.",
    );
    expect(text).toContain(`\`/help settings\` explains all ${namesHere.length}.`);
    // This fits into two messages of Discord.
    expect(text.length).toBeLessThan(3400);
  });

  test.each(["imagine", "/Imagine"])("explains one command, %j, with options and examples", async (typed) => {
    const { text } = await help(typed);
    expect(text).toContain("`/imagine <prompt> [image:…] [model:…] [size:…] [count:1-4]`");
    expect(text).toContain("- `prompt` (text, needed): What to draw");
    expect(text).toContain("- `/imagine a red fox size:1024x1024 count:2`");
  });

  test("explains every setting from its declaration: what it is, for whom, and what is in force", async () => {
    await world.assistant.receive(
      call("settings", { name: "calm", value: "on" }, { isPrivate: true, origin }),
    );
    await world.store.queue.idle();
    const { text } = await help("settings");
    for (const name of namesHere)
      expect(text).toContain(`\`${name}\`: ${declarationOf(name).description}. For `);
    expect(text).toMatch(/`calm`: .* For `here`, `me`, `channel`, `server`\. Now `on` \(your own\)\./);
    expect(text).toMatch(/`answer-to`: .* For `channel`\. Now `addressed` \(default\)\./);
    expect(text).toMatch(/`place-budget`: .* For `channel`, `server`\. Now no limit\./);
    expect(text).toContain("- `for:me` (yourself) and `for:here` (this conversation): everyone.");
    // This fits into two messages of Discord.
    expect(text.length).toBeLessThan(3400);
    expect((await help()).text).toContain("`calm` `on` (your own)");
  });

  test("says which messages are answered where it is asked: by default, as the channel has it, after /dismiss", async () => {
    const conversationId = "fake:own";
    const inThread = async () => {
      const before = world.platform.replies.length;
      const where = { isPrivate: true, inConversation: true, conversationId, origin };
      await world.assistant.receive(call("help", {}, where));
      await world.store.queue.idle();
      return world.platform.replies[before]!.text;
    };
    await world.answered(message("hello", { key: "fake:1", conversationId }));
    const own = describeRule({ answerTo: "addressed", isPeoples: false });
    const peoples = describeRule({ answerTo: "addressed", isPeoples: true });
    expect(await inThread()).toContain(`- Here: ${own}`);
    expect((await help()).text).not.toContain("- Here:");
    // What another instance has changed counts within a second.
    await world.store.settings.change(origin.channel, { "answer-to": "named" });
    await world.clock.advance(1000);
    expect(await inThread()).toContain("- Here I answer mentions, replies to me and my name.");
    expect((await help()).text).toContain("- Here I answer mentions, replies to me and my name.");
    await world.store.conversations.saveSettings(conversationId, { answerTo: "mentions" });
    expect(await inThread()).toContain(`- Here: ${peoples}`);
  });

  test("on the page explains the settings that exist there", async () => {
    const before = world.platform.replies.length;
    await world.assistant.receive(call("help", { command: "settings" }, { isPrivate: true }));
    await world.store.queue.idle();
    const { text } = world.platform.replies[before]!;
    expect(text).toContain("For `here`, `server`.");
    expect(text).not.toContain("answer-to`:");
    expect(text).toContain("`for:server` the whole page");
  });

  test("suggests the nearest name", async () => {
    const { failure } = await help("imagin");
    expect(failure?.text).toContain("did you mean imagine?");
  });
});

test("every example of a command can be run as it is", () => {
  for (const command of allCommands.values()) {
    for (const line of command.examples ?? []) {
      const given = parseCommandText(command, parseCommandLine(line)?.text ?? "");
      const files = Object.entries(command.options).flatMap(([name, option]) =>
        option.kind === "attachment" && given[name] === undefined
          ? [[name, { id: "f", name: "f.ogg", source: null }] as const]
          : [],
      );
      expect(() => parseOptions(command, { ...given, ...Object.fromEntries(files) }), line).not.toThrow();
    }
  }
});
