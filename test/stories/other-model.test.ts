import { expect, it } from "vitest";
import { fixture } from "../fixtures/fixtures.ts";
import type { ListedModel } from "./scripted-model.ts";
import { eachPlatform, tell } from "./tell.ts";

const listed = (id: string, input: readonly string[], output: readonly string[] = ["text"]): ListedModel => ({
  id,
  architecture: { input_modalities: input, output_modalities: output },
});
const models = [
  listed("story/chat", ["text", "image"]),
  listed("story/chat-large", ["text", "image"]),
  listed("story/blind", ["text"]),
  listed("story/draw", ["text"], ["image"]),
  listed("story/whisper", ["audio"]),
];

tell(
  eachPlatform,
  ({ begin }) => {
    it("offers the others in a form, answers in the same message, and Details names the model; after a restart too", async () => {
      const { model, person, channel, shows, restart, idle } = await begin();
      const [ada, bo] = [person("Ada"), person("Bo")];
      model.answers("By the usual one.", "By the large one.", "By the blind one.");
      const { place, answer } = await ada.asks(channel("general", [ada, bo]), "Why?");
      await bo.presses("Other model", answer);
      const refused = await shows(place, ({ onlyFor }) => onlyFor === "Bo");
      expect(refused.text).toContain("Only the person who asked, or a moderator, can do this.");
      await ada.presses("Other model", answer);
      expect(await ada.form()).toMatchObject([
        { label: "Model", isRequired: true, choices: ["story/chat-large", "story/blind"] },
      ]);
      await ada.submits({ Model: "story/chat-large" });
      const again = await shows(
        place,
        ({ text, buttons }) => text === "By the large one." && buttons.includes("Details"),
      );
      expect(again.id).toBe(answer.id);
      await ada.presses("Details", again);
      await shows(place, ({ onlyFor, text }) => onlyFor === "Ada" && text.includes("story/chat-large"));
      await idle();
      await restart();
      await ada.presses("Other model", again);
      expect((await ada.form())[0]?.choices).toEqual(["story/chat", "story/blind"]);
      await ada.submits({ Model: "story/blind" });
      await shows(place, "By the blind one.");
      await idle();
      await ada.asks(place, "And?");
      const used = model.asked().map((request) => request.model);
      expect(used).toEqual(["story/chat", "story/chat-large", "story/blind", "story/chat"]);
      expect(model.said(3)).toEqual(["Why?", "By the blind one.", "And?"]);
    });

    it("offers only models that take pictures where the question shows one", async () => {
      const { person, direct } = await begin();
      const ada = person("Ada");
      const picture = { name: "picture.png", bytes: await fixture("picture.png") };
      const { answer } = await ada.asks(direct(ada), "What is this?", [picture]);
      await ada.presses("Other model", answer);
      expect((await ada.form())[0]?.choices).toEqual(["story/chat-large"]);
    });

    it("submitted twice it runs once, and the second is told why in private", async () => {
      const { model, person, channel, shows } = await begin();
      const ada = person("Ada");
      const { place, answer } = await ada.asks(channel("general", [ada]), "Why?");
      await ada.presses("Other model", answer);
      await ada.form();
      await Promise.all([1, 2].map(() => ada.submits({ Model: "story/chat-large" })));
      await shows(place, ({ onlyFor }) => onlyFor === "Ada");
      await expect.poll(() => model.chats().length).toBe(2);
    });

    it("of a private answer replaces it where only its person sees it", async () => {
      const { model, person, channel, shows } = await begin();
      const ada = person("Ada");
      const general = channel("general", [ada]);
      model.answers("secret 1", "secret 2");
      await ada.uses("ask", { prompt: "tell me", private: true }, general);
      await ada.presses(
        "Other model",
        await shows(general, ({ buttons }) => buttons.includes("Other model")),
      );
      await ada.form();
      await ada.submits({ Model: "story/blind" });
      expect((await shows(general, "secret 2")).onlyFor).toBe("Ada");
      expect(general.shown().some(({ text }) => text.includes("secret 1"))).toBe(false);
    });
  },
  { models },
);
