import * as fc from "fast-check";
import { zipSync } from "fflate";
import sharp from "sharp";
import { describe, expect, it } from "vitest";
import { sniff } from "../../../src/media/sniff.ts";
import { makeCompound, makeDocx, makeOpenDocument, makePptx, makeXlsx } from "../../support/documents.ts";
import { fixture } from "../../fixtures/fixtures.ts";

const files = {
  "picture.png": ["image", "image/png", "png"],
  "picture.jpg": ["image", "image/jpeg", "jpg"],
  "picture.webp": ["image", "image/webp", "webp"],
  "animated.gif": ["image", "image/gif", "gif"],
  "jpeg-named.heic": ["image", "image/jpeg", "jpg"],
  "voice.ogg": ["audio", "audio/ogg", "ogg"],
  "voice.m4a": ["audio", "audio/mp4", "m4a"],
  "voice.webm": ["audio", "audio/webm", "webm"],
  "recorder.webm": ["audio", "audio/webm", "webm"],
  "voice.mp3": ["audio", "audio/mpeg", "mp3"],
  "voice.wav": ["audio", "audio/wav", "wav"],
  "mp4-named.ogg": ["audio", "audio/mp4", "m4a"],
  "video.mp4": ["other", "video/mp4", "mp4"],
  "video.webm": ["other", "video/webm", "webm"],
  "notes.txt": ["text", "text/plain", "txt"],
} as const;

const bytesOf = (text: string, encoding: BufferEncoding = "utf8") =>
  new Uint8Array(Buffer.from(text, encoding));

const kindOf = (bytes: Uint8Array) => {
  const found = sniff(bytes);
  return found.kind === "empty" ? "empty" : `${found.kind} ${found.mediaType}`;
};

/** An MPEG 1 layer 3 frame of 417 bytes, with 128 kbit/s at 44.1 kHz. */
const mpegFrame = Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0x00]), Buffer.alloc(413)]);
/** An ADTS frame of 20 bytes. */
const adtsFrame = Buffer.concat([Buffer.from([0xff, 0xf1, 0x50, 0x80, 0x02, 0x9f, 0xfc]), Buffer.alloc(13)]);

