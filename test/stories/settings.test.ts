import { expect, it } from "vitest";
import type { Shown, Somebody, Surface } from "./surface.ts";
import { eachPlatform, tell } from "./tell.ts";

function people({ person, channel, idle }: Surface) {
  const [mia, ada] = [person("Mia", { isManager: true }), person("Ada")];
  const general = channel("general", [mia, ada]);
  /** Uses `/settings` and resolves to the private answer. */
  async function settings(who: Somebody, options: Record<string, string>, place = general): Promise<Shown> {
    const before = place.shown().length;
    await who.uses("settings", options, place);
    await expect.poll(() => place.shown().length).toBeGreaterThan(before);
    await idle();
    const answer = place.shown().at(-1)!;
    expect(answer.onlyFor).toBe(who.name);
    return answer;
  }
  return { mia, ada, general, settings };
}

tell(eachPlatform, ({ begin }) => {
  it("a manager's choice is in force for a person in the channel; a person's own and a thread's win over it", async () => {
    const surface = await begin();
    const { model } = surface;
    const { mia, ada, general, settings } = people(surface);
    const lastModel = () => model.asked().at(-1)?.model;
    const saved = await settings(mia, { name: "chat-model", value: "story/chat-large", for: "channel" });
    expect(saved.text).toContain("Saved for this channel");
    const { place: thread } = await ada.asks(general, "one");
    expect(lastModel()).toBe("story/chat-large");
    expect((await settings(ada, {})).text).toContain("`story/chat-large` (from this channel)");
    const refused = await settings(ada, { name: "chat-model", value: "story/chat", for: "channel" });
    expect(refused.text).toMatch(/Only those who manage this (server|workspace), and Parley's admins/);

    await settings(ada, { name: "chat-model", value: "story/whisper", for: "me" });
    await ada.asks(general, "two");
    expect(lastModel()).toBe("story/whisper");
    await mia.asks(general, "three");
    expect(lastModel()).toBe("story/chat-large");

    await ada.uses("settings", { name: "chat-model", value: "story/chat", for: "here" }, thread);
    const told = () => [...thread.shown(), ...surface.privately(ada, general)];
    await expect
      .poll(() => told().some(({ text }) => text.includes("Saved for this conversation")))
      .toBe(true);
    await surface.idle();
    ada.writes(thread, "four");
    await expect.poll(() => model.chats().length).toBe(4);
    expect(lastModel()).toBe("story/chat");
    await settings(ada, { name: "chat-model", value: "default", for: "me" });
    await ada.asks(general, "five");
    expect(lastModel()).toBe("story/chat-large");
  });

  it("a thread's are for those who talk there, who see who has changed what", async () => {
    const surface = await begin();
    const [ada, bo, cy] = [surface.person("Ada"), surface.person("Bo"), surface.person("Cy")];
    const general = surface.channel("general", [ada, bo, cy]);
    const { place: thread } = await ada.asks(general, "one");
    bo.writes(thread, "and one of mine", { mention: true });
    await expect.poll(() => surface.model.chats().length).toBe(2);
    await surface.idle();
    const prompt = { name: "system-prompt", value: "Rhyme.", for: "here" };
    const tells = (who: Somebody, words: string) =>
      expect
        .poll(() =>
          [...thread.shown(), ...surface.privately(who, general)].map(({ text }) => text).join("\n"),
        )
        .toContain(words);
    await cy.uses("settings", prompt, thread);
    await tells(cy, "Only those who have said something in this conversation");
    await bo.uses("settings", prompt, thread);
    await expect
      .poll(() =>
        thread
          .shown()
          .filter(({ onlyFor }) => onlyFor === undefined)
          .map(({ text }) => text),
      )
      .toContainEqual(
        expect.stringContaining("Bo has changed settings of this conversation: System prompt."),
      );
  });

  it("calm: one post, complete; in the channel itself: one conversation; every message; in a language", async () => {
    const surface = await begin();
    const { model, settled } = surface;
    const { mia, ada, general, settings } = people(surface);
    await settings(mia, { name: "calm", value: "on", for: "channel" });
    await settings(mia, { name: "answer-to", value: "all", for: "channel" });
    await settings(mia, { name: "answer-in", value: "channel", for: "channel" });
    await settings(mia, { name: "language", value: "Deutsch", for: "channel" });
    const publicly = () => general.shown().filter(({ onlyFor }) => onlyFor === undefined);
    model.answers("Guten Tag");
    ada.writes(general, "good day, everybody");
    await settled(general, 5);
    expect(publicly()).toMatchObject([{ text: "Guten Tag", edits: 0 }]);
    expect(model.system(0)).toContain("Always answer in German");
    ada.writes(general, "what did I say?");
    await settled(general, 6);
    expect(model.said(1)).toEqual(["good day, everybody", "Guten Tag", "what did I say?"]);
    expect(publicly()).toHaveLength(2);
  });

  it("who may use it: others are refused in private, and the gateway gets nothing", async () => {
    const surface = await begin();
    const { mia, ada, general, settings } = people(surface);
    await settings(mia, { name: "who-may-use", value: surface.userTerm(mia), for: "channel" });
    await ada.uses("ask", { prompt: "why?" }, general);
    const told = await surface.shows(general, ({ onlyFor }) => onlyFor === "Ada");
    expect(told.text).toContain("only some people may use Parley");
    expect(surface.model.chats()).toEqual([]);
  });

  it("as a form: a member is offered none of places, and what they save counts for them", async () => {
    const surface = await begin();
    const { model, shows } = surface;
    const { ada, general, settings } = people(surface);
    const answer = await settings(ada, {});
    expect(answer.buttons).toEqual(["For me: models", "For me: answers"]);
    await ada.presses("For me: answers", answer);
    const labels = (await ada.form()).map(({ label }) => label);
    expect(labels).toEqual(expect.arrayContaining(["Language", "Answer length"]));
    await ada.submits({ Language: "French" });
    await shows(general, "Saved for yourself.");
    await ada.asks(general, "hello");
    expect(model.system(0)).toContain("Always answer in French");
  });
});
