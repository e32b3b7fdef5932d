import { expect, it } from "vitest";
import type { Surface } from "./surface.ts";
import { eachPlatform, tell } from "./tell.ts";

const ended = ["Regenerate", "Other model", "Details"];
/** A stopped answer can go on. */
const stoppedButtons = ["Regenerate", "Other model", "Continue", "Details"];

async function people({ person, channel }: Surface) {
  const [ada, bo, mia] = [person("Ada"), person("Bo"), person("Mia", { isManager: true })];
  return { ada, bo, mia, general: channel("general", [ada, bo, mia]) };
}

tell(eachPlatform, ({ begin }) => {
  it("Stop ends an answer and its request: the words stay, and it says who stopped it; bystanders are refused alone", async () => {
    const surface = await begin();
    const { model, shows, direct } = surface;
    const { ada, bo, general } = await people(surface);
    model.setStalled(true);
    await ada.uses("ask", { prompt: "Tell me everything." }, general);
    const growing = await shows(general, ({ text, buttons }) => text.includes("Half") && buttons.length > 0);
    expect(growing.buttons).toEqual(["Stop"]);
    await bo.presses("Stop", growing);
    const told = await shows(general, ({ onlyFor }) => onlyFor === "Bo");
    expect(told.text).toBe("Only the person who asked, or a moderator, can stop this.");
    await Promise.all([ada.presses("Stop", growing), ada.presses("Stop", growing)]);
    const stopped = await shows(general, ({ buttons }) => buttons.includes("Details"));
    expect(stopped).toMatchObject({ id: growing.id, smallPrint: "Stopped by Ada.", buttons: stoppedButtons });
    expect(stopped.text).toContain("Half");
    expect(await model.requestsTo("/v1/chat/completions")[0]?.leftEarly).toBe(true);
    model.setStalled(false);
    const { answer } = await ada.asks(direct(ada), "Go on.");
    // A short answer that comes at once never has a Stop button.
    expect(answer).toMatchObject({ text: "I heard: Go on.", buttons: ended });
  });

  it("a moderator may stop an answer; all that was said so far is shown, and sent with the next question", async () => {
    const surface = await begin();
    const { model, shows, idle, threadOf } = surface;
    const { ada, mia, general } = await people(surface);
    // The end of this text may begin a picture, so it is held back until that is known.
    model.setStalled(true, "Half ![of a");
    const thread = await threadOf(ada.writes(general, "Tell me everything.", { mention: true }));
    const growing = await shows(thread, ({ buttons }) => buttons.includes("Stop"));
    model.setStalled(false);
    await mia.presses("Stop", growing);
    const stopped = await shows(thread, ({ smallPrint }) => smallPrint.includes("Stopped by Mia."));
    expect(stopped.text).toContain("Half ![of a");
    await idle();
    await ada.asks(thread, "Go on.");
    expect(model.said(1)).toEqual(["Tell me everything.", "Half ![of a", "Go on."]);
  });

  it("Regenerate answers anew in the same messages: surplus ones go, and the history has the last answer", async () => {
    const surface = await begin();
    const { model, shows, settled, isKept, restart } = surface;
    const { ada, bo, general } = await people(surface);
    model.answers("A long line of words. ".repeat(420), "A short one.");
    const { place } = await ada.asks(general, "Why?");
    const before = await settled(place, 2);
    await restart();
    await bo.presses("Regenerate", before.at(-1)!);
    const told = await shows(place, ({ onlyFor }) => onlyFor === "Bo");
    expect(told.text).toContain("Only the person who asked, or a moderator");
    await ada.presses("Regenerate", before.at(-1)!);
    await shows(place, ({ text, buttons }) => text === "A short one." && buttons.length === ended.length);
    const publicly = () => place.shown().filter(({ onlyFor }) => onlyFor === undefined);
    await expect.poll(() => publicly().length).toBe(1);
    expect(publicly()).toMatchObject([{ id: before[0]!.id, buttons: ended }]);
    expect(model.said(1)).toEqual(["Why?"]);
    // The surplus messages were removed, but the answer must not count as deleted.
    model.answers("Third. ".repeat(1400));
    await ada.presses("Regenerate", publicly()[0]!);
    await expect.poll(() => publicly().length).toBeGreaterThan(1);
    await settled(place, 3);
    const words = publicly().map(({ text }) => text);
    expect(words.join(" ").match(/Third\./g)).toHaveLength(1400);
    await expect.poll(() => isKept("A short one.")).toBe(false);
    await ada.asks(place, "And?");
    expect(model.said(3).slice(0, 2)).toEqual(["Why?", "Third. ".repeat(1400)]);
  });

  it("only the last answer of a conversation can be changed", async () => {
    const surface = await begin();
    const { shows } = surface;
    const { ada, general } = await people(surface);
    const { place, answer } = await ada.asks(general, "Why?");
    await ada.asks(place, "And then?");
    await ada.presses("Regenerate", answer);
    await shows(place, "Only the last answer of a conversation can be changed.");
  });

  it("Regenerate of a private answer replaces it where only its person sees it", async () => {
    const surface = await begin();
    const { model, shows } = surface;
    const { ada, general } = await people(surface);
    model.answers("secret 1", "secret 2");
    await ada.uses("ask", { prompt: "tell me", private: true }, general);
    const first = await shows(
      general,
      ({ text, buttons }) => text.includes("secret 1") && buttons.includes("Regenerate"),
    );
    await ada.presses("Regenerate", first);
    const second = await shows(general, "secret 2");
    expect(second.onlyFor).toBe("Ada");
    expect(general.shown().some(({ text }) => text.includes("secret 1"))).toBe(false);
  });

  it("Continue joins the rest to the same answer, as often as it is cut", async () => {
    const surface = await begin();
    const { model, shows, settled, restart } = surface;
    const { ada, bo, general } = await people(surface);
    const code = `Here it is:\n\n\`\`\`js\n${"const value = compute();\n".repeat(90)}`;
    model.answers(code, "last();\n```\n\nThat is", " all.");
    model.setCut(true);
    const { place } = await ada.asks(general, "Write it.");
    const before = await settled(place);
    expect(before.at(-1)!.buttons).toEqual(["Regenerate", "Other model", "Continue", "Details"]);
    await bo.presses("Continue", before.at(-1)!);
    await shows(place, ({ onlyFor }) => onlyFor === "Bo");
    await ada.presses("Continue", before.at(-1)!);
    const cut = await shows(
      place,
      ({ text, buttons }) => text.includes("That is") && buttons.includes("Continue"),
    );
    expect(before.map(({ id }) => id)).toContain(cut.id);
    model.setCut(false);
    await restart();
    await ada.presses("Continue", cut);
    const whole = await shows(
      place,
      ({ text, buttons }) => text.includes("That is all.") && buttons.length > 0,
    );
    expect(whole.buttons).toEqual(ended);
    await ada.asks(place, "Thanks");
    expect(model.said(3).slice(0, 2)).toEqual(["Write it.", `${code}last();\n\`\`\`\n\nThat is all.`]);
  });
});
