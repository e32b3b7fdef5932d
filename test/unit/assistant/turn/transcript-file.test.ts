import { describe, expect, it } from "vitest";
import {
  attachTranscripts,
  toClock,
  toShownTranscript,
} from "../../../../src/assistant/turn/transcript-file.ts";
import { ParleyError } from "../../../../src/core/errors.ts";

const long = "These are words. ".repeat(200).trim();

describe("toShownTranscript", () => {
  it("shows a transcript that fits into a message whole", () => {
    expect(toShownTranscript("note.ogg", "Hello.")).toEqual({ text: "Hello." });
  });

  it("shows the beginning of a longer one, at the end of a word, and puts all of it into a text file", () => {
    const { text, file } = toShownTranscript("stand-up 3.ogg", long);
    expect(text.length).toBeLessThan(1600);
    expect(text).toMatch(
      /(?:are|words\.|These) …\n\n\(The whole transcript is in stand-up_3-transcript\.txt\.\)$/,
    );
    expect(file).toMatchObject({ name: "stand-up_3-transcript.txt", mediaType: "text/plain" });
    expect(Buffer.from(file!.bytes).toString()).toBe(`${long}\n`);
  });

  it("writes times into the file where they are known", () => {
    const timed = [
      { fromSeconds: 0, text: "Good morning." },
      { fromSeconds: 3725.4, text: "Goodbye." },
    ];
    const { file } = toShownTranscript("note.ogg", long, timed);
    expect(Buffer.from(file!.bytes).toString()).toBe("[0:00] Good morning.\n[1:02:05] Goodbye.\n");
  });
});

describe("attachTranscripts", () => {
  it("says when the platform does not take the file", async () => {
    const { file } = toShownTranscript("note.ogg", long);
    const attach = () =>
      Promise.reject(new ParleyError("platform-forbidden", "no", { detail: { permission: "Attach Files" } }));
    expect(await attachTranscripts({ attach }, [file!], AbortSignal.timeout(1000))).toEqual([
      "note-transcript.txt could not be shown: Parley may not do this here: it lacks Attach Files. Ask your admin.",
    ]);
  });
});

describe("toClock", () => {
  it("has hours only where there are some", () => {
    expect([0, 65, 3600].map(toClock)).toEqual(["0:00", "1:05", "1:00:00"]);
  });
});
