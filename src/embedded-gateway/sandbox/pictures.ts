import { createHash } from "node:crypto";
import { decodeInTurn, loadSharp, openPicture } from "../../media/image.ts";

/** A size in pixels. */
export interface Size {
  readonly widthPx: number;
  readonly heightPx: number;
}

const colours = /\b(?:red|orange|yellow|green|teal|blue|navy|purple|pink|brown|white|gr[ae]y|black)\b/i;

/** Returns the first colour that a text names, as a name of CSS. */
function colourIn(text: string): string | undefined {
  return colours.exec(text.slice(0, 2000))?.[0].toLowerCase();
}

/**
 * Draws a PNG card with the prompt's words and the sandbox label, in the colour that the prompt names or else
 * in its own.
 * @param index the position among several pictures of one prompt, which differ in the number of dots
 */
export async function drawCard(prompt: string, size: Size, index = 0): Promise<Buffer> {
  const hue = createHash("sha256").update(prompt).digest().readUInt16BE() % 360;
  const height = heightOf(size);
  const dots = Array.from(
    { length: index + 1 },
    (_, at) => `<circle cx="${500 + (at - index / 2) * 60}" cy="${height - 50}" r="20" fill="#fff"/>`,
  );
  const background = `<rect width="100%" height="100%" fill="${colourIn(prompt) ?? `hsl(${hue} 45% 45%)`}"/>`;
  const sharp = await loadSharp();
  return sharp(toSvg(size, background + dots.join("") + toLines(prompt, height / 2)))
    .png()
    .toBuffer();
}

/** Returns the height of the canvas, which is always 1000 units wide. */
function heightOf({ widthPx, heightPx }: Size): number {
  return (1000 * heightPx) / widthPx;
}

/** Makes an SVG with the sandbox label. */
function toSvg(size: Size, content: string): Buffer {
  const height = heightOf(size);
  const box = `viewBox="0 0 1000 ${height}" preserveAspectRatio="none"`;
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.widthPx}" height="${size.heightPx}" ${box}>${content}${label(height)}</svg>`,
  );
}

const lineChars = 26;
const maxLines = 6;

/** Sets the beginning of a text in lines, on a dark band around `middle`. */
export function toLines(text: string, middle: number): string {
  const words = text.slice(0, 500).replaceAll(/\s+/g, " ").trim();
  const all = words.match(new RegExp(`[^]{1,${lineChars}}(?: |$)|[^]{1,${lineChars}}`, "g")) ?? [];
  const lines = all.slice(0, maxLines);
  if (all.length > maxLines) lines.push("…");
  const top = middle - lines.length * 32;
  const spans = lines.map(
    (line, at) => `<text x="500" y="${top + 50 + at * 64}">${escapeXml(line.trim())}</text>`,
  );
  return `<rect y="${top - 20}" width="1000" height="${lines.length * 64 + 40}" fill="#10131a" fill-opacity="0.62"/><g text-anchor="middle" font-family="sans-serif" font-size="52" fill="#fff">${spans.join("")}</g>`;
}

/** Escapes text for SVG and drops what XML 1.0 cannot contain: control characters and lone surrogates. */
function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\uFFFE\uFFFF]/gu, "")
    .replaceAll(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
}

/** Spells "SANDBOX" in pixels, since the label must be readable on a machine without fonts. */
const labelRows = [
  "####..##..#..#.###..###...##..#..#",
  "#....#..#.##.#.#..#.#..#.#..#.#..#",
  "####.####.#.##.#..#.###..#..#..##.",
  "...#.#..#.#..#.#..#.#..#.#..#.#..#",
  "####.#..#.#..#.###..###...##..#..#",
];

function label(height: number): string {
  const dots = labelRows.flatMap((row, y) =>
    Array.from(row, (dot, x) => (dot === "#" ? `M${x * 4} ${y * 4}h4v4h-4z` : "")),
  );
  const scale = Math.min(1, height / 120);
  return `<g transform="translate(${1000 - 180 * scale} ${16 * scale}) scale(${scale})" fill="#fff"><rect width="160" height="44" rx="10" fill="#10131a" fill-opacity="0.62"/><path transform="translate(12 12)" d="${dots.join("")}"/></g>`;
}

/** The longest edge of an edited picture. */
const maxEdgePx = 2048;

/**
 * Writes the prompt's words over a picture, in the colour that they name. Returns a PNG with the sandbox
 * label (an animation's first frame).
 * @throws Error of the decoder
 */
export function editPicture(bytes: Buffer, prompt: string): Promise<Buffer> {
  return decodeInTurn("sandbox", async () => {
    const colour = colourIn(prompt);
    const bounds = { width: maxEdgePx, height: maxEdgePx, fit: "inside", withoutEnlargement: true } as const;
    const opened = (await openPicture(bytes)).autoOrient().resize(bounds).toColourspace("srgb");
    const tinted = colour === undefined ? opened : opened.tint(colour);
    const { data, info } = await tinted.png({ compressionLevel: 1 }).toBuffer({ resolveWithObject: true });
    const size = { widthPx: info.width, heightPx: info.height };
    const image = await openPicture(data);
    return await image
      .composite([{ input: toSvg(size, toLines(prompt, heightOf(size) / 2)) }])
      .png()
      .toBuffer();
  });
}

/**
 * Describes what can be seen of a picture without understanding it: format, size in pixels and bytes, frames,
 * and its colour on average.
 * @throws Error of the decoder
 */
export function describePicture(bytes: Buffer): Promise<string> {
  return decodeInTurn("sandbox", async () => {
    const image = await openPicture(bytes);
    const { autoOrient, format, pageHeight, pages = 1 } = await image.metadata();
    const sample = image.flatten({ background: "#fff" }).resize(1, 1, { fit: "fill" }).toColourspace("srgb");
    const colour = (await sample.raw().toBuffer()).toString("hex", 0, 3);
    const size = `${autoOrient.width} × ${pageHeight ?? autoOrient.height} pixels, ${toSize(bytes.length)}`;
    const frames = pages < 2 ? "" : `, ${pages} frames`;
    return `**${format.toUpperCase()}**, ${size}${frames}, on average #${colour}.`;
  });
}

/** Formats a size in bytes for people: "12.3 kB". */
export function toSize(bytes: number): string {
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
