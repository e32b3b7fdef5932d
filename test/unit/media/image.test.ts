import { crc32, deflateSync } from "node:zlib";
import sharp, { type Sharp } from "sharp";
import { describe, expect, it } from "vitest";
import { ParleyError } from "../../../src/core/errors.ts";
import { toModelImage } from "../../../src/media/image.ts";
import { sniff } from "../../../src/media/sniff.ts";
import { fixture } from "../../fixtures/fixtures.ts";

const limits = { maxEdgePx: 2048, maxBytes: 5_000_000 };

const codeOf = async (work: Promise<unknown>) => {
  try {
    await work;
  } catch (error) {
    if (error instanceof ParleyError) return error.code;
    throw error;
  }
  return "no error";
};

const plain = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: "#336699" } });

/** Makes noise, which no encoder makes small. */
const noise = (width: number, height: number) =>
  sharp({
    create: {
      width,
      height,
      channels: 3,
      background: "#000000",
      noise: { type: "gaussian", mean: 128, sigma: 60 },
    },
  });

const bytesOf = async (image: Sharp) => new Uint8Array(await image.toBuffer());

describe("toModelImage", () => {
  for (const name of ["picture.png", "picture.jpg", "picture.webp", "jpeg-named.heic"]) {
    it(`keeps ${name} unchanged`, async () => {
      const bytes = await fixture(name);
      const image = await toModelImage(bytes, limits, "ada");
      expect(image).toMatchObject({ changed: false, widthPx: 320, heightPx: 240 });
      expect(image.mediaType).toBe((sniff(bytes) as { mediaType: string }).mediaType);
      expect(Buffer.compare(image.bytes, bytes)).toBe(0);
    });
  }

  it("keeps a still GIF unchanged", async () => {
    const still = await bytesOf(sharp(await fixture("picture.png")).gif());
    expect(await toModelImage(still, limits, "ada")).toMatchObject({
      changed: false,
      mediaType: "image/gif",
    });
  });

  it("scales down to the longest edge and keeps the aspect ratio", async () => {
    const image = await toModelImage(
      await bytesOf(plain(1200, 600).jpeg()),
      { ...limits, maxEdgePx: 300 },
      "ada",
    );
    expect(image).toMatchObject({ changed: true, widthPx: 300, heightPx: 150, mediaType: "image/jpeg" });
    expect(await sharp(image.bytes).metadata()).toMatchObject({ format: "jpeg", width: 300, height: 150 });
  });

  it("keeps transparency as PNG", async () => {
    const clear = sharp({ create: { width: 400, height: 10, channels: 4, background: "#ff000080" } });
    const image = await toModelImage(await bytesOf(clear.webp()), { ...limits, maxEdgePx: 100 }, "ada");
    expect(image.mediaType).toBe("image/png");
    expect((await sharp(image.bytes).metadata()).hasAlpha).toBe(true);
  });

  it("keeps only the first frame of an animation, with a notice", async () => {
    const image = await toModelImage(await fixture("animated.gif"), limits, "ada");
    expect(image).toMatchObject({ changed: true, widthPx: 96, heightPx: 72, mediaType: "image/png" });
    expect(image.notice).toBe("Only the first frame of the picture is read (it has 4).");
    expect((await sharp(image.bytes).metadata()).pages ?? 1).toBe(1);
  });

  it("keeps only the first frame of an animated WebP", async () => {
    const webp = await bytesOf(sharp(await fixture("animated.gif"), { animated: true }).webp());
    expect((await toModelImage(webp, limits, "ada")).notice).toContain("first frame");
  });

  for (const format of ["avif", "tiff"] as const) {
    it(`converts ${format} for models`, async () => {
      const image = await toModelImage(
        await bytesOf(sharp(await fixture("picture.png")).toFormat(format)),
        limits,
        "ada",
      );
      expect(image).toMatchObject({ changed: true, mediaType: "image/jpeg", widthPx: 320, heightPx: 240 });
      expect(sniff(image.bytes)).toMatchObject({ mediaType: "image/jpeg" });
    });
  }

  it("rotates a picture upright and removes its orientation tag", async () => {
    const lying = await bytesOf(plain(40, 20).jpeg().withMetadata({ orientation: 6 }));
    const image = await toModelImage(lying, limits, "ada");
    expect(image).toMatchObject({ changed: true, widthPx: 20, heightPx: 40 });
    expect((await sharp(image.bytes).metadata()).orientation).toBeUndefined();
  });

  it("leaves out what a picture says of its place and its camera", async () => {
    const place = { IFD3: { GPSLatitudeRef: "N", GPSLatitude: "52/1 31/1 0/1" } };
    for (const picture of [plain(40, 20).jpeg(), plain(40, 20).webp(), plain(40, 20).png()]) {
      const tagged = await bytesOf(picture.withExif(place));
      expect((await sharp(tagged).metadata()).exif).toBeDefined();
      const image = await toModelImage(tagged, limits, "ada");
      expect(image.changed).toBe(true);
      expect((await sharp(image.bytes).metadata()).exif).toBeUndefined();
    }
  });

  it("leaves out its XMP", async () => {
    const xmp = '<x:xmpmeta xmlns:x="adobe:ns:meta/"><a exif:GPSLatitude="52,31N"/></x:xmpmeta>';
    const tagged = await bytesOf(plain(40, 20).jpeg().withXmp(xmp));
    expect((await toModelImage(tagged, limits, "ada")).changed).toBe(true);
  });

  it("lowers quality, then size, until the bytes fit", async () => {
    const image = await toModelImage(
      await bytesOf(noise(600, 600).png()),
      { ...limits, maxBytes: 20_000 },
      "ada",
    );
    expect(image.bytes.length).toBeLessThanOrEqual(20_000);
    expect(image.mediaType).toBe("image/jpeg");
    expect(image.widthPx).toBeLessThan(600);
  });

  it("rejects what stays too large", async () => {
    const work = toModelImage(await bytesOf(noise(300, 300).png()), { ...limits, maxBytes: 500 }, "ada");
    expect(await codeOf(work)).toBe("attachment-too-large");
  });

  it("rejects a decompression bomb by its header", async () => {
    const before = process.memoryUsage().rss;
    expect(await codeOf(toModelImage(pngBomb(20_000, 20_000), limits, "ada"))).toBe("attachment-too-large");
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000);
  });

  it("rejects broken, truncated and other files", async () => {
    const png = await fixture("picture.png");
    const jpeg = await fixture("picture.jpg");
    const files = {
      "cut png": png.subarray(0, png.length / 2),
      "cut jpeg": jpeg.subarray(0, jpeg.length / 2),
      "png signature only": png.subarray(0, 8),
      "garbled png": png.map((byte, index) => (index > 100 && index < 400 ? byte ^ 0x5a : byte)),
      "a sound": await fixture("voice.ogg"),
      nothing: await fixture("empty.bin"),
      svg: new Uint8Array(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')),
    };
    for (const [name, bytes] of Object.entries(files)) {
      expect(await codeOf(toModelImage(bytes, limits, "ada")), name).toBe("attachment-unreadable");
    }
  });

  it("continues after a failed picture", async () => {
    const good = await fixture("picture.png");
    const [first, second] = await Promise.allSettled([
      toModelImage(good.subarray(0, 50), limits, "ada"),
      toModelImage(good, limits, "ada"),
    ]);
    expect([first?.status, second?.status]).toEqual(["rejected", "fulfilled"]);
  });
});

/** Makes a PNG whose header claims far more pixels than its few bytes hold. */
function pngBomb(width: number, height: number): Uint8Array {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 0, 0, 0, 0], 8);
  const row = Buffer.alloc(width + 1);
  const data = deflateSync(Buffer.concat(Array.from({ length: 200 }, () => row)));
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return new Uint8Array(
    Buffer.concat([signature, chunk("IHDR", header), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]),
  );
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}
