import { expect, it } from "vitest";
import { fixture } from "../fixtures/fixtures.ts";
import { everySurface, tell } from "./tell.ts";

tell(everySurface, ({ begin }) => {
  it("/ask is answered in the channel, for all to see, or for its caller alone", async () => {
    const { model, person, channel, shows } = await begin();
    const ada = person("Ada");
    const general = channel("general", [ada]);
    await ada.uses("ask", { prompt: "Why?" }, general);
    expect(await shows(general, "I heard: Why?")).toMatchObject({ onlyFor: undefined });
    expect(model.said(0)).toEqual(["Why?"]);
    await ada.uses("ask", { prompt: "And alone?", private: true }, general);
    expect(await shows(general, "I heard: And alone?")).toMatchObject({ onlyFor: "Ada" });
    expect(general.shown().filter(({ onlyFor }) => onlyFor === undefined)).toHaveLength(1);
  });

  it("/ask takes a picture and a model, and names a model that does not exist", async () => {
    const { model, person, channel, shows } = await begin();
    const ada = person("Ada");
    const general = channel("general", [ada]);
    const image = { name: "picture.png", bytes: await fixture("picture.png") };
    await ada.uses("ask", { prompt: "What is it?" }, general, { image });
    await shows(general, "I heard:");
    expect(JSON.stringify(model.chats()[0])).toContain("data:image/png;base64,");
    await ada.uses("ask", { prompt: "Why?", model: "story/chat-large" }, general);
    await shows(general, "I heard: Why?");
    expect(model.asked().map((request) => request.model)).toEqual(["story/chat", "story/chat-large"]);
    await ada.uses("ask", { prompt: "Why?", model: "story/chta" }, general);
    const { text } = await shows(general, "story/chta");
    expect(text).toContain("story/chat");
    expect(model.chats()).toHaveLength(2);
  });

  it("/chat opens a thread, answers there, and continues without mentions", async () => {
    const { model, person, channel, opened, shows, idle } = await begin();
    const ada = person("Ada");
    const general = channel("general", [ada]);
    await ada.uses("chat", { message: "Plan a trip to Oslo" }, general);
    const thread = await opened(general);
    await shows(thread, "I heard: Plan a trip to Oslo");
    await idle();
    ada.writes(thread, "By train");
    await shows(thread, "I heard: By train");
    expect(model.said(1)).toEqual(["Plan a trip to Oslo", "I heard: Plan a trip to Oslo", "By train"]);
  });

  it("a wrong option is explained, and nothing is requested", async () => {
    const { model, person, channel, shows } = await begin();
    const ada = person("Ada");
    const general = channel("general", [ada]);
    await ada.uses("imagine", { prompt: "a house", size: "huge" }, general);
    await shows(general, "1024x1024");
    expect(model.requestsTo("/v1/images/generations")).toEqual([]);
  });

  it("/transcribe takes a recording, a language and a hint, and shows the words", async () => {
    const { model, person, channel, shows } = await begin();
    const ada = person("Ada");
    const general = channel("general", [ada]);
    const file = { name: "note.m4a", bytes: await fixture("voice.m4a") };
    await ada.uses("transcribe", { language: "en", hint: "Parley" }, general, { file });
    await shows(general, "the words of the note");
    const form = model.requestsTo("/v1/audio/transcriptions")[0]?.body.toString("latin1");
    expect(form).toMatch(/name="language"\r\n\r\nen/);
    expect(form).toMatch(/name="prompt"\r\n\r\nParley/);
  });

  it("Transcribe on a message shows the words of its recording, and begins no conversation", async () => {
    const { model, person, channel, below, idle } = await begin();
    const [ada, bo] = [person("Ada"), person("Bo")];
    const general = channel("general", [ada, bo]);
    const note = bo.writes(general, "", {
      files: [{ name: "voice-message.ogg", bytes: await fixture("voice.ogg") }],
    });
    await ada.usesOn("Transcribe", note);
    const words = () => [...general.shown(), ...below(note).shown()].map(({ text }) => text).join("\n");
    await expect.poll(words).toContain("the words of the note");
    await idle();
    bo.writes(below(note), "thanks");
    await ada.asks(general, "done?");
    expect(model.said(0)).toEqual(["done?"]);
  });

  it("Ask about this sends the message to the model with the question", async () => {
    const { model, person, channel } = await begin();
    const [ada, bo] = [person("Ada"), person("Bo")];
    const note = bo.writes(channel("general", [ada, bo]), "E = mc²");
    await ada.usesOn("Ask about this", note);
    const [input] = await ada.form();
    await ada.submits({ [input!.label]: "Explain" });
    await expect.poll(() => model.chats().length).toBe(1);
    expect(model.said(0).join("\n")).toMatch(/E = mc²[^]*Explain|Explain[^]*E = mc²/);
  });

  it("/models lists the models for its caller alone", async () => {
    const { person, channel, shows } = await begin();
    const ada = person("Ada");
    const general = channel("general", [ada]);
    await ada.uses("models", {}, general);
    expect(await shows(general, "story/chat-large")).toMatchObject({ onlyFor: "Ada" });
  });
});
