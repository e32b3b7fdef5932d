import { expect, it } from "vitest";
import type { Somebody } from "./surface.ts";
import { eachPlatform, tell } from "./tell.ts";

const prices = {
  MODEL_PRICES: '{"story/chat": {"inputPerMillionUsd": 2000, "outputPerMillionUsd": 8000}}',
};

tell(eachPlatform, ({ start }) => {
  it("/usage shows people their own, and an admin everybody's, as a table and as a file; /help names the admin", async () => {
    let root: Somebody | undefined;
    const surface = await start({
      settings: ({ person, userTerm }) => {
        root = person("Root");
        return { ...prices, ADMINS: userTerm(root), BUDGET_PERSON_DAY_USD: "5" };
      },
    });
    const { person, channel, channelTerm, privately, shows, settled } = surface;
    const [ada, admin] = [person("Ada"), root!];
    const general = channel("general", [ada, admin]);
    const told = (who: Somebody, words: RegExp) =>
      shows(general, ({ onlyFor, text }) => onlyFor === who.name && words.test(text));
    await ada.uses("ask", { prompt: "Why?" }, general);
    await settled(general);

    await ada.uses("usage", {}, general);
    const mine = await told(ada, /Your usage/);
    expect(mine.text).toMatch(/Calls\W+1\W+1\b/);
    expect(mine.text).toMatch(/Cost\W+0\.06\W+0\.06/);
    expect(mine.text).toContain("Your budget today: **$4.94** left of $5.00; it renews at 00:00 UTC.");
    expect(mine.text).not.toContain("Everybody");
    await ada.uses("usage", { who: "everybody", by: "person" }, general);
    await told(ada, /only admins/);

    await admin.uses("usage", { by: "model" }, general);
    expect((await told(admin, /Everybody's usage/)).text).toMatch(/story\/chat\W+1\W+15\W+0\W+0\W+0\.06/);
    await admin.uses("usage", { csv: true }, general);
    const files = () => privately(admin, general).flatMap((shown) => shown.files);
    await expect.poll(() => files().length).toBe(1);
    const csv = new TextDecoder().decode(files()[0]?.bytes);
    expect(csv).toContain(`,Ada,${channelTerm(general)},#general,story/chat,chat,1,10,5,`);
    expect(general.shown().some(({ pings }) => pings)).toBe(false);

    await ada.uses("help", {}, general);
    const help = await told(ada, /How to talk to me/);
    expect(help.text).toContain("In a channel, mention me");
    await ada.uses("help", { command: "usage" }, general);
    await told(ada, /`\/usage by:model period:last-month`/);
  });
});
