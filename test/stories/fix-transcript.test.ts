import { expect, it } from "vitest";
import { fixture } from "../fixtures/fixtures.ts";
import { eachPlatform, tell } from "./tell.ts";

const note = async () => ({ name: "note.m4a", bytes: await fixture("voice.m4a") });

tell(eachPlatform, ({ begin }) => {
  it("Fix transcript shows the words, takes better ones, and answers anew in the same message, after a restart too", async () => {
    const { model, person, channel, shows, idle, isKept, restart } = await begin();
    const [ada, bo] = [person("Ada"), person("Bo")];
    model.hears("the meeting moves to Tuesday");
    const { place, answer } = await ada.asks(channel("general", [ada, bo]), "listen", [await note()]);
    expect(answer.text).toContain("the meeting moves to Tuesday");
    await bo.presses("Fix transcript", answer);
    const refused = await shows(place, ({ onlyFor }) => onlyFor === "Bo");
    expect(refused.text).toBe("Only the person who asked, or a moderator, can do this.");
    await restart();
    await ada.presses("Fix transcript", answer);
    expect(await ada.form()).toMatchObject([{ label: "note.m4a", isRequired: true }]);
    await ada.submits({ "note.m4a": "the meeting moves to Thursday" });
    const again = await shows(place, ({ text }) => text.includes("Thursday") && text.includes("I heard"));
    expect(again.id).toBe(answer.id);
    expect(again.text).not.toContain("Tuesday");
    await idle();
    expect(model.said(1).join(" ")).toContain("the meeting moves to Thursday");
    expect(model.chats()).toHaveLength(2);
    expect(await isKept("moves to Tuesday")).toBe(false);
  });

  it("Fix transcript of /transcribe replaces what it shows, in the same message, after a restart too", async () => {
    const { model, person, channel, shows, idle, isKept, restart } = await begin();
    const ada = person("Ada");
    const general = channel("general", [ada]);
    model.hears("the party moves to Tuesday");
    await ada.uses("transcribe", {}, general, { file: await note() });
    const answer = await shows(general, ({ buttons }) => buttons.includes("Fix transcript"));
    expect(answer.text).toContain("the party moves to Tuesday");
    await idle();
    await restart();
    await ada.presses("Fix transcript", answer);
    await ada.form();
    await ada.submits({ "note.m4a": "the party moves to Thursday" });
    const again = await shows(general, "the party moves to Thursday");
    expect(again.id).toBe(answer.id);
    expect(again.text).not.toContain("Tuesday");
    await idle();
    expect(model.chats()).toHaveLength(0);
    expect(await isKept("party moves to Tuesday")).toBe(false);
    expect(await isKept("party moves to Thursday")).toBe(true);
  });

  it("Save transcript gives its words as text and as subtitles, and after a correction as text alone, to who presses it, after a restart too", async () => {
    const { model, person, channel, shows, idle, isKept, privately, restart } = await begin();
    const ada = person("Ada");
    const general = channel("general", [ada]);
    const segments = [
      { start: 0, end: 1.5, text: "the feast moves" },
      { start: 1.5, end: 3, text: "to Tuesday" },
    ];
    model.hears("the feast moves to Tuesday", { segments });
    await ada.uses("transcribe", {}, general, { file: await note() });
    const answer = await shows(general, ({ buttons }) => buttons.includes("Save transcript"));
    await idle();
    await restart();
    await ada.presses("Save transcript", answer);
    const files = () => privately(ada, general).flatMap((shown) => shown.files);
    await expect.poll(() => files().length).toBe(2);
    expect(files().map(({ name, bytes }) => [name, new TextDecoder().decode(bytes)])).toEqual([
      ["note-transcript.txt", "[0:00] the feast moves\n[0:01] to Tuesday\n"],
      [
        "note-transcript.srt",
        "1\n00:00:00,000 --> 00:00:01,500\nthe feast moves\n\n2\n00:00:01,500 --> 00:00:03,000\nto Tuesday\n",
      ],
    ]);
    await ada.presses("Fix transcript", answer);
    await ada.form();
    await ada.submits({ "note.m4a": "the big feast moves to Thursday" });
    await shows(general, "the big feast moves to Thursday");
    await idle();
    await ada.presses("Save transcript", answer);
    await expect.poll(() => files().length).toBe(3);
    expect(new TextDecoder().decode(files()[2]?.bytes)).toBe("the big feast moves to Thursday\n");
    expect(general.shown().flatMap((shown) => (shown.onlyFor === undefined ? shown.files : []))).toEqual([]);
    expect(await isKept("to Tuesday")).toBe(false);
  });
});
