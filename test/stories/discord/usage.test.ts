import { afterEach, describe, expect, it } from "vitest";
import type { Person } from "../../simulators/discord/people.ts";
import { startStory, type Story } from "../../e2e/discord/discord-story.ts";

let story: Story;
afterEach(() => story.close());

const prices = { MODEL_PRICES: '{"story/chat": {"inputPerMillionUsd": 2000, "outputPerMillionUsd": 8000}}' };

describe("/usage and /help on Discord", () => {
  it("show a person their own, and an admin everybody's, as a table and as a file", async () => {
    let admin: Person | undefined;
    story = await startStory((discord) => {
      admin = discord.person("Root");
      return { ...prices, ADMINS: `discord:user:${admin.id}`, BUDGET_PERSON_DAY_USD: "5" };
    });
    const { discord } = story;
    const ada = discord.person("Ada");
    const general = discord.channel("general");
    ada.usesCommand("ask", { prompt: "Why?" }, { channel: general });
    await story.settled(general);

    ada.usesCommand("usage", {}, { channel: general });
    const [, mine] = await story.settled(general, 2);
    expect(mine).toMatchObject({ isEphemeral: true });
    expect(mine?.text).toMatch(/Calls +1 +1/);
    expect(mine?.text).toMatch(/Cost +\$0\.06 +\$0\.06/);
    expect(mine?.text).toContain("Your budget today: **$4.94** left of $5.00; it renews at 00:00 UTC.");
    expect(mine?.text).not.toContain("Everybody");

    ada.usesCommand("usage", { who: "everybody", by: "person" }, { channel: general });
    const refused = (await story.settled(general, 3)).at(-1);
    expect(refused).toMatchObject({ isEphemeral: true });
    expect(refused?.text).toContain("only admins");

    admin!.usesCommand("usage", { by: "model" }, { channel: general });
    const byModel = (await story.settled(general, 4)).at(-1);
    expect(byModel?.text).toMatch(/story\/chat +1 +15 +0 +0 +\$0\.06/);

    admin!.usesCommand("usage", { csv: true }, { channel: general });
    const shown = await story.settled(general, 5);
    const files = shown.flatMap((message) => (message.isEphemeral ? message.files : []));
    const csv = new TextDecoder().decode(files[0]?.bytes);
    expect(csv).toContain(
      `discord:${ada.id},Ada,discord:channel:${general.id},#general,story/chat,chat,1,10,5,`,
    );
    expect(shown.every(({ pings }) => pings.length === 0)).toBe(true);
  });

  it("/help fits into one private message", async () => {
    story = await startStory(() => ({ ADMINS: "discord:user:1234567890123456789" }));
    const { discord } = story;
    const general = discord.channel("general");
    discord.person("Ada").usesCommand("help", {}, { channel: general });
    const shown = await story.settled(general);
    expect(shown).toHaveLength(1);
    expect(shown.every(({ isEphemeral }) => isEphemeral)).toBe(true);
    const text = shown.map((message) => message.text).join("\n");
    expect(text).toContain("In a channel, mention me: the answer opens a thread.");
    discord.person("Ada").usesCommand("help", { command: "usage" }, { channel: general });
    const one = (await story.settled(general, 2)).at(-1);
    expect(one?.text).toContain("`/usage by:model period:last-month`");
  });
});
