import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { plainSealer } from "./page-server.ts";
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
  const plain = { sealer: plainSealer };
  const hourMs = 3_600_000;
  const claimed = { name: "a.txt", mediaType: "text/plain" };

  it("expire a day after their last use, or two hours after they came when they are not sent", async () => {
    let now = Date.now();
    const create = () =>
      createUploads(directory, { ...plain, maxBytes: 100, maxTotalBytes: 10_000, now: () => now });
    const before = create();
    const sentIn = { conversationId: "web:c", messageKey: "web:c:m", isCall: false };
    const old = await before.save(body(Buffer.from("old")), claimed);
    const used = await before.save(body(Buffer.from("used")), claimed);
    const unsent = await before.save(body(Buffer.from("unsent")), claimed);
    await before.assign(old, sentIn);
    await before.assign(used, sentIn);
    await writeFile(join(directory, "0".repeat(32)), "remains of an interrupted upload");
    now += 3 * hourMs;
    const fresh = await before.save(body(Buffer.from("new")), claimed);
    const uploads = create();
    expect(await uploads.sweep()).toBe(2);
    expect(await uploads.find(unsent.id)).toBeUndefined();
    expect(await readdir(directory)).not.toContain("0".repeat(32));
    now += 20 * hourMs;
    await uploads.read(toAttachment(used), { maxBytes: 100, signal: AbortSignal.timeout(5000) });
    now += 2 * hourMs;
    expect(await uploads.sweep()).toBe(2);
    expect(await uploads.find(old.id)).toBeUndefined();
    expect(await uploads.find(fresh.id)).toBeUndefined();
    expect(await uploads.find(used.id)).toMatchObject(claimed);
  });

  it("of recordings may be larger than of other files", async () => {
    const uploads = createUploads(directory, {
      ...plain,
      maxBytes: 100,
      maxRecordingBytes: 300,
      maxTotalBytes: 10_000,
    });
    const save = (bytes: number, name: string, mediaType: string) =>
      uploads.save(body(Buffer.alloc(bytes, "a")), { name, mediaType });
    await expect(save(101, "a.txt", "text/plain")).rejects.toMatchObject({ detail: { maxBytes: 100 } });
    await expect(save(301, "a.mp3", "audio/mpeg")).rejects.toMatchObject({ detail: { maxBytes: 300 } });
    expect((await save(300, "a.mp3", "audio/mpeg")).sizeBytes).toBe(300);
    // Browsers do not know the type of every recording.
    expect((await save(300, "a.opus", "application/octet-stream")).sizeBytes).toBe(300);
  });

  it("that pages load are removed half a minute after their message was stored, those of calls later", async () => {
    let now = Date.now();
    const uploads = createUploads(directory, {
      ...plain,
      maxBytes: 100,
      maxTotalBytes: 1000,
      now: () => now,
    });
    const sent = await uploads.save(body(Buffer.from("sent")), { ...claimed, mediaType: "image/png" });
    const called = await uploads.save(body(Buffer.from("called")), claimed);
    await uploads.assign(sent, { conversationId: "web:c", messageKey: "web:c:m", isCall: false });
    await uploads.assign(called, { conversationId: "web:c", messageKey: "web:c:n", isCall: true });
    const keys = new Set(["web:c:m", "web:c:n"]);
    expect(await uploads.markStored(keys)).toBe(true);
    now += 29_000;
    expect(await uploads.markStored(keys)).toBe(false);
    expect(await uploads.sweep()).toBe(0);
    now += 1000;
    expect(await uploads.sweep()).toBe(1);
    expect(await uploads.find(sent.id)).toBeUndefined();
    expect(await uploads.find(called.id)).toBeDefined();
  });

  it("are removed after the retention period although they are used", async () => {
    let now = Date.now();
    const uploads = createUploads(directory, {
      ...plain,
      maxBytes: 100,
      maxTotalBytes: 1000,
      retentionMs: 10 * hourMs,
      now: () => now,
    });
    const upload = await uploads.save(body(Buffer.from("marker")), claimed);
    await uploads.assign(upload, { conversationId: "web:c", messageKey: "web:c:m", isCall: false });
    now += 9 * hourMs;
    await uploads.read(toAttachment(upload), { maxBytes: 100, signal: AbortSignal.timeout(5000) });
    expect(await uploads.sweep()).toBe(0);
    now += 2 * hourMs;
    expect(await uploads.sweep()).toBe(1);
    expect(await readdir(directory)).toEqual([]);
  });

  it("are refused past the total size limit", async () => {
    const uploads = createUploads(directory, { ...plain, maxBytes: 1000, maxTotalBytes: 1500 });
    await uploads.save(body(new Uint8Array(1000)), claimed);
    const announced = Object.assign(body(new Uint8Array(900)), { headers: { "content-length": "900" } });
    await expect(uploads.save(announced, claimed)).rejects.toMatchObject({ code: "attachment-too-large" });
  });

  it("survive a restart", async () => {
    const first = createUploads(directory, { ...plain, maxBytes: 100, maxTotalBytes: 1000 });
    const { id } = await first.save(body(Buffer.from("words")), { ...claimed, durationMs: 1200 });
    const second = createUploads(directory, { ...plain, maxBytes: 100, maxTotalBytes: 1000 });
    expect(toAttachment((await second.find(id))!)).toEqual({
      id,
      ...claimed,
      sizeBytes: 5,
      durationMs: 1200,
      source: { uploadId: id },
    });
  });

  it("can be swept before there are any", async () => {
    const uploads = createUploads(join(directory, "none"), { ...plain, maxBytes: 1, maxTotalBytes: 1 });
    expect(await uploads.sweep()).toBe(0);
  });
});
