import { describe, expect, it } from "vitest";
import { cutLimits, cutRecording, type CutOutcome } from "../../../../src/media/recordings/cut-recording.ts";
import type { CutInput, RecordingPart } from "../../../../src/media/recordings/cut-into-parts.ts";
import { sniff } from "../../../../src/media/sniff.ts";
import { holdUpOf } from "../../../support/longest-turn.ts";
import { makeLongWav, speak, spokenFormats } from "../../../support/recordings.ts";
import { has } from "../../../support/requirements.ts";

interface Cut {
  readonly parts: readonly RecordingPart[];
  readonly outcome: CutOutcome;
}

async function cut(bytes: Uint8Array<ArrayBuffer>, limits: Partial<CutInput> = {}): Promise<Cut> {
  const file = sniff(bytes);
  if (file.kind !== "audio") throw new Error(`not audio: ${file.kind}`);
  const parts: RecordingPart[] = [];
  const outcome = await cutRecording(
    { bytes, mediaType: file.mediaType, container: file.container ?? "", ...cutLimits, ...limits },
    "ann",
    (part) => {
      parts.push(part);
      return Promise.resolve();
    },
    AbortSignal.timeout(60_000),
  );
  return { parts, outcome };
}

/** Returns the loudest sample of the tenth of a second around a cut: 0 to 1. */
function loudnessAt({ bytes }: RecordingPart, where: "start" | "end"): number {
  const samples = new Int16Array(bytes.slice(44).buffer);
  const rate = new DataView(bytes.buffer, bytes.byteOffset).getUint32(24, true);
  const some = where === "start" ? samples.subarray(0, rate / 10) : samples.subarray(-rate / 10);
  return Math.max(...some.map(Math.abs)) / 32_768;
}

const total = (parts: readonly RecordingPart[]) => parts.reduce((sum, { seconds }) => sum + seconds, 0);

describe("cutRecording", () => {
  it("leaves a short recording whole, and says how long it is", async () => {
    const { parts, outcome } = await cut(makeLongWav(30));
    expect(outcome).toEqual({ kind: "whole", seconds: 30 });
    expect(parts).toEqual([]);
  });

  it("cuts a long recording into equal parts where it is quiet, none over the limit", async () => {
    const { parts, outcome } = await cut(makeLongWav(1300));
    expect(outcome).toEqual({ kind: "cut" });
    expect(parts.map(({ number, count }) => `${number} of ${count}`)).toEqual(["1 of 3", "2 of 3", "3 of 3"]);
    expect(total(parts)).toBeCloseTo(1300, 1);
    for (const part of parts) {
      expect(part.seconds).toBeLessThanOrEqual(600);
      expect(part.bytes.length).toBeLessThan(25_000_000);
      expect(sniff(part.bytes)).toMatchObject({ kind: "audio", container: "wav" });
    }
    expect(parts.map(({ fromSeconds }) => fromSeconds % 10)).toEqual([
      0,
      expect.closeTo(9.5, 0),
      expect.closeTo(9.5, 0),
    ]);
    for (const part of parts.slice(1)) expect(loudnessAt(part, "start")).toBeLessThan(0.02);
  });

  it("never holds up the event loop, nor two parts in memory", async () => {
    const recording = makeLongWav(2400);
    const file = { bytes: recording, mediaType: "audio/wav", container: "wav" };
    let most = 0;
    const problem = await holdUpOf(async () => {
      const before = process.memoryUsage.rss();
      await cutRecording(
        { ...file, ...cutLimits },
        "ann",
        () => {
          most = Math.max(most, process.memoryUsage.rss() - before);
          return Promise.resolve();
        },
        AbortSignal.timeout(60_000),
      );
    });
    expect(problem).toBeUndefined();
    expect(most).toBeLessThan(250_000_000);
  });

  it("leaves out what comes after the longest time", async () => {
    const { parts, outcome } = await cut(makeLongWav(60), {
      wholeSeconds: 10,
      partSeconds: 20,
      maxSeconds: 40,
    });
    expect(outcome).toMatchObject({ kind: "cut", leftOutFrom: expect.closeTo(40, 0) as number });
    expect(total(parts)).toBeCloseTo(40, 0);
  });

  it("says that a broken recording cannot be decoded", async () => {
    const wav = makeLongWav(3);
    wav.fill(255, 20, 44);
    expect((await cut(wav, { wholeSeconds: 1 })).outcome).toEqual({ kind: "undecodable" });
  });

  it("throws what the handler of a part throws", async () => {
    const input = { bytes: makeLongWav(60), mediaType: "audio/wav", container: "wav", ...cutLimits };
    const cutting = cutRecording(
      { ...input, wholeSeconds: 10, partSeconds: 20 },
      "ann",
      () => Promise.reject(new Error("no budget")),
      AbortSignal.timeout(60_000),
    );
    await expect(cutting).rejects.toThrow("no budget");
  });

  describe.runIf(has("espeak") && has("ffmpeg"))("formats that chat services send", () => {
    for (const format of Object.keys(spokenFormats) as (keyof typeof spokenFormats)[]) {
      it(`cuts ${format} between sentences`, async () => {
        const spoken = speak(format, 8);
        const { parts, outcome } = await cut(spoken, { wholeSeconds: 5, partSeconds: 15 });
        expect(outcome).toEqual({ kind: "cut" });
        expect(parts.length).toBeGreaterThanOrEqual(3);
        // It has eight times a sentence of some two and a half seconds, and two of silence.
        expect(total(parts)).toBeGreaterThan(30);
        expect(total(parts)).toBeLessThan(50);
        for (const part of parts.slice(0, -1)) expect(loudnessAt(part, "end")).toBeLessThan(0.02);
      });
    }
  });
});
