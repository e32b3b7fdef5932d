import { expect, it } from "vitest";
import { fixture } from "../fixtures/fixtures.ts";
import { eachPlatform, tell } from "./tell.ts";

tell(eachPlatform, ({ begin }) => {
  it("a deleted message, and a deleted first one, are not sent again and leave the store with their files", async () => {
    const { model, person, channel, isKept, gone, redelivers } = await begin();
    const ada = person("Ada");
    const general = channel("general", [ada]);
    model.answers("Noted.");
    const { said: root, place } = await ada.asks(general, "the vault code is 7319");
    const file = { name: "plans.png", bytes: await fixture("picture.png") };
    const { said: second } = await ada.asks(place, "the pin is 4471", [file]);
    await ada.asks(place, "this stays");
    expect(await isKept("vault code is 7319")).toBe(true);

    ada.deletes(second);
    for (const text of ["the pin is 4471", "plans.png"]) await gone(text);
    ada.deletes(root);
    await gone("vault code is 7319");
    await ada.asks(place, "what did I say?");
    const asked = model.said(3).join("\n");
    expect(asked).toContain("this stays");
    expect(asked).not.toMatch(/code is 7319|pin is 4471/);
    redelivers(second);
    await ada.asks(place, "still there?");
    expect(model.chats()).toHaveLength(5);
  });

  it("deletions cancel a turn that waits, and stop one that runs", async () => {
    const { model, person, direct, shows, settled, gone } = await begin();
    const ada = person("Ada");
    const { place } = await ada.asks(direct(ada), "hello");
    model.keepsWaiting("under way");
    const first = ada.writes(place, "under way");
    await expect.poll(() => model.chats().length).toBe(2);
    const waits = ada.writes(place, "waits");
    ada.writes(place, "stays");
    ada.deletes(waits);
    ada.deletes(first);
    await shows(place, "Stopped: the message was deleted.");
    await settled(place, 3);
    expect(model.said(model.chats().length - 1)).toEqual(["hello", "I heard: hello", "stays"]);
    await gone("under way");
  });

  it("a question that is deleted while it is asked again leaves the earlier answer in sight", async () => {
    const { model, person, direct, shows } = await begin();
    const ada = person("Ada");
    const { said, place, answer } = await ada.asks(direct(ada), "hello");
    model.keepsWaiting("hello");
    await ada.presses("Regenerate", answer);
    await expect.poll(() => model.chats().length).toBe(2);
    ada.deletes(said);
    const kept = await shows(place, "Stopped: the message was deleted.");
    expect(kept).toMatchObject({ id: answer.id, text: expect.stringContaining("I heard: hello") as unknown });
  });

  it("a deleted answer leaves the store too", async () => {
    const { model, person, direct, removes, isKept, gone } = await begin();
    const ada = person("Ada");
    model.answers("A word like pomegranate.", "Yes.");
    const { place, answer } = await ada.asks(direct(ada), "hello");
    expect(await isKept("pomegranate")).toBe(true);
    removes(place, answer.id);
    await gone("pomegranate");
    await ada.asks(place, "and now?");
    expect(model.said(1)).toEqual(["hello\n\nand now?"]);
  });

  it("deleting a channel deletes its conversations and no others", async () => {
    const { person, channel, direct, removesChannel, isKept, gone } = await begin();
    const ada = person("Ada");
    const secret = channel("secret", [ada]);
    for (const text of ["the first plan", "the second plan"]) await ada.asks(secret, text);
    await ada.asks(direct(ada), "between us");
    removesChannel(secret);
    for (const text of ["the first plan", "the second plan"]) await gone(text);
    expect(await isKept("between us")).toBe(true);
  });

  it("/forget asks its caller alone, and the result replaces the question", async () => {
    const { model, person, direct, shows, settled, isKept, gone } = await begin();
    const ada = person("Ada");
    const { place } = await ada.asks(direct(ada), "Ada's secret");
    await ada.asks(place, "another secret");
    const dm = direct(ada);
    await ada.uses("forget", { where: "everywhere" }, dm);
    const asked = await shows(dm, ({ buttons }) => buttons.some((label) => label.startsWith("Remove")));
    expect(asked).toMatchObject({ onlyFor: "Ada", buttons: ["Remove 4 messages"] });
    expect(await isKept("Ada's secret")).toBe(true);
    await ada.presses("Remove 4 messages", asked);
    const done = await shows(dm, "Removed in all your conversations");
    expect(done).toMatchObject({ id: asked.id, onlyFor: "Ada", buttons: [] });
    expect(done.text).toContain("4 messages (1 whole conversation)");
    await gone("Ada's secret");
    await settled(dm);
    const { place: next } = await ada.asks(dm, "what is left?");
    expect(model.said(2)).toEqual(["what is left?"]);
    expect(next.shown().length).toBeGreaterThan(0);
  });

  it("/reset written in a thread begins anew", async () => {
    const { model, person, channel, settled } = await begin();
    const ada = person("Ada");
    const { place } = await ada.asks(channel("general", [ada]), "before the reset");
    ada.writes(place, "/reset", { mention: true });
    const [, told] = await settled(place, 2);
    expect(told?.text).toContain("Started over.");
    await ada.asks(place, "anew");
    expect(model.said(1)).toEqual(["anew"]);
  });
});
