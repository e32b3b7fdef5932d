import { describe, expect, it } from "vitest";
import { attachTranscripts } from "../../../../src/assistant/turn/transcribe-recording.ts";
import {
  toClock,
  toShownTranscript,
  toTimes,
  toTranscriptFiles,
} from "../../../../src/assistant/turn/transcript.ts";
import { ParleyError } from "../../../../src/core/errors.ts";

const long = "These are words. ".repeat(200).trim();
const text = "Good morning. The meeting moves to Tuesday.\n\nBring the map.";
const times = await toTimes(text, [
  { fromSeconds: 0, toSeconds: 1.25, text: "Good morning." },
  { fromSeconds: 1.5, toSeconds: 4, text: "The meeting moves to Tuesday." },
  { fromSeconds: 5, text: "not in the text" },
  { fromSeconds: 3725.4, toSeconds: 3726, text: "Bring the map." },
]);
const filesOf = async (...transcript: Parameters<typeof toTranscriptFiles>) =>
  (await toTranscriptFiles(...transcript)).map(({ name, bytes }) => [name, Buffer.from(bytes).toString()]);

describe("a shown transcript", () => {
  it("is whole where it fits into a message", async () => {
    expect(await toShownTranscript({ name: "note.ogg", text: "Hello." })).toEqual({ text: "Hello." });
  });

  it("is otherwise its beginning, to the end of a word, and a text file with all of it", async () => {
    const shown = await toShownTranscript({ name: "stand-up 3.ogg", text: long });
    expect(shown.text.length).toBeLessThan(1600);
    expect(shown.text).toMatch(
      /(?:are|words\.|These) …\n\n\(The whole transcript is in `stand-up_3-transcript\.txt`\.\)$/,
    );
    expect(shown.file).toMatchObject({ name: "stand-up_3-transcript.txt", mediaType: "text/plain" });
    expect(Buffer.from(shown.file!.bytes).toString()).toBe(`${long}\n`);
  });

  it("says when the platform does not take the file", async () => {
    const { file } = await toShownTranscript({ name: "note.ogg", text: long });
    const attach = () =>
      Promise.reject(new ParleyError("platform-forbidden", "no", { detail: { permission: "Attach Files" } }));
    expect(await attachTranscripts({ attach }, [file!], AbortSignal.timeout(1000))).toEqual([
      "`note-transcript.txt` could not be shown: Parley may not do this here: it lacks Attach Files. Ask your admin.",
    ]);
  });
});

describe("the files of a transcript", () => {
  it("are text and subtitles with their times", async () => {
    expect(await filesOf({ name: "note.ogg", text, times })).toEqual([
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
    expect(await filesOf({ name: "note.ogg", text })).toEqual([["note-transcript.txt", `${text}\n`]]);
    const partTimes = await toTimes(text, [{ fromSeconds: 60, text }]);
    expect(await filesOf({ name: "note.ogg", text, times: partTimes })).toEqual([
      ["note-transcript.txt", `[1:00] ${text.replaceAll(/\s+/g, " ")}\n`],
    ]);
  });

  it("have no lines that the words could break", async () => {
    const words = "one\n\n2\n00:00:01,000 --> 00:00:02,000 two";
    const [, subtitles] = await filesOf({ name: "a", text: words, times: [{ at: 4, from: 1, to: 2 }] });
    expect(subtitles![1]).toBe("1\n00:00:01,000 --> 00:00:02,000\none 2 00:00:01,000 -> 00:00:02,000 two\n");
  });

  it("name the time of a part with hours only where there are some", () => {
    expect([0, 65, 3600].map(toClock)).toEqual(["0:00", "1:05", "1:00:00"]);
  });
});
