import { describe, expect, it } from "vitest";
import { holdUpOf } from "../../../support/longest-turn.ts";
import { attachTranscripts } from "../../../../src/assistant/turn/transcribe-recording.ts";
import {
  moveTimes,
  toClock,
  toShownTranscript,
  toTimes,
  toTranscriptFiles,
} from "../../../../src/assistant/turn/transcript.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { WordTime } from "../../../../src/core/storage.ts";

const long = "These are words. ".repeat(200).trim();
const text = "Good morning. The meeting moves to Tuesday.\n\nBring the map.";
const times = await toTimes(text, [
  { fromSeconds: 0, toSeconds: 1.25, text: "Good morning." },
  { fromSeconds: 1.5, toSeconds: 4, text: "The meeting moves to Tuesday." },
  { fromSeconds: 5, text: "not in the text" },
  { fromSeconds: 3725.4, toSeconds: 3726, text: "Bring the map." },
]);
const filesOf = (...transcript: Parameters<typeof toTranscriptFiles>) =>
  toTranscriptFiles(...transcript).map(({ name, bytes }) => [name, Buffer.from(bytes).toString()]);

/** What the words are said to be from each time on. */
const spokenAt = (words: string, moved: readonly WordTime[]) =>
  moved.map(({ at, from }, index) => `${from} ${words.slice(at, moved[index + 1]?.at).trim()}`);

describe("a shown transcript", () => {
  it("is whole where it fits into a message", () => {
    expect(toShownTranscript({ name: "note.ogg", text: "Hello." })).toEqual({ text: "Hello." });
  });

  it("is otherwise its beginning, to the end of a word, and a text file with all of it", () => {
    const shown = toShownTranscript({ name: "stand-up 3.ogg", text: long });
    expect(shown.text.length).toBeLessThan(1600);
    expect(shown.text).toMatch(
      /(?:are|words\.|These) …\n\n\(The whole transcript is in `stand-up_3-transcript\.txt`\.\)$/,
    );
    expect(shown.file).toMatchObject({ name: "stand-up_3-transcript.txt", mediaType: "text/plain" });
    expect(Buffer.from(shown.file!.bytes).toString()).toBe(`${long}\n`);
  });

  it("says when the platform does not take the file", async () => {
    const { file } = toShownTranscript({ name: "note.ogg", text: long });
    const attach = () =>
      Promise.reject(new ParleyError("platform-forbidden", "no", { detail: { permission: "Attach Files" } }));
    expect(await attachTranscripts({ attach }, [file!], AbortSignal.timeout(1000))).toEqual([
      "`note-transcript.txt` could not be shown: Parley may not do this here: it lacks Attach Files. Ask your admin.",
    ]);
  });
});

describe("the files of a transcript", () => {
  it("are text and subtitles with their times", () => {
    expect(filesOf({ name: "note.ogg", text, times })).toEqual([
      [
        "note-transcript.txt",
        "[0:00] Good morning.\n[0:01] The meeting moves to Tuesday.\n[1:02:05] Bring the map.\n",
      ],
      [
        "note-transcript.srt",
        [
          "1\n00:00:00,000 --> 00:00:01,250\nGood morning.\n",
          "2\n00:00:01,500 --> 00:00:04,000\nThe meeting moves to Tuesday.\n",
          "3\n01:02:05,400 --> 01:02:06,000\nBring the map.\n",
        ].join("\n"),
      ],
    ]);
  });

  it("are text alone where it is not known when words end", async () => {
    expect(filesOf({ name: "note.ogg", text })).toEqual([["note-transcript.txt", `${text}\n`]]);
    const partTimes = await toTimes(text, [{ fromSeconds: 60, text }]);
    expect(filesOf({ name: "note.ogg", text, times: partTimes })).toEqual([
      ["note-transcript.txt", `[1:00] ${text.replaceAll(/\s+/g, " ")}\n`],
    ]);
  });

  it("have no lines that the words could break", () => {
    const words = "one\n\n2\n00:00:01,000 --> 00:00:02,000 two";
    const [, subtitles] = filesOf({ name: "a", text: words, times: [{ at: 4, from: 1, to: 2 }] });
    expect(subtitles![1]).toBe("1\n00:00:01,000 --> 00:00:02,000\none 2 00:00:01,000 -> 00:00:02,000 two\n");
  });

  it("name the time of a part with hours only where there are some", () => {
    expect([0, 65, 3600].map(toClock)).toEqual(["0:00", "1:05", "1:00:00"]);
  });
});

describe("times of a corrected transcript", () => {
  it.each<[string, string, string[]]>([
    [
      "stay with unchanged words",
      text,
      ["0 Good morning.", "1.5 The meeting moves to Tuesday.", "3725.4 Bring the map."],
    ],
    [
      "move with the words",
      "Good morning, Ada. The meeting moves to next Thursday. Bring the map!",
      ["0 Good morning, Ada.", "1.5 The meeting moves to next Thursday.", "3725.4 Bring the map!"],
    ],
    [
      "are those of the words that a word replaces",
      "Good morning. Our meeting moves to Tuesday. Take the map.",
      ["0 Good morning.", "1.5 Our meeting moves to Tuesday.", "3725.4 Take the map."],
    ],
    ["go with their words", "Good morning. Bring the map.", ["0 Good morning.", "3725.4 Bring the map."]],
    ["are shared where all is new", "One two three four.", ["0 One", "1.5 two three", "3725.4 four."]],
    ["are none without words", "", []],
  ])("%s", (_, after, spoken) => {
    expect(spokenAt(after, moveTimes(times, text, after))).toEqual(spoken);
  });

  it("are found in scripts without spaces", async () => {
    const before = "会議は火曜日です。地図を持ってきて。";
    const after = "会議は木曜日です。地図を持ってきて。";
    const known = await toTimes(before, [
      { fromSeconds: 0, text: "会議は火曜日です。" },
      { fromSeconds: 3, text: "地図を持ってきて。" },
    ]);
    expect(spokenAt(after, moveTimes(known, before, after))).toEqual([
      "0 会議は木曜日です。",
      "3 地図を持ってきて。",
    ]);
  });

  it("cost little for the longest words that a form takes, and none for ones that are longer", async () => {
    const [one, other] = ["a b ".repeat(750), "b c ".repeat(750)];
    const known = await toTimes(one, [
      { fromSeconds: 0, text: "a b" },
      { fromSeconds: 1, text: "a b" },
    ]);
    const startedAt = performance.now();
    expect(moveTimes(known, one, other)).toHaveLength(2);
    expect(moveTimes(known, one.repeat(10), other.repeat(10))).toHaveLength(2);
    expect(performance.now() - startedAt).toBeLessThan(500);
  });
});

it("the times of many segments, found nowhere near, hold nobody up", async () => {
  const segments = Array.from({ length: 40_000 }, (_, at) => ({
    text: `${"x".repeat(1900)}${at}`,
    fromSeconds: at,
  }));
  expect(await holdUpOf(() => toTimes("x".repeat(3_000_000), segments))).toBeUndefined();
});
