import { describe, expect, it } from "vitest";
import { sniff } from "../../../src/media/sniff.ts";
import { cpuMsOf, slowdown } from "../../support/cpu-time.ts";

/** The longest time that the event loop may be held up. */
const holdUpMs = 50;
const fileBytes = 10_000_000;

function box(id: string, content: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + content.length);
  head.write(id, 4, "latin1");
  return Buffer.concat([head, content]);
}

function element(id: string, content: Buffer): Buffer {
  const size = Buffer.alloc(8);
  size.writeUIntBE(content.length, 2, 6);
  size[0] = 1;
  return Buffer.concat([Buffer.from(id, "hex"), size, content]);
}

const filled = (part: Buffer, bytes: number): Buffer => Buffer.alloc(bytes - (bytes % part.length), part);
const repeated = (part: Buffer, times: number): Buffer => filled(part, part.length * times);

const ftyp = box("ftyp", Buffer.from("isom\0\0\0\0isom"));
const empty = box("free", Buffer.alloc(0));
const webm = element("1a45dfa3", element("4282", Buffer.from("webm")));
/** A page without segments, with the flag of a first page. */
const oggPage = Buffer.from(`4f6767530002${"00".repeat(21)}`, "hex");

/** Files of millions of tiny parts, each in the place where a reader goes through them. */
const files: readonly (readonly [name: string, make: (bytes: number) => Buffer])[] = [
  ["boxes of an MP4", (bytes) => Buffer.concat([ftyp, filled(empty, bytes)])],
  [
    "boxes in many moov boxes",
    (bytes) => Buffer.concat([ftyp, repeated(box("moov", filled(empty, bytes / 64)), 64)]),
  ],
  [
    "boxes in many trak boxes",
    (bytes) => Buffer.concat([ftyp, box("moov", repeated(box("trak", filled(empty, bytes / 64)), 64))]),
  ],
  [
    "elements of a Matroska file",
    (bytes) => Buffer.concat([webm, element("18538067", filled(Buffer.from("ec80", "hex"), bytes))]),
  ],
  [
    "elements in many segments",
    (bytes) =>
      Buffer.concat([
        webm,
        repeated(element("18538067", filled(Buffer.from("ec80", "hex"), bytes / 64)), 64),
      ]),
  ],
  ["pages that begin streams of an Ogg file", (bytes) => filled(oggPage, bytes)],
  ["ID3 tags", (bytes) => filled(Buffer.from("ID3\x03\0\0\0\0\0\0", "latin1"), bytes)],
];

// Attack: A media file of millions of tiny parts, tags or streams. What holds: 20,000 parts of a
// level are looked at, 64 tags and streams.
describe("a file of millions of parts", () => {
  it.each(files)("does not hold up the event loop: %s", async (_name, make) => {
    const bytes = make(fileBytes);
    expect(bytes.length).toBeGreaterThan(fileBytes * 0.9);
    let limitMs = holdUpMs;
    let ms = await cpuMsOf(() => sniff(bytes), 3);
    for (let round = 0; ms > limitMs && round < 3; round += 1) {
      limitMs = holdUpMs * (await slowdown());
      ms = Math.min(ms, await cpuMsOf(() => sniff(bytes), 1));
    }
    expect(ms).toBeLessThanOrEqual(limitMs);
  });
});
