import { describe, expect, test } from "vitest";
import { defineCommand } from "../../../src/core/command.ts";
import { toDiscordMarkdown } from "../../../src/platforms/discord/reply/content.ts";
import { threadRules } from "../../../src/core/rule-words.ts";
import { inLanguage, translate } from "../../../src/words/translate.ts";
import { type Language, languages } from "../../../src/words/languages.ts";
import { call } from "../../support/fakes.ts";
import { worldOfEachTest } from "../../support/world-of-each-test.ts";
import { doNothing } from "../../support/empty-result.ts";

const maxMessageChars = 2000;
const origin = {
  server: "fake:guild:1",
  channel: "fake:channel:1",
  isMember: true,
  isManager: false,
  user: "fake:user:ada",
};

describe("/help on a platform that shows commands by their names in each language", () => {
  const world = worldOfEachTest({
    rules: { admins: ["fake:user:root", "fake:user:second"] },
    spending: { personDayUsd: 2, dayUsd: 100, turnsPersonMinute: 20 },
  });

  async function help(locale: Language, name = "help", options: Readonly<Record<string, string>> = {}) {
    const speaking = inLanguage(locale, () => [
      translate("discord.guide.direct"),
      translate("discord.guide.channel"),
      ...threadRules(),
      translate("discord.guide.files"),
    ]);
    Object.assign(world.platform.platform.guide, { hasLocalNames: true, speaking });
    const before = world.platform.replies.length;
    const author = { id: "fake:ada", name: "Ada", locale };
    await world.assistant.receive(call(name, options, { isPrivate: true, origin, author }));
    await world.store.queue.idle();
    const { text, failure } = world.platform.replies[before]!;
    return failure?.text ?? text;
  }

  test.each(languages)("fits into one message of Discord: %s", async (language) => {
    const text = await help(language);
    expect(toDiscordMarkdown(text).length).toBeLessThanOrEqual(maxMessageChars);
  });

  test.each(languages)("does not grow with each command, and names them all: %s", async (language) => {
    const names = Array.from({ length: 20 }, (_, index) => `tool-${index}`);
    const commands = names.map((name) =>
      defineCommand({
        name,
        description: "Does what the team wants, in as many words as a description may have",
        options: {},
        visibility: "private",
        run: doNothing,
      }),
    );
    await world.renew({ commands });
    const text = await help(language);
    expect(toDiscordMarkdown(text).length).toBeLessThanOrEqual(maxMessageChars);
    for (const name of names) expect(text).toContain(`\`/${name}\``);
  });

  test("names the commands as the person sees them", async () => {
    const text = await help("de");
    expect(text).toContain("- `/zeichnen`: Zeichne ein Bild");
    expect(text).toContain("`/hilfe <befehl>` zeigt die Optionen eines Befehls.");
    expect(text).toContain("`/hilfe einstellungen` erklärt alle");
    expect(text).toContain("`/vergessen` entfernt");
    expect(text).not.toMatch(/\/(imagine|help|forget|export)\b/);
  });

  test.each(["imagine", "zeichnen", "/Zeichnen"])("explains one command by either name: %s", async (name) => {
    const text = await help("de", "help", { command: name });
    expect(text).toContain("**/zeichnen**: Zeichne ein Bild");
    expect(text).toContain("`/zeichnen <text> [bild:…] [modell:…]");
    expect(text).toContain("- `text` (Text, erforderlich)");
    expect(text).toMatch(/- `\/zeichnen a red fox \S+:1024x1024 anzahl:2`/);
  });

  test("names what is wrong with an option as the person sees it", async () => {
    const text = await help("de", "summarize", { since: "someday" });
    expect(text).toContain("/zusammenfassen");
    expect(text).not.toContain("since");
    expect(text).not.toContain("/summarize");
  });
});
