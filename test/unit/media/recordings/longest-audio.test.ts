import { describe, expect, it } from "vitest";
import { transcriptionWorstCase as forPerson } from "../../../../src/assistant/access/call-estimates.ts";
import { isSparse, longestAudioSeconds } from "../../../../src/media/recordings/longest-audio.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { adtsBomb, m4aBomb, opusBomb, webmBomb } from "../../../support/audio-bombs.ts";
import { cpuMsOf } from "../../../support/cpu-time.ts";

/** Makes the beginning of a FLAC stream that does not say how long it is. */
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

// Attack: FLAC of 0.67 MB that holds 100 hours, Opus and AAC of almost empty frames, WAV of one
// sample a second. What holds: reserved by the frames that the bytes have or can hold, which must
// fit; people's are cut, paid by the part.
describe("the longest that a recording can be", () => {
  it("is what its bytes hold: silence of FLAC takes ten bytes a frame", () => {
    const silence = sized(flacHead(65_535, 8000), 670_000);
    // The frames of such a file last 100 hours.
    const person = forPerson({ model: "m", bytes: silence, fileName: "a.flac", mediaType: "audio/flac" });
    expect(person.most.audioSeconds).toBeGreaterThan(100 * hours);
    // They do inside another container too.
    const inOgg = sized(
      Buffer.concat([Buffer.from("OggS\0\0\x7fFLAC\x01\0\0\x01"), flacHead(65_535, 8000)]),
      670_000,
    );
    expect(longestAudioSeconds(inOgg, 1000)).toBeGreaterThan(100 * hours);
    const usual = sized(wavHead(8000, 16), 670_000);
    const slow = sized(wavHead(1, 8), 670_000);
    expect([silence, inOgg, slow, usual].map((bytes) => isSparse(bytes, 1000))).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });

  it("is shorter where FLAC has the blocks and rates of usual recordings", () => {
    const usual = sized(flacHead(4096, 48_000), 1_000_000);
    expect(longestAudioSeconds(usual, 1000)).toBeLessThan(3 * hours);
  });

  it("is the worst where FLAC's own description is damaged", () => {
    const damaged = sized(Buffer.from("fLaC"), 670_000);
    expect(longestAudioSeconds(damaged, 1000)).toBeGreaterThan(100 * hours);
  });

  it.each([
    [16_000, 16, 32_000],
    [1, 8, 1],
    [100, 8, 100],
  ])("is exact for PCM in WAV, whatever its rate (%i Hz)", (rate, bits, bytesPerSecond) => {
    const wav = sized(wavHead(rate, bits), 100_000);
    expect(longestAudioSeconds(wav, 1000)).toBe(100_000 / bytesPerSecond);
  });

  it("is the size at the least rate of compressed speech otherwise", () => {
    expect(longestAudioSeconds(sized(Buffer.from("ID3"), 100_000), 750)).toBeCloseTo(133.3, 1);
  });

  it.each([
    ["Ogg/Opus", opusBomb(120_000), 4 * hours],
    ["WebM/Opus", webmBomb(500), 500 * 256 * 0.12],
    ["MP4/AAC", m4aBomb(60_000), (60_000 * 1024) / 44_100],
    ["ADTS/AAC", adtsBomb(30_000), (30_000 * 4 * 1024) / 8000],
  ])("is what its frames hold, which can be almost empty: %s", (_, bytes, seconds) => {
    expect(bytes.length).toBeLessThan(560_000);
    expect(longestAudioSeconds(bytes, 1000)).toBeGreaterThan(seconds - 1);
    expect(longestAudioSeconds(bytes, 1000)).toBeLessThan(seconds * 1.01 + 1);
    expect(isSparse(bytes, 750)).toBe(true);
  });

  it("is the longest of any format where a container cannot be counted", () => {
    const ogg = opusBomb(1000);
    const [m4a, webm] = [m4aBomb(1000), webmBomb(10)];
    // These are an unknown codec, an own sample rate, a part that ends behind the file, and packed blocks.
    ogg.write("OpusHeed", ogg.indexOf("OpusHead"), "latin1");
    m4a[m4a.indexOf(Buffer.from([5, 2, 0x12, 0x10])) + 2] = 0x17;
    webm[webm.lastIndexOf(0xa3) + 1] = 0x1f;
    const packed = webmBomb(10, true);
    const notPcm = sized(wavHead(1, 16), 10_000);
    notPcm.writeUInt16LE(2, 20);
    const others = ["FORM\0\0\0\0AIFF", "caff\0\x01", ".snd"].map((start) =>
      sized(Buffer.from(start), 10_000),
    );
    for (const bytes of [ogg, m4a, webm, packed, notPcm, ...others])
      expect(longestAudioSeconds(bytes, 1000)).toBeGreaterThan(bytes.length / 2);
  });

  it.each([
    [
      "in the table of another page",
      Buffer.concat([Buffer.from("OggS"), Buffer.alloc(22), Buffer.from([255])]),
    ],
    ["behind damaged bytes", Buffer.from("OggS\0\0damaged")],
  ])("counts the pages of Ogg %s", (_, before) => {
    const bytes = Buffer.concat([before, opusBomb(10_000)]);
    expect(longestAudioSeconds(bytes, 1000)).toBeGreaterThanOrEqual(1200);
  });

  it.each(["voice.ogg", "voice.webm", "recorder.webm", "voice.m4a", "voice.mp3", "voice.wav"])(
    "does not take usual speech for sparse: %s",
    async (name) => {
      const bytes = await fixture(name);
      expect(isSparse(bytes, 1000)).toBe(false);
    },
  );

  it("reads 10 MB of what looks like the beginnings of pages, frames and tables in little time", async () => {
    for (const start of ["OggS", "ftyp", "\xff\xf1\x50"]) {
      const bytes = Buffer.alloc(10_000_000, start, "latin1");
      bytes.write("OggS", 0, "latin1");
      expect(await cpuMsOf(() => longestAudioSeconds(bytes, 1000), 1)).toBeLessThan(2000);
    }
  });
});
