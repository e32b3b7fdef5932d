import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { flacBomb, m4aBomb } from "../../support/audio-bombs.ts";

const child = fileURLToPath(new URL("../../support/listen-child.ts", import.meta.url));
const run = promisify(execFile);
/** This is the limit of 500 MB, what the decoder allocates between two measurements, and the libraries. */
const maxGrowthBytes = 1_000_000_000;

// Attack: Audio that decodes to gigabytes behind a header of seconds. What holds: a process with
// limits: 30 s, 256 MB of heap, 500 MB of growth; MP4 sample tables are counted before decoding.
describe("reading decompression bombs, in a process of its own", () => {
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

  it("reads the length of an M4A of three hours that claims ten seconds from its headers", async () => {
    const { description, growthBytes } = await listenTo(m4aBomb(465_000));
    expect(description).toContain("MP4 (M4A), 10.0 s");
    expect(growthBytes).toBeLessThan(300_000_000);
  }, 60_000);

  it("does not decode a FLAC file of 1 MB that decodes to 50 GB", async () => {
    const { description, growthBytes } = await listenTo(flacBomb(25_000));
    expect(description).toContain("Recording: FLAC, ");
    expect(growthBytes).toBeLessThan(300_000_000);
  }, 60_000);

  it("survives a file whose table ends decoders", async () => {
    const broken = m4aBomb(430);
    // The sample table claims four billion samples of one byte.
    const table = broken.indexOf("stsz");
    broken.writeUInt32BE(1, table + 8);
    broken.writeUInt32BE(0xffff_ffff, table + 12);
    const { description, growthBytes } = await listenTo(broken);
    expect(description).toMatch(/Recording: MP4|cannot be decoded/);
    expect(growthBytes).toBeLessThan(maxGrowthBytes);
  }, 60_000);
});
