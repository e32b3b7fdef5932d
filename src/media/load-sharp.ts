import { createKeyedQueue } from "../support/keyed-queue.ts";
import type { Sharp } from "sharp";

/** Larger pictures are refused before they are decoded: 50 megapixels take 200 MB of memory. */
export const maxInputPixels = 50_000_000;

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

/** Decoders that are open: what `sniff` calls a picture, and SVG, which only the sandbox's own drawings are. */
const loaders = ["Png", "Jpeg", "Webp", "Nsgif", "Tiff", "Heif", "Svg"];

/** Longest time that one picture may be decoded and encoded. */
const maxSeconds = 20;

/**
 * Opens a picture of a stranger: refuses more than 50 megapixels by its header, and broken data; a pipeline that takes
 * longer than 20 s fails.
 */
export async function openPicture(bytes: Uint8Array): Promise<Sharp> {
  const sharp = await loadSharp();
  return sharp(bytes, { limitInputPixels: maxInputPixels, failOn: "error" }).timeout({ seconds: maxSeconds });
}

/** Runs decoding tasks one after another: each may take some 200 MB. */
export function decodeInTurn<T>(task: () => Promise<T>): Promise<T> {
  return queue.run("picture", task);
}

const queue = createKeyedQueue();
