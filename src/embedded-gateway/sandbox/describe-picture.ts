import type { Metadata } from "sharp";
import { nameColour } from "./colours.ts";
import { decodeInTurn, openPicture } from "../../media/load-sharp.ts";

/** Edge of the copy whose pixels are counted. */
const sampleEdgePx = 64;

/**
 * Describes a decoded picture: format, size in pixels and bytes, frames, main colours with their share.
 * @throws Error of the decoder
 */
export function describePicture(bytes: Buffer): Promise<string> {
  return decodeInTurn("sandbox", () => describe(bytes));
}

async function describe(bytes: Buffer): Promise<string> {
  const image = await openPicture(bytes);
  const metadata = await image.metadata();
  const pixels = await image
    .autoOrient()
    .resize(sampleEdgePx, sampleEdgePx, { fit: "fill", kernel: "nearest" })
    .toColourspace("srgb")
    .ensureAlpha()
    .raw()
    .toBuffer();
  const { width, height } = metadata.autoOrient;
  const size = `${width} × ${metadata.pageHeight ?? height} pixels, ${toSize(bytes.length)}.`;
  return `**${metadata.format.toUpperCase()}**, ${size}${describeFrames(metadata)} ${describeColours(pixels)}`;
}

function describeFrames({ pages = 1, delay = [] }: Metadata): string {
  if (pages < 2) return "";
  const seconds = delay.reduce((sum, ms) => sum + ms, 0) / 1000;
  return ` Animated: ${pages} frames in ${seconds.toFixed(1)} s; the colours are of the first.`;
}

function describeColours(pixels: Buffer): string {
  const counts = new Map<string, number>();
  for (let at = 0; at < pixels.length; at += 4) {
    const [red = 0, green = 0, blue = 0, alpha = 0] = pixels.subarray(at, at + 4);
    const name = alpha < 128 ? "transparent" : nameColour(red, green, blue);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const shares = [...counts]
    .sort((a, b) => b[1] - a[1])
    .slice(0, 4)
    .map(([name, count]) => `${name} ${Math.round((count * 400) / pixels.length)} %`);
  return `Main colours: ${shares.join(", ")}.`;
}

/** A size in bytes for people: "12.3 kB". */
export function toSize(bytes: number): string {
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
