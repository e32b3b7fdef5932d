import { expect, it } from "vitest";
import { fixture } from "../fixtures/fixtures.ts";
import { eachPlatform, tell } from "./tell.ts";

tell(eachPlatform, ({ begin }) => {
  it("an edited question is answered anew in the same message; an older one changes only; a secret leaves the store", async () => {
    const { model, person, channel, shows, idle, isKept, gone } = await begin();
    const ada = person("Ada");
    model.answers("Good to see you.");
    const { said: first, place } = await ada.asks(channel("general", [ada]), "greetings");
    model.answers();
    const file = { name: "plans.png", bytes: await fixture("picture.png") };
    const { said: secret, answer } = await ada.asks(place, "the vault code is 7319", [file]);
    expect(await isKept("vault code is 7319")).toBe(true);
    ada.edits(secret, "the vault has a code");
    const anew = await shows(place, "I heard: the vault has a code");
    await idle();
    expect(anew.id).toBe(answer.id);
    expect(place.shown()).toHaveLength(2);
    await gone("code is 7319");

    const asked = model.chats().length;
    ada.edits(first, "good morning");
    await gone("greetings");
    await ada.asks(place, "what did I say?");
    expect(model.chats()).toHaveLength(asked + 1);
    expect(model.said(asked).join("\n")).toContain("good morning");
    expect(model.said(asked).join("\n")).not.toMatch(/code is 7319|greetings/);
  });

  it("edits stop the answer that is under way; many in a row are one request; previews are no edits", async () => {
    const { model, person, direct, shows, idle } = await begin();
    const ada = person("Ada");
    model.setStalled(true);
    const said = ada.writes(direct(ada), "see https://example.com");
    await expect.poll(() => model.chats().length).toBe(1);
    ada.edits(said, "two");
    expect(await model.requestsTo("/v1/chat/completions")[0]?.leftEarly).toBe(true);
    model.setStalled(false);
    ada.getsPreview(said);
    for (const text of ["three", "four", "five"]) ada.edits(said, text);
    await expect.poll(() => model.chats().length).toBe(2);
    ada.getsPreview(said);
    await idle();
    expect(model.said(1)).toEqual([expect.stringMatching(/^five\b/)]);
    const { place } = await ada.asks(direct(ada), "and now?");
    await shows(place, "I heard: and now?");
    expect(model.chats()).toHaveLength(3);
  });

  it("an edit that adds the mention makes a message a question", async () => {
    const { model, person, channel, idle } = await begin();
    const ada = person("Ada");
    const general = channel("general", [ada]);
    const said = ada.writes(general, "what is this?");
    ada.edits(said, "what is this?", { adds: true });
    await expect.poll(() => model.chats().length).toBe(1);
    await idle();
    expect(model.said(0)).toEqual(["what is this?"]);
    const { place, answer } = await ada.asks(general, "what else?");
    expect(place.shown()).toEqual([answer]);
  });

  it("of a question with a long answer, what is left of that goes", async () => {
    const { model, person, direct, shows, idle } = await begin();
    const ada = person("Ada");
    model.answers("A long line of words.\n\n".repeat(400), "Short.");
    const { said, place } = await ada.asks(direct(ada), "one");
    expect(place.shown().length).toBeGreaterThan(1);
    ada.edits(said, "two");
    await shows(place, "Short.");
    await idle();
    await expect.poll(() => place.shown().map(({ text }) => text)).toEqual(["Short."]);
  });
});
