import { expect, it } from "vitest";
import type { Shown } from "./surface.ts";
import { everySurface, tell } from "./tell.ts";

const parrots = { url: "https://pages.example/parrots", title: "Parrots <!channel> @everyone" };
const untitled = { url: "https://pages.example/a_(b)?c=d" };
const secret = { url: "https://ada:secret@pages.example/", title: "Not shown" };

/** All that can be read in messages, without the marks that Discord's Markdown needs. */
const textOf = (shown: readonly Shown[]): string =>
  shown.map(({ text, smallPrint }) => `${text}\n${smallPrint}`.replaceAll("\\", "")).join("\n");

tell(everySurface, ({ begin }) => {
  it("sources stand numbered below the answer, ping nobody and have no preview; models never read them", async () => {
    const { person, channel, model, settled } = await begin();
    const ada = person("Ada");
    model.answers("They fly.");
    model.cites(parrots, secret, { url: "javascript:alert(1)", title: "Not shown" }, untitled, parrots);
    const { place, answer } = await ada.asks(channel("birds", [ada]), "Do parrots fly?");
    const text = textOf([answer]);
    expect(text).toMatch(/They fly\.\s+(?:\*\*)?Sources(?:\*\*)?\n1\. /);
    expect(text).toMatch(
      /1\. .*Parrots <!channel> @everyone.*<https:\/\/pages\.example\/parrots>.*\(pages\.example\)/,
    );
    expect(text).toMatch(/2\. .*<https:\/\/pages\.example\/a_(?:%28b%29|\(b\))\?c=d>/);
    expect(text).not.toMatch(/3\. |secret|javascript|Not shown/);
    expect(answer).toMatchObject({ pings: false, previews: false, canBeRated: true });
    model.cites();
    await ada.asks(place, "And penguins?");
    await ada.uses("summarize", {}, place);
    await expect.poll(() => model.chats().length).toBeGreaterThan(2);
    expect(JSON.stringify(model.chats().at(-1))).toContain("They fly.");
    expect(JSON.stringify(model.chats())).not.toContain("pages.example");
    expect(textOf((await settled(place, 2)).slice(-1))).not.toContain("Sources");
  });

  it("ten sources with long addresses are all shown, in as many messages as they need", async () => {
    const { person, direct, model, settled } = await begin();
    const ada = person("Ada");
    const urls = Array.from(
      { length: 12 },
      (_, index) => `https://pages.example/${index}/${"x".repeat(1000)}`,
    );
    model.answers("word ".repeat(330));
    model.cites(...urls);
    const { place } = await ada.asks(direct(ada), "Everything, please");
    const text = textOf(await settled(place));
    for (const url of urls.slice(0, 10)) expect(text).toContain(`<${url}>`);
    for (const url of urls.slice(10)) expect(text).not.toContain(url);
    expect(text.indexOf(`<${urls[9]!}>`)).toBeGreaterThan(text.indexOf(`<${urls[8]!}>`));
    const last = place.shown().at(-1)!;
    expect(last.canBeRated).toBe(true);
    expect(place.shown().filter(({ canBeRated }) => canBeRated)).toHaveLength(1);
  });

  it("sources are in Details and in the export, and the same after a restart", async () => {
    const { person, direct, model, privately, restart, settled, shows } = await begin();
    const ada = person("Ada");
    model.answers("They fly.");
    model.cites(parrots, untitled);
    const { place, answer } = await ada.asks(direct(ada), "Do parrots fly?");
    await restart();
    await ada.presses("Details", answer);
    await shows(place, "Model: `story/chat`");
    const details = () => textOf(privately(ada, place).filter(({ id }) => id !== answer.id));
    await expect.poll(details).toMatch(/1\. .*Parrots.*<https:\/\/pages\.example\/parrots>/);
    const before = textOf([answer]);
    model.answers("They do fly.");
    model.cites(untitled);
    await ada.presses("Regenerate", answer);
    const again = await shows(place, ({ text, canBeRated }) => text.includes("They do fly.") && canBeRated);
    expect(textOf([again])).not.toBe(before);
    expect(textOf([again])).not.toContain("parrots");
    expect(textOf([again])).toMatch(/1\. .*<https:\/\/pages\.example\/a_/);
    await settled(place);
    if (place.id === direct(ada).id) await ada.uses("export", {}, place);
    else ada.writes(place, "/export", { mention: true });
    const files = () => privately(ada, place).flatMap((shown) => shown.files);
    const exported = (name: string) =>
      new TextDecoder().decode(files().find((file) => file.name === name)?.bytes);
    await expect
      .poll(() => exported("conversation.md"))
      .toContain("Sources:\n1. [pages.example/a\\_(b)?c=d](<https://pages.example/a_(b)?c=d>)");
    await expect
      .poll(() => exported("conversation.json"))
      .toContain('"url": "https://pages.example/a_(b)?c=d"');
  });
});
