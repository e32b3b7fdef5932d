import { expect, it } from "vitest";
import { eachPlatform, tell } from "./tell.ts";

const prices = { MODEL_PRICES: '{"story/chat": {"inputPerMillionUsd": 2, "outputPerMillionUsd": 8}}' };

tell(
  eachPlatform,
  ({ begin }) => {
    it("Details of an answer are shown to whoever clicks, alone, and change nothing", async () => {
      const { person, channel, shows } = await begin();
      const [ada, bo] = [person("Ada"), person("Bo")];
      const { place, answer } = await ada.asks(channel("general", [ada, bo]), "Why?");
      await bo.presses("Details", answer);
      const told = await shows(place, ({ onlyFor }) => onlyFor === "Bo");
      expect(told.buttons).toEqual([]);
      for (const words of [
        "Model: `story/chat`",
        "10 tokens in the prompt, 5 in the answer",
        "Cost: $0.00006",
        "Context: 1 message",
      ])
        expect(told.text).toContain(words);
      expect(place.shown()[0]).toEqual(answer);
    });

    it("Details of a private answer are there after a restart", async () => {
      const { person, channel, shows, restart } = await begin();
      const ada = person("Ada");
      const general = channel("general", [ada]);
      await ada.uses("ask", { prompt: "Why?", private: true }, general);
      const answer = await shows(general, ({ buttons }) => buttons.includes("Details"));
      await restart();
      await ada.presses("Details", answer);
      expect((await shows(general, "Model: `story/chat`")).onlyFor).toBe("Ada");
    });

    it("Details of a picture say who drew it", async () => {
      const { person, channel, shows } = await begin();
      const ada = person("Ada");
      const general = channel("general", [ada]);
      await ada.uses("imagine", { prompt: "a red house" }, general);
      await ada.presses("Details", await shows(general, ({ buttons }) => buttons.includes("Details")));
      await shows(general, "Drawn by: `story/draw`");
    });

    it("Details are gone when the answer was erased", async () => {
      const { person, direct, gone, shows } = await begin();
      const ada = person("Ada");
      const { place, answer } = await ada.asks(direct(ada), "Why is that?");
      await ada.uses("forget", { where: "everywhere", confirm: true }, direct(ada));
      await gone("Why is that?");
      await ada.presses("Details", answer);
      await shows(place, "This answer is no longer stored.");
    });
  },
  { settings: prices },
);
