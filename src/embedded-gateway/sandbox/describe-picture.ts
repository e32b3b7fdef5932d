import type { Metadata } from "sharp";
import { nameColour } from "./colours.ts";
import { loadSharp, maxInputPixels } from "./sharp.ts";

/** Edge of the copy whose pixels are counted. */
const sampleEdgePx = 64;

/**
 * Sentences on a picture that was really decoded: format, size in pixels and bytes, frames, transparency, main
 * colours with their share.
 * @throws Error of the decoder
 */
export async function describePicture(bytes: Buffer): Promise<string> {
  const sharp = await loadSharp();
  const metadata = await sharp(bytes, { limitInputPixels: maxInputPixels }).metadata();
  const { data } = await sharp(bytes, { limitInputPixels: maxInputPixels, failOn: "error" })
    .autoOrient()
    .resize(sampleEdgePx, sampleEdgePx, { fit: "fill", kernel: "nearest" })
    .toColourspace("srgb")
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  return [
    `**${metadata.format.toUpperCase()}**, ${sizeOf(metadata)} pixels, ${toSize(bytes.length)}.`,
    framesOf(metadata),
    coloursOf(data),
  ]
    .filter((sentence) => sentence !== "")
    .join(" ");
}

function sizeOf(metadata: Metadata): string {
  const isTurned = (metadata.orientation ?? 1) >= 5;
  const height = metadata.pageHeight ?? metadata.height;
  return isTurned ? `${height} × ${metadata.width}` : `${metadata.width} × ${height}`;
}

function framesOf(metadata: Metadata): string {
  const frames = metadata.pages ?? 1;
  if (frames < 2) return "";
  const durationMs = (metadata.delay ?? []).reduce((sum, delay) => sum + delay, 0);
  const length = durationMs > 0 ? `, ${(durationMs / 1000).toFixed(1)} s a round` : "";
  return `It is animated: ${frames} frames${length}; the colours are the first frame's.`;
}

function coloursOf(pixels: Buffer): string {
  const counts = new Map<string, number>();
  let clear = 0;
  for (let at = 0; at < pixels.length; at += 4) {
    if ((pixels[at + 3] ?? 0) < 128) {
      clear += 1;
      continue;
    }
    const name = nameColour(pixels[at] ?? 0, pixels[at + 1] ?? 0, pixels[at + 2] ?? 0);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const total = pixels.length / 4;
  const percent = (count: number): number => Math.round((count / total) * 100);
  const main = [...counts]
    .sort((a, b) => b[1] - a[1])
    .filter(([, count], rank) => rank === 0 || percent(count) >= 3)
    .slice(0, 4)
    .map(([name, count]) => `${name} ${percent(count)} %`);
  const transparent = clear > 0 ? ` ${percent(clear)} % of it is transparent.` : "";
  return main.length === 0 ? `It is wholly transparent.` : `Main colours: ${main.join(", ")}.${transparent}`;
}

/** Bytes for people. */
export function toSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
