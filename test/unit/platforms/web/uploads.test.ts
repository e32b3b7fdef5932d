import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createUploads, toAttachment } from "../../../../src/platforms/web/uploads.ts";

describe("uploads", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "parley-uploads-"));
  });
  afterEach(async () => {
    await rm(directory, { recursive: true, force: true });
  });

  const body = (bytes: Uint8Array) =>
    Object.assign(Readable.from([bytes]), { headers: {} }) as unknown as IncomingMessage;
  const claimed = { name: "a.txt", mediaType: "text/plain" };

  it("expire a day after their last use", async () => {
    const uploads = createUploads(directory, { maxBytes: 100, maxTotalBytes: 10_000 });
    const old = await uploads.save(body(Buffer.from("old")), claimed);
    const fresh = await uploads.save(body(Buffer.from("new")), claimed);
    const used = await uploads.save(body(Buffer.from("used")), claimed);
    await writeFile(join(directory, "0".repeat(32)), "remains of an interrupted upload");
    const long = new Date(Date.now() - 25 * 3_600_000);
    for (const file of await readdir(directory)) {
      if (!file.startsWith(fresh.id)) await utimes(join(directory, file), long, long);
    }
    const signal = AbortSignal.timeout(5000);
    await uploads.read(toAttachment(used), { maxBytes: 100, signal });
    expect(await uploads.sweep()).toBe(2);
    expect(await uploads.find(old.id)).toBeUndefined();
    expect(await uploads.find(fresh.id)).toMatchObject(claimed);
    expect(await uploads.find(used.id)).toMatchObject(claimed);
  });

  it("are refused past the total size limit", async () => {
    const uploads = createUploads(directory, { maxBytes: 1000, maxTotalBytes: 1500 });
    await uploads.save(body(new Uint8Array(1000)), claimed);
    const announced = Object.assign(body(new Uint8Array(900)), { headers: { "content-length": "900" } });
    await expect(uploads.save(announced, claimed)).rejects.toMatchObject({ code: "attachment-too-large" });
  });

  it("survive a restart", async () => {
    const first = createUploads(directory, { maxBytes: 100, maxTotalBytes: 1000 });
    const { id } = await first.save(body(Buffer.from("words")), { ...claimed, durationMs: 1200 });
    const second = createUploads(directory, { maxBytes: 100, maxTotalBytes: 1000 });
    expect(toAttachment((await second.find(id))!)).toEqual({
      id,
      ...claimed,
      sizeBytes: 5,
      durationMs: 1200,
      source: { uploadId: id },
    });
  });

  it("can be swept before there are any", async () => {
    const uploads = createUploads(join(directory, "none"), { maxBytes: 1, maxTotalBytes: 1 });
    expect(await uploads.sweep()).toBe(0);
  });
});
