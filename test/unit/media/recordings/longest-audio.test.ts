import { describe, expect, it } from "vitest";
import { transcriptionWorstCase as forPerson } from "../../../../src/assistant/access/worst-case.ts";
import { transcriptionWorstCase as forKey } from "../../../../src/embedded-gateway/worst-case.ts";
import { isSparse, longestAudioSeconds } from "../../../../src/media/recordings/longest-audio.ts";

/** The beginning of a FLAC stream that does not say how long it is. */
function flacHead(maxBlockSamples: number, rate: number): Buffer {
  const head = Buffer.alloc(42);
  head.write("fLaC", 0, "latin1");
  head.writeUIntBE(34, 5, 3);
  head.writeUInt16BE(16, 8);
  head.writeUInt16BE(maxBlockSamples, 10);
  head.writeUIntBE(rate << 4, 18, 3);
  return head;
}

function wavHead(rate: number, bits: number): Buffer {
  const head = Buffer.alloc(44);
  head.write("RIFF", 0, "latin1");
  head.write("WAVEfmt ", 8, "latin1");
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt16LE(bits, 34);
  return head;
}

const sized = (head: Buffer, bytes: number): Buffer =>
  Buffer.concat([head, Buffer.alloc(bytes - head.length)]);
const hours = 3600;

describe("the longest that a recording can be", () => {
  it("is what its bytes hold: silence of FLAC takes ten bytes a frame", () => {
    const silence = sized(flacHead(65_535, 8000), 670_000);
    // The frames of such a file last 100 hours.
    const person = forPerson({ model: "m", bytes: silence, fileName: "a.flac", mediaType: "audio/flac" });
    expect(person.most.audioSeconds).toBeGreaterThan(100 * hours);
    expect(forKey({ model: "m" }, silence.length, silence).most.audioSeconds).toBeGreaterThan(100 * hours);
    // Inside of another container too.
    const inOgg = sized(
      Buffer.concat([Buffer.from("OggS\0\0\x7fFLAC\x01\0\0\x01"), flacHead(65_535, 8000)]),
      670_000,
    );
    expect(longestAudioSeconds(inOgg.length, inOgg, 1000)).toBeGreaterThan(100 * hours);
    const usual = sized(wavHead(8000, 16), 670_000);
    const slow = sized(wavHead(1, 8), 670_000);
    expect([silence, inOgg, slow, usual].map((bytes) => isSparse(bytes.length, bytes, 1000))).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });

  it("is shorter where FLAC has the blocks and rates of usual recordings", () => {
    const usual = sized(flacHead(4096, 48_000), 1_000_000);
    expect(longestAudioSeconds(usual.length, usual, 1000)).toBeLessThan(3 * hours);
  });

  it("is the worst where FLAC's own description is damaged", () => {
    const damaged = Buffer.from("fLaC");
    expect(longestAudioSeconds(670_000, damaged, 1000)).toBeGreaterThan(100 * hours);
  });

  it.each([
    [16_000, 16, 32_000],
    [1, 8, 1],
    [100, 8, 100],
  ])("is exact for PCM in WAV, whatever its rate (%i Hz)", (rate, bits, bytesPerSecond) => {
    const wav = sized(wavHead(rate, bits), 100_000);
    expect(longestAudioSeconds(wav.length, wav, 1000)).toBe(100_000 / bytesPerSecond);
  });

  it("is the size at the least rate of compressed speech otherwise", () => {
    expect(longestAudioSeconds(100_000, undefined, 1000)).toBe(100);
    expect(longestAudioSeconds(100_000, Buffer.from("ID3"), 750)).toBeCloseTo(133.3, 1);
  });
});
