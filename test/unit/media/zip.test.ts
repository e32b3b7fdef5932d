import { buffer } from "node:stream/consumers";
import { unzipSync } from "fflate";
import { expect, test } from "vitest";
import { holdUpOf } from "../../support/longest-turn.ts";
import { toZip, type PackedFile } from "../../../src/media/zip.ts";

const fileOf = (name: string, mediaType: string, ...pieces: readonly Uint8Array[]): PackedFile => ({
  name,
  mediaType,
  async *read() {
    yield* pieces;
  },
});

test("a zip holds every file with its name, and leaves out one without bytes", async () => {
  const text = Buffer.from("words ".repeat(50_000));
  const picture = Buffer.from(Uint8Array.from({ length: 200_000 }, (_, index) => (index * 7919) % 251));
  const files = [
    fileOf("conversation.md", "text/markdown", text.subarray(0, 10), text.subarray(10)),
    fileOf("gone.png", "image/png"),
    fileOf("image-ünï.png", "image/png", picture),
  ];
  const zip = await buffer(toZip(files));
  const unpacked = unzipSync(zip);
  expect(Object.keys(unpacked)).toEqual(["conversation.md", "image-ünï.png"]);
  expect(Buffer.compare(Buffer.from(unpacked["conversation.md"] ?? []), text)).toBe(0);
  expect(Buffer.compare(Buffer.from(unpacked["image-ünï.png"] ?? []), picture)).toBe(0);
  // Text is compressed.
  expect(zip.byteLength).toBeLessThan(picture.byteLength + text.byteLength / 10);
});

test("a file that cannot be read fails the archive", async () => {
  const broken: PackedFile = {
    name: "a",
    mediaType: "image/png",
    async *read() {
      yield Buffer.from("begin");
      throw new Error("the disk is gone");
    },
  };
  await expect(buffer(toZip([broken]))).rejects.toThrow("the disk is gone");
});

test("a large file leaves the event loop to others", async () => {
  const bytes = Buffer.from("All work and no play. ".repeat(800_000));
  const pack = () => buffer(toZip([fileOf("big.json", "application/json", bytes)]));
  expect((await pack()).byteLength).toBeLessThan(bytes.byteLength / 50);
  expect(await holdUpOf(pack)).toBeUndefined();
});
