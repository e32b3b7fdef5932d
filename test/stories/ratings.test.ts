import { expect, it } from "vitest";
import type { Somebody } from "./surface.ts";
import { eachPlatform, everySurface, tell } from "./tell.ts";

tell(everySurface, ({ begin }) => {
  it("an answer is rated by everybody once, in their language; the last rating counts", async () => {
    const { person, channel, privately } = await begin();
    const ada = person("Ada");
    const bo = person("Bo", { locale: "de" });
    const { place, answer } = await ada.asks(channel("general", [ada, bo]), "Why?");
    expect(answer.canBeRated).toBe(true);
    const told = (who: Somebody) => privately(who, place).map(({ text }) => text);
    await ada.rates("good", answer);
    await expect.poll(() => told(ada)).toEqual(["Thank you. Your rating is stored with the answer."]);
    await ada.rates("bad", answer);
    await expect.poll(() => told(ada)).toHaveLength(2);
    await bo.rates("good", answer);
    await expect.poll(() => told(bo)).toEqual(["Danke. Deine Bewertung ist mit der Antwort gespeichert."]);
    expect(place.shown().find(({ id }) => id === answer.id)).toEqual(answer);
  });

  it("another answer in the place of a rated one begins without ratings", async () => {
    const { person, direct, model, shows, privately } = await begin();
    const ada = person("Ada");
    model.answers("The first.", "The second.");
    const { place, answer } = await ada.asks(direct(ada), "Why?");
    await ada.rates("bad", answer);
    await expect.poll(() => JSON.stringify(privately(ada, place))).toContain("Thank you.");
    await ada.presses("Regenerate", answer);
    const second = await shows(place, ({ text, canBeRated }) => text === "The second." && canBeRated);
    await ada.rates("good", second);
    await expect.poll(() => JSON.stringify(privately(ada, place)).split("Thank you.").length).toBe(3);
  });

  it("a rating of an answer that is erased is refused in words", async () => {
    const { person, direct, gone, idle, shows } = await begin();
    const ada = person("Ada");
    const { place, answer } = await ada.asks(direct(ada), "Why is that so?");
    await ada.uses("forget", { where: "everywhere", confirm: true }, direct(ada));
    await gone("Why is that so?");
    await idle();
    await ada.rates("good", answer);
    await shows(place, "This answer is no longer stored.");
  });
});

tell(eachPlatform, ({ start }) => {
  it("ratings are forgotten with the person", async () => {
    let root: Somebody | undefined;
    const surface = await start({
      settings: ({ person, userTerm }) => {
        root = person("Root");
        return { ADMINS: userTerm(root) };
      },
    });
    const { person, channel, privately, settled, shows, idle, direct } = surface;
    const [ada, bo, admin] = [person("Ada"), person("Bo"), root!];
    const general = channel("general", [ada, bo, admin]);
    const { place, answer } = await ada.asks(general, "Why?");
    await ada.uses("ask", { prompt: "And by a command?" }, general);
    const before = await shows(general, ({ canBeRated }) => canBeRated);
    await ada.rates("good", answer);
    await bo.rates("good", answer);
    await bo.rates("bad", answer);
    await bo.rates("good", before);
    await expect.poll(() => privately(bo, place)).toHaveLength(general.id === place.id ? 3 : 2);
    await expect.poll(() => privately(bo, general).length).toBeGreaterThan(0);

    // Bo has written nothing.
    await bo.uses("forget", { where: "everywhere" }, direct(bo));
    const asked = await shows(direct(bo), ({ buttons }) => buttons.includes("Remove"));
    expect(asked.text).toContain("0 messages and 2 ratings");
    await bo.presses("Remove", asked);
    await shows(direct(bo), "Removed in all your conversations on this platform: 0 messages and 2 ratings.");
    await idle();
    await settled(place);
  });
});
