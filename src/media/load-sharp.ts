import type { Metadata, Sharp } from "sharp";
import { ParleyError } from "../core/errors.ts";
import { createFairSemaphore } from "../support/fair-semaphore.ts";

/** Larger pictures are refused before they are decoded. */
const maxInputPixels = 50_000_000;
/** The most memory for decoding one picture. */
const maxDecodingBytes = 240_000_000;
/** Most pictures are decoded line by line, but these are in memory whole. */
const bytesPerPixel = { avif: 19, gif: 6, progressive: 7, other: 4 } as const;
/** Each colour has two bytes instead of one. */
const deepFactor = 10 / 7;

/** Loads sharp with the first picture. Its cache and threads would cost memory and gain little here. */
export async function loadSharp() {
  const { default: sharp } = await import("sharp");
  sharp.cache(false);
  sharp.concurrency(1);
  // By default every format of the library can be opened, whatever the sniffed type says.
  sharp.block({ operation: ["VipsForeignLoad"] });
  sharp.unblock({ operation: loaders.map((name) => `VipsForeignLoad${name}`) });
  return sharp;
}

/** The allowed decoders: what `sniff` calls a picture, and SVG, which only the sandbox draws. */
const loaders = ["Png", "Jpeg", "Webp", "Nsgif", "Tiff", "Heif", "Svg"];

/** The longest time that one picture may be decoded and encoded. */
const maxSeconds = 20;

/**
 * Opens a stranger's picture. A pipeline that takes longer than 20 s fails, and so does broken data.
 * @throws ParleyError `attachment-too-large` where its header says over 50 megapixels, or decoding it would
 *   take over 240 MB; the decoder's error where it has no readable header
 */
export async function openPicture(bytes: Uint8Array): Promise<Sharp> {
  const sharp = await loadSharp();
  const open = (limitInputPixels: number | false): Sharp =>
    sharp(bytes, { limitInputPixels, failOn: "error" });
  const metadata = await open(false).metadata();
  const maxPixels = maxPixelsOf(metadata);
  if (metadata.width * (metadata.pageHeight ?? metadata.height) > maxPixels)
    throw new ParleyError("attachment-too-large", "picture has too many pixels", {
      detail: { maxMegapixels: Math.floor(maxPixels / 1_000_000) },
    });
  return open(maxInputPixels).timeout({ seconds: maxSeconds });
}

function maxPixelsOf(metadata: Metadata): number {
  return Math.min(maxInputPixels, maxDecodingBytes / bytesPerPixelOf(metadata));
}

/** Returns what decoding a picture takes, in bytes. */
export function decodingBytesOf(metadata: Metadata): number {
  return metadata.width * (metadata.pageHeight ?? metadata.height) * bytesPerPixelOf(metadata);
}

function bytesPerPixelOf({ format, depth, isProgressive }: Metadata): number {
  const kind =
    format === "heif" ? "avif" : format === "gif" ? "gif" : isProgressive ? "progressive" : "other";
  const factor = depth === "uchar" || depth === "char" ? 1 : deepFactor;
  return bytesPerPixel[kind] * factor;
}

/** Pictures are decoded one at a time, since each may take 240 MB. Those who wait take turns. */
const turns = createFairSemaphore({ max: 1, maxPerKey: 1 });

/**
 * Runs a decoding task when it is its turn.
 * @param key who waits in turn, e.g. a person
 */
export async function decodeInTurn<T>(key: string, task: () => Promise<T>): Promise<T> {
  const release = await turns.acquire(key, 1);
  try {
    return await task();
  } finally {
    release();
  }
}
