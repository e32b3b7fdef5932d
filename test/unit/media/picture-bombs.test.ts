import { crc32, deflateSync } from "node:zlib";
import sharp from "sharp";
import { describe, expect, it } from "vitest";
import type { ParleyError } from "../../../src/core/errors.ts";
import { toModelImage, openPicture } from "../../../src/media/image.ts";
import { sniff } from "../../../src/media/sniff.ts";
import { fixture } from "../../fixtures/fixtures.ts";

const limits = { maxEdgePx: 2048, maxBytes: 5_000_000 };

function chunk(type: string, content: Uint8Array): Buffer {
  const named = Buffer.concat([Buffer.from(type), content]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

function png(width: number, height: number, extra: readonly Buffer[] = []): Buffer {
  const header = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0]);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  const data = deflateSync(Buffer.alloc(1_000_000));
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk("IHDR", header),
    ...extra,
    chunk("IDAT", data),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** Makes a lossless WebP header of 16,384 pixels a side, the most it can name. */
function webp(): Buffer {
  const bits = Buffer.from([0x2f, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0, 0]);
  const size = Buffer.alloc(4);
  size.writeUInt32LE(bits.length);
  const body = Buffer.concat([Buffer.from("WEBPVP8L"), size, bits]);
  const outer = Buffer.alloc(4);
  outer.writeUInt32LE(body.length);
  return Buffer.concat([Buffer.from("RIFF"), outer, body]);
}

/** Makes a GIF of many frames of one pixel on a canvas. */
function gif(width: number, height: number, frames: number): Buffer {
  const screen = Buffer.from([0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 255, 255, 255]);
  screen.writeUInt16LE(width, 0);
  screen.writeUInt16LE(height, 2);
  const frame = Buffer.from([
    0x21, 0xf9, 4, 0, 1, 0, 0, 0, 0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0,
  ]);
  return Buffer.concat([
    Buffer.from("GIF89a"),
    screen,
    ...Array.from({ length: frames }, () => frame),
    Buffer.from([0x3b]),
  ]);
}

const bombs: Readonly<Record<string, () => Buffer>> = {
  "a PNG of 100,000 × 100,000": () => png(100_000, 100_000),
  "a PNG of 2 billion pixels a side": () => png(0x7fff_ffff, 0x7fff_ffff),
  "a WebP of 16,384 × 16,384": webp,
  "a GIF of 65,535 × 65,535": () => gif(65_535, 65_535, 1),
  "a GIF of 65,535 × 65,535 with 5,000 frames": () => gif(65_535, 65_535, 5000),
};

// Attack: Pictures with huge headers, thousands of frames, compressed text, 49 megapixels of AVIF
// in 160 kB. What holds: bounded megapixels and memory, first frame only, 20 s, one picture at a
// time; only the decoders of known picture formats are open.
// Attack: Archives, PDF, office files, SVG, HTML, also behind long comments. What holds: refused by
// their first bytes and never opened.
describe("toModelImage, decompression bombs", () => {
  for (const [name, make] of Object.entries(bombs)) {
    it(`bounds the memory for ${name}`, async () => {
      const before = process.memoryUsage.rss();
      const image = await toModelImage(make(), limits, "ada").catch((error: unknown) => error);
      // A GIF is as large as its frames, whatever canvas its header names.
      if (image instanceof Error)
        expect(image).toMatchObject({
          code: expect.stringMatching(/^attachment-(too-large|unreadable)$/) as string,
        });
      else expect(image).toMatchObject({ widthPx: 1, heightPx: 1 });
      expect(process.memoryUsage.rss() - before).toBeLessThan(150_000_000);
    });
  }

  it.each([
    ["an AVIF of 13 megapixels in 1 kB", { width: 3600, height: 3600 }, "avif", 12],
    ["an interlaced PNG of 25 megapixels with 16 bits a colour", { width: 5000, height: 5000 }, "png16", 24],
  ] as const)(
    "refuses what takes much memory for each of its pixels: %s",
    async (_, size, format, maxMegapixels) => {
      const blank = sharp({ create: { ...size, channels: 3, background: "#8bc" } });
      const bytes = await (
        format === "avif"
          ? blank.avif({ effort: 0, quality: 10 })
          : blank.toColourspace("rgb16").png({ compressionLevel: 1, progressive: true })
      ).toBuffer();
      const before = process.memoryUsage.rss();
      const refused = await toModelImage(bytes, limits, "ada").then(
        () => "taken",
        ({ code, detail }: ParleyError) => [code, detail],
      );
      expect(refused).toEqual(["attachment-too-large", { maxMegapixels }]);
      expect(process.memoryUsage.rss() - before).toBeLessThan(50_000_000);
    },
  );

  it("gives back the memory of large pictures, in formats that take much", async () => {
    const avif = await sharp({ create: { width: 4000, height: 2950, channels: 3, background: "#8bc" } })
      .avif({ effort: 0, quality: 10 })
      .toBuffer();
    const before = process.memoryUsage.rss();
    for (let times = 0; times < 3; times += 1)
      await expect(toModelImage(avif, limits, "ada")).resolves.toMatchObject({ widthPx: 2048 });
    expect(process.memoryUsage.rss() - before).toBeLessThan(80_000_000);
  }, 60_000);

  it("says of a large picture that is cut off that it cannot be read, and goes on", async () => {
    const whole = await sharp({ create: { width: 5000, height: 4000, channels: 3, background: "#8bc" } })
      .png({ compressionLevel: 1 })
      .toBuffer();
    await expect(toModelImage(whole.subarray(0, -5000), limits, "ada")).rejects.toMatchObject({
      code: "attachment-unreadable",
      detail: { mediaType: "image/png" },
    });
    await expect(toModelImage(whole, limits, "ada")).resolves.toMatchObject({
      widthPx: 2048,
      heightPx: 1638,
    });
  }, 60_000);

  it("reads the first of 20,000 frames only", async () => {
    const before = process.memoryUsage.rss();
    const image = await toModelImage(gif(500, 500, 20_000), limits, "ada");
    expect(image.notice).toContain("it has 20000");
    expect(process.memoryUsage.rss() - before).toBeLessThan(150_000_000);
  });

  it("bounds compressed text beside the picture", async () => {
    const text = Buffer.concat([
      Buffer.from("Comment\0\0"),
      deflateSync(Buffer.alloc(300_000_000), { level: 1 }),
    ]);
    const before = process.memoryUsage.rss();
    // It may be kept, converted or refused. Only the memory counts.
    await Promise.allSettled([
      toModelImage(png(100, 100, [chunk("zTXt", text), chunk("zTXt", text)]), limits, "ada"),
    ]);
    expect(process.memoryUsage.rss() - before).toBeLessThan(200_000_000);
  }, 30_000);
});

describe("openPicture", () => {
  it("opens no format that sniffing does not call a picture", async () => {
    const raw = await sharp({ create: { width: 9, height: 9, channels: 3, background: "#fff" } })
      .png()
      .toBuffer();
    await expect((await openPicture(raw)).metadata()).resolves.toMatchObject({ format: "png" });
    const ppm = Buffer.concat([Buffer.from("P6\n1 1\n255\n"), Buffer.from([1, 2, 3])]);
    await expect(openPicture(ppm)).rejects.toThrow();
    await expect(openPicture(Buffer.from("%PDF-1.7\n"))).rejects.toThrow();
  });
});

describe("archives and documents", () => {
  const zip = Buffer.concat([
    Buffer.from([0x50, 0x4b, 3, 4]),
    Buffer.from("[Content_Types].xml word/document.xml"),
  ]);
  const files: Readonly<Record<string, Uint8Array>> = {
    "a PDF": Buffer.from("%PDF-1.7\n1 0 obj"),
    "an office file, which is a zip": zip,
    "an old office file": Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1, 0, 0]),
    "a gzip bomb": Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0]),
    "an empty zip": Buffer.from([0x50, 0x4b, 5, 6, 0, 0]),
    "an SVG": Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>'),
    "an SVG behind 70 kB of comments": Buffer.from(`<!--${"a".repeat(70_000)}--><svg/>`),
    "HTML behind 70 kB of spaces": Buffer.from(`${" ".repeat(70_000)}<!doctype html><script>`),
    "an SVG behind a document type without end": Buffer.from("<!doctype svg [".repeat(100)),
  };
  for (const [name, bytes] of Object.entries(files)) {
    const kind = /^a PDF$|^an office file/.test(name) ? "document" : /SVG|HTML/.test(name) ? "text" : "other";
    it(`takes ${name} for no picture (${kind}), unopened`, () => expect(sniff(bytes).kind).toBe(kind));
  }

  it("refuses them as pictures too", async () => {
    for (const bytes of [...Object.values(files), await fixture("video.mp4")])
      await expect(toModelImage(bytes, limits, "ada")).rejects.toMatchObject({
        code: "attachment-unreadable",
      });
  });
});