describe("sniff", () => {
  for (const [name, [kind, mediaType, extension]] of Object.entries(files)) {
    it(`detects ${name} by its bytes`, async () => {
      expect(sniff(await fixture(name))).toMatchObject({ kind, mediaType, extension });
    });
  }

  it("detects an empty file", async () => {
    expect(sniff(await fixture("empty.bin"))).toEqual({ kind: "empty" });
  });

  it("returns the container of audio", async () => {
    expect(sniff(await fixture("mp4-named.ogg"))).toMatchObject({ container: "mp4" });
    expect(sniff(await fixture("voice.ogg"))).toMatchObject({ container: "ogg" });
  });

  it("detects AVIF and TIFF", async () => {
    const picture = sharp(await fixture("picture.png"));
    expect(kindOf(new Uint8Array(await picture.clone().avif().toBuffer()))).toBe("image image/avif");
    expect(kindOf(new Uint8Array(await picture.clone().tiff().toBuffer()))).toBe("image image/tiff");
  });

  it("detects HEIC by its brands", () => {
    const ftyp = (brands: string) => bytesOf(`\0\0\0${String.fromCharCode(8 + brands.length)}ftyp${brands}`);
    expect(kindOf(ftyp("heic\0\0\0\0mif1heic"))).toBe("image image/heic");
    expect(kindOf(ftyp("mif1\0\0\0\0mif1heic"))).toBe("image image/heic");
    expect(kindOf(ftyp("mif1\0\0\0\0avifmif1"))).toBe("image image/avif");
  });

  it("detects office documents whatever they are called, and archives that are none", () => {
    const office = "application/vnd.openxmlformats-officedocument";
    expect(kindOf(makeDocx(["x"]))).toBe(`document ${office}.wordprocessingml.document`);
    expect(kindOf(makeXlsx({ A: [["x"]] }))).toBe(`document ${office}.spreadsheetml.sheet`);
    expect(kindOf(makePptx([{ lines: ["x"] }]))).toBe(`document ${office}.presentationml.presentation`);
    const openText = makeOpenDocument("text", "<text:p>x</text:p>");
    expect(kindOf(openText)).toBe("document application/vnd.oasis.opendocument.text");
    expect(kindOf(zipSync({ "notes.txt": new Uint8Array([65]) }))).toBe("other application/zip");
  });

  it("distinguishes the older Office formats from encrypted documents of the newer ones", () => {
    expect(kindOf(makeCompound("Workbook"))).toBe("other application/vnd.ms-excel");
    expect(kindOf(makeCompound("WordDocument"))).toBe("other application/msword");
    expect(kindOf(makeCompound("EncryptedPackage"))).toBe("other application/x-encrypted-office");
  });

  it("distinguishes BMP from text that begins with the same letters", () => {
    const header = Buffer.alloc(54);
    header.write("BM");
    header.writeUInt32LE(40, 14);
    expect(kindOf(new Uint8Array(header))).toBe("image image/bmp");
    expect(kindOf(bytesOf("BMW drives to the meeting on Thursday."))).toBe("text text/plain");
  });

  it("detects FLAC, AMR, AAC and MP3 without a tag", () => {
    expect(kindOf(bytesOf("fLaC\0\0\0\x22xxxx", "latin1"))).toBe("audio audio/flac");
    expect(kindOf(bytesOf("#!AMR\n\x3c\x91", "latin1"))).toBe("audio audio/amr");
    expect(kindOf(new Uint8Array(Buffer.concat([adtsFrame, adtsFrame])))).toBe("audio audio/aac");
    expect(kindOf(new Uint8Array(Buffer.concat([mpegFrame, mpegFrame])))).toBe("audio audio/mpeg");
  });

  it("requires two frames for MP3 and AAC", () => {
    expect(kindOf(new Uint8Array(mpegFrame))).toBe("other application/octet-stream");
    expect(kindOf(new Uint8Array(adtsFrame))).toBe("other application/octet-stream");
  });

  it("finds audio after an ID3 tag with padding", () => {
    const tag = Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, 20]);
    const file = Buffer.concat([tag, Buffer.alloc(20), Buffer.alloc(100), mpegFrame, mpegFrame]);
    expect(kindOf(new Uint8Array(file))).toBe("audio audio/mpeg");
  });

  it("finds tracks in a moov box with a 64-bit size before it", async () => {
    const voice = Buffer.from(await fixture("mp4-named.ogg"));
    const ftypBytes = voice.readUInt32BE(0);
    const free = Buffer.alloc(24);
    free.writeUInt32BE(1, 0);
    free.write("free", 4);
    free.writeBigUInt64BE(24n, 8);
    const file = Buffer.concat([voice.subarray(0, ftypBytes), free, voice.subarray(ftypBytes)]);
    expect(kindOf(new Uint8Array(file))).toBe("audio audio/mp4");
  });

  it("reads UTF-8 with umlauts and UTF-16 with a mark as text", () => {
    expect(kindOf(bytesOf("Zoë\tbrings\r\n12 €"))).toBe("text text/plain");
    expect(kindOf(bytesOf("\ufeffZoë brings 12 €", "utf16le"))).toBe("text text/plain");
    expect(kindOf(bytesOf("The ftyp box of a file"))).toBe("text text/plain");
  });

  it("does not read control characters, broken UTF-8 or UTF-16 without a mark as text", () => {
    expect(kindOf(bytesOf("bell \x07"))).toBe("other application/octet-stream");
    expect(kindOf(new Uint8Array([0x61, 0xc3, 0x28]))).toBe("other application/octet-stream");
    expect(kindOf(bytesOf("plain", "utf16le"))).toBe("other application/octet-stream");
  });

  it("takes the sources of pages and drawings for text, never for pictures", () => {
    const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>';
    const page = "\n<!-- login -->\n<!doctype html><title>Sign in</title>";
    for (const source of [svg, `\ufeff<?xml version="1.0"?>${svg}`, page])
      expect(kindOf(bytesOf(source))).toBe("text text/plain");
    expect(kindOf(bytesOf(`\ufeff${svg}`, "utf16le"))).toBe("text text/plain");
  });

  it("detects PDF and ZIP", () => {
    expect(kindOf(bytesOf("%PDF-1.7\n"))).toBe("document application/pdf");
    expect(kindOf(bytesOf("PK\x03\x04\x14\0", "latin1"))).toBe("other application/zip");
  });

  it("never throws, whatever the bytes", () => {
    const starts = [
      "",
      "OggS\0\x02",
      "RIFF....WAVE",
      "\x1a\x45\xdf\xa3",
      "ID3\x03",
      "\0\0\0\x18ftypisom",
      "II*\0",
    ];
    fc.assert(
      fc.property(fc.constantFrom(...starts), fc.uint8Array({ maxLength: 400 }), (start, rest) => {
        const bytes = new Uint8Array(Buffer.concat([Buffer.from(start, "latin1"), rest]));
        expect(["image", "audio", "text", "other", "empty"]).toContain(sniff(bytes).kind);
      }),
      { numRuns: 2000 },
    );
  });

  it("never throws on a truncated file, and never detects truncated audio as image", async () => {
    for (const [name, [kind]] of Object.entries(files)) {
      const whole = await fixture(name);
      for (let length = 0; length < whole.length; length += length < 600 ? 1 : 97) {
        const found = sniff(whole.subarray(0, length)).kind;
        if (kind !== "image") expect(found, `${name} cut at ${length}`).not.toBe("image");
      }
    }
  });

  it("stays fast with millions of nested parts", () => {
    const header = Buffer.from("1a45dfa3801853806701ffffffffffffff", "hex");
    const crafted = new Uint8Array(
      Buffer.concat([header, Buffer.alloc(8_000_000, Buffer.from([0xec, 0x80]))]),
    );
    const before = process.memoryUsage().heapUsed;
    expect(kindOf(crafted)).toBe("other video/x-matroska");
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(100_000_000);
  });
});
