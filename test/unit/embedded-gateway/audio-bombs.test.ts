import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countMp4Samples } from "../../../src/embedded-gateway/sandbox/mp4-samples.ts";
import { fixture } from "../../fixtures/fixtures.ts";
import { flacBomb, m4aBomb } from "../../support/audio-bombs.ts";

const child = fileURLToPath(new URL("../../support/listen-child.ts", import.meta.url));
const run = promisify(execFile);
/** The limit of 500 MB, what the decoder allocates between two measurements, and the libraries. */
const maxGrowthBytes = 1_000_000_000;

describe("listening to decompression bombs, in a process of its own", () => {
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "parley-bombs-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  async function listenTo(bytes: Uint8Array): Promise<{ description: string; growthBytes: number }> {
    const file = path.join(folder, "bomb");
    await writeFile(file, bytes);
    const { stdout } = await run(process.execPath, [child, file], { timeout: 60_000 });
    return JSON.parse(stdout) as { description: string; growthBytes: number };
  }

  it("does not decode an M4A of three hours that claims ten seconds", async () => {
    const { description, growthBytes } = await listenTo(m4aBomb(465_000));
    expect(description).toContain("MPEG-4/AAC");
    expect(description).toContain("Loudness: not measured, the recording is too long for the sandbox.");
    expect(growthBytes).toBeLessThan(300_000_000);
  }, 60_000);

  it("ends the decoder of a FLAC file of 1 MB that decodes to 50 GB", async () => {
    const { description, growthBytes } = await listenTo(flacBomb(25_000));
    expect(description).toContain("not measured, it needs more memory than the sandbox gives it (500 MB)");
    expect(growthBytes).toBeLessThan(maxGrowthBytes);
  }, 60_000);

  it("measures files of the same make within the limits", async () => {
    expect((await listenTo(m4aBomb(430))).description).toContain("Silence: 0.0–10.0 s.");
    expect((await listenTo(flacBomb(5))).description).toContain("8 channels");
  }, 60_000);

  it("says that a file which ends its decoder cannot be decoded, and serves the next one", async () => {
    const broken = m4aBomb(430);
    // The sample table claims four billion samples of one byte.
    const table = broken.indexOf("stsz");
    broken.writeUInt32BE(1, table + 8);
    broken.writeUInt32BE(0xffff_ffff, table + 12);
    const { description, growthBytes } = await listenTo(broken);
    expect(description).toMatch(/not measured|cannot be decoded/);
    expect(growthBytes).toBeLessThan(maxGrowthBytes);
  }, 60_000);
});

describe("countMp4Samples", () => {
  it("counts what the tables claim, not the claimed duration", async () => {
    expect(countMp4Samples(m4aBomb(465))).toBe(465);
    expect(countMp4Samples(await fixture("voice.m4a"))).toBeGreaterThan(50);
  });

  it("refuses a file of too many boxes", () => {
    const boxes = Buffer.alloc(8 * 30_000, Buffer.from([0, 0, 0, 8, 102, 114, 101, 101]));
    expect(countMp4Samples(boxes)).toBe(Number.POSITIVE_INFINITY);
  });
});
