import { expect, it } from "vitest";
import { fixture } from "../fixtures/fixtures.ts";
import { everySurface, tell } from "./tell.ts";

tell(everySurface, ({ begin }) => {
  it("begins with a mention, goes on in a thread, survives a restart, and sends its earlier turns in order", async () => {
    const { model, person, channel, settled, restart } = await begin();
    const ada = person("Ada");
    const general = channel("general", [ada]);
    model.answers("Hello Ada.", "It is called Juniper.", "You are welcome.");
    const { place, answer } = await ada.asks(general, "My parrot is called Juniper.");
    expect(answer.text).toBe("Hello Ada.");
    ada.writes(place, "What is my parrot called?");
    await settled(place, 2);
    await restart();
    ada.writes(place, "Thank you.");
    const shown = await settled(place, 3);
    expect(shown.map(({ text }) => text)).toEqual([
      "Hello Ada.",
      "It is called Juniper.",
      "You are welcome.",
    ]);
    expect(model.said(2)).toEqual([
      "My parrot is called Juniper.",
      "Hello Ada.",
      "What is my parrot called?",
      "It is called Juniper.",
      "Thank you.",
    ]);
    expect(general.shown()).toEqual([]);
  });

  it("in direct messages needs no mention", async () => {
    const { model, person, direct } = await begin();
    const ada = person("Ada");
    const { place, answer } = await ada.asks(direct(ada), "Hello");
    expect(answer.text).toBe("I heard: Hello");
    await ada.asks(place, "And now?");
    expect(model.said(1)).toEqual(["Hello", "I heard: Hello", "And now?"]);
  });

  it("names the speakers when there are several", async () => {
    const { model, person, channel, settled } = await begin();
    const [ada, bo] = [person("Ada"), person("Bo")];
    const { place } = await ada.asks(channel("general", [ada, bo]), "I like tea.");
    bo.writes(place, "I like coffee.", { mention: true });
    await settled(place, 2);
    expect(model.said(1)).toEqual(["Ada: I like tea.", "I heard: I like tea.", "Bo: I like coffee."]);
  });

  it("answers messages that come at once, in order, and one that is delivered again no second time", async () => {
    const { model, person, direct, redelivers, idle, settled } = await begin();
    const ada = person("Ada");
    const { place } = await ada.asks(direct(ada), "zero");
    const first = ada.writes(place, "one");
    const second = ada.writes(place, "two");
    await settled(place, 2);
    await expect.poll(() => model.said(model.chats().length - 1).join(" ")).toContain("two");
    await idle();
    const asked = model
      .said(model.chats().length - 1)
      .filter((text) => !text.startsWith("I heard"))
      .join(" ");
    expect(asked.match(/one|two/g)).toEqual(["one", "two"]);
    const before = model.chats().length;
    for (const said of [first, second]) redelivers(said);
    await ada.asks(place, "three");
    expect(model.chats()).toHaveLength(before + 1);
  });

  it("sends a picture with the question", async () => {
    const { model, person, channel } = await begin();
    const ada = person("Ada");
    const bytes = await fixture("picture.jpg");
    await ada.asks(channel("general", [ada]), "What is this?", [{ name: "picture.jpg", bytes }]);
    const content = model.chats()[0]?.at(-1)?.content;
    expect(content).toContainEqual({ type: "text", text: expect.stringContaining("What is this?") });
    expect(content).toContainEqual({
      type: "image_url",
      image_url: { url: `data:image/jpeg;base64,${Buffer.from(bytes).toString("base64")}` },
    });
    expect(model.chats()).toHaveLength(1);
  });

  it("transcribes a voice message and shows the words", async () => {
    const { model, person, direct } = await begin();
    const ada = person("Ada");
    const bytes = await fixture("voice.ogg");
    const { answer } = await ada.asks(direct(ada), "", [{ name: "voice-message.ogg", bytes }]);
    expect(answer.text).toContain("the words of the note");
    expect(answer.text).toContain("I heard: ");
    const [upload] = model.requestsTo("/v1/audio/transcriptions");
    expect(upload?.body.includes(Buffer.from(bytes))).toBe(true);
    expect(model.said(0).join(" ")).toContain("the words of the note");
  });

  it("names a file that it cannot read", async () => {
    const { person, direct } = await begin();
    const ada = person("Ada");
    const file = { name: "clip.mp4", bytes: await fixture("video.mp4") };
    const { answer } = await ada.asks(direct(ada), "watch this", [file]);
    expect(answer.smallPrint).toContain("clip.mp4");
  });

  it("pings nobody and shows no previews, whatever the model writes", async () => {
    const { model, person, channel } = await begin();
    const [ada, bo] = [person("Ada"), person("Bo")];
    const bait = `@everyone <!here> <!channel> <@${bo.id}> https://evil.example/?leak=1`;
    model.answers(bait);
    const { answer, place } = await ada.asks(channel("general", [ada, bo]), `say hi to <@${bo.id}>`);
    expect(answer.text).toContain("@everyone <!here> <!channel>");
    expect(place.shown()).toMatchObject([{ pings: false, previews: false }]);
  });

  it("shows an answer of 9,000 characters whole, in order, code fences intact", async () => {
    const { model, person, direct, shows, settled } = await begin();
    const ada = person("Ada");
    const code = Array.from({ length: 150 }, (_, index) => `const line${index} = ${"x".repeat(20)};`);
    const words = Array.from({ length: 600 }, (_, index) => `word${index}.`);
    model.answers(`# Long\n\n${words.join(" ")}\n\n\`\`\`ts\n${code.join("\n")}\n\`\`\`\n\nThe end.`);
    const { place } = await ada.asks(direct(ada), "Tell me everything");
    await shows(place, "The end.");
    const shown = await settled(place, 2);
    for (const { text } of shown) expect((text.match(/^```/gm) ?? []).length % 2).toBe(0);
    const whole = shown.map(({ text }) => text).join("\n");
    const places = [...words, ...code.map((line) => line.trim())].map((piece) => whole.indexOf(piece));
    expect(places).not.toContain(-1);
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(shown.every(({ files }) => files.length === 0)).toBe(true);
  });

  it("says that the gateway is down, and Retry answers in the same message", async () => {
    const { model, person, direct, shows } = await begin();
    const ada = person("Ada");
    model.setGatewayUp(false);
    const { place } = await ada.asks(direct(ada), "Hello");
    const failed = await shows(place, ({ buttons }) => buttons.includes("Retry"));
    expect(failed.text).toMatch(/gateway/i);
    expect(failed.buttons).toEqual(["Retry"]);
    model.setGatewayUp(true);
    await ada.presses("Retry", failed);
    const answered = await shows(place, ({ buttons }) => buttons.includes("Details"));
    expect(answered).toMatchObject({
      id: failed.id,
      text: "I heard: Hello",
      buttons: ["Regenerate", "Other model", "Details"],
    });
    expect(place.shown()).toHaveLength(1);
  });
});
