import { expect, it } from "vitest";
import { eachPlatform, tell } from "./tell.ts";

tell(eachPlatform, ({ begin }) => {
  it("Parley's words are in each person's language: private answers, refusals, buttons and answers to messages", async () => {
    const { person, channel, shows, settled } = await begin();
    const [greta, ada] = [person("Greta", { locale: "de" }), person("Ada")];
    const general = channel("general", [greta, ada]);
    await greta.uses("help", {}, general);
    const help = await shows(general, "So sprichst du mit mir");
    expect(help.onlyFor).toBe("Greta");
    expect(help.text).toContain("In einem Kanal erwähne mich");
    await greta.uses("settings", {}, general);
    await shows(general, "`calm`: `off` = Aus (Standard)");
    await ada.uses("settings", {}, general);
    await shows(general, "`calm`: `off` (default)");
    await ada.uses("usage", {}, general);
    expect((await shows(general, "No budget limits you.")).onlyFor).toBe("Ada");
    await greta.uses("ask", { prompt: "Hallo", model: "story/nothing" }, general);
    await shows(general, "Es gibt kein Modell `story/nothing`.");

    const { place, answer } = await greta.asks(general, "Hallo");
    expect(answer.buttons).toContain("Neu erzeugen");
    greta.writes(place, "/reset", { mention: true });
    const [, told] = await settled(place, 2);
    expect(told?.text).toContain("Neu begonnen.");
  });
});
