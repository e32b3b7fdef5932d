import { createHash } from "node:crypto";
import type { Sharp } from "sharp";
import { decodeInTurn, loadSharp, openPicture } from "../../media/image.ts";

/** A size in pixels. */
export interface Size {
  readonly widthPx: number;
  readonly heightPx: number;
}

/** The colours that a prompt can name and that pictures are described with. */
const palette: Readonly<Record<string, string>> = {
  red: "#e0413a",
  orange: "#f28a2e",
  yellow: "#f7d038",
  green: "#3fa65a",
  teal: "#1f9a94",
  blue: "#3670d9",
  navy: "#1d2f66",
  purple: "#8348c2",
  pink: "#f08cb4",
  brown: "#8a5a37",
  white: "#fafafa",
  grey: "#8d939c",
  black: "#20232a",
};

/** Returns the first colour that a text names. */
function colourIn(text: string): string | undefined {
  const words =
    text
      .slice(0, 2000)
      .toLowerCase()
      .replaceAll("gray", "grey")
      .match(/[a-z]+/g) ?? [];
  const name = words.find((word) => Object.hasOwn(palette, word));
  return name === undefined ? undefined : palette[name];
}

/** Returns the name of the nearest colour of the palette. Channels are 0 to 255. */
export function nameColour(...channels: readonly [red: number, green: number, blue: number]): string {
  const distances = Object.entries(palette).map(([name, hex]) => {
    const steps = channels.map((value, at) => value - Number.parseInt(hex.slice(1 + at * 2, 3 + at * 2), 16));
    return { name, distance: Math.hypot(...steps) };
  });
  return distances.reduce((best, one) => (one.distance < best.distance ? one : best)).name;
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

type Edit = readonly [asked: RegExp, done: string, apply: (image: Sharp, match: RegExpExecArray) => Sharp];

const edits: readonly Edit[] = [
  [
    /\b(?:rotate|turn)\w* \D{0,40}?(-?\d{1,3})/,
    "turned by $1°",
    (image, [, angle]) => image.rotate(Number(angle)),
  ],
  [/\b(?:mirror|flip)/, "mirrored", (image) => image.flop()],
  [/\bgr[ae]y|black[ -](?:and|&)[ -]white/, "made greyscale", (image) => image.greyscale()],
  [/\bblur/, "blurred", (image) => image.blur(8)],
  [/\b(?:bright|light)(?:er|en)/, "made brighter", (image) => image.linear(1.15, 30)],
  [/\bdark(?:er|en)/, "made darker", (image) => image.linear(0.6, 0)],
];

function findEdits(prompt: string): { readonly done: string; apply(image: Sharp): Sharp }[] {
  const text = prompt.toLowerCase().slice(0, 2000);
  const found = edits.flatMap(([asked, done, apply]) => {
    const match = asked.exec(text);
    return match === null
      ? []
      : [{ done: done.replace("$1", match[1] ?? ""), apply: (image: Sharp) => apply(image, match) }];
  });
  const colour = colourIn(text.replaceAll(/gr[ae]y|black[ -](?:and|&)[ -]white/g, ""));
  if (colour !== undefined) found.push({ done: "tinted", apply: (image) => image.tint(colour) });
  return found;
}

/** Whether a prompt asks to edit a picture rather than to draw one. */
export function asksForEdit(prompt: string): boolean {
  return /\b(it|this|that|the (?:picture|image|photo)|add|put|remove|change|rotate|mirror|blur|darker|brighter)\b/i.test(
    prompt.slice(0, 2000),
  );
}

/** The longest edge of an edited picture. */
const maxEdgePx = 2048;

/**
 * Edits a picture as the prompt asks. Without a known edit the words are written over it. Returns a PNG with
 * the sandbox label (an animation's first frame), and what was done, in words.
 * @throws Error of the decoder
 */
export function editPicture(bytes: Buffer, prompt: string): Promise<{ png: Buffer; done: string }> {
  return decodeInTurn("sandbox", async () => {
    const found = findEdits(prompt);
    const bounds = { width: maxEdgePx, height: maxEdgePx, fit: "inside", withoutEnlargement: true } as const;
    const opened = (await openPicture(bytes)).autoOrient().resize(bounds).toColourspace("srgb");
    const edited = await found
      .reduce((image, one) => one.apply(image), opened)
      .png({ compressionLevel: 1 })
      .toBuffer({ resolveWithObject: true });
    const size = { widthPx: edited.info.width, heightPx: edited.info.height };
    const words = found.length === 0 ? toLines(prompt, heightOf(size) / 2) : "";
    const image = await openPicture(edited.data);
    const png = await image
      .composite([{ input: toSvg(size, words) }])
      .png()
      .toBuffer();
    const done =
      found.length === 0 ? "only written on: I know no such edit" : found.map((one) => one.done).join(", ");
    return { png, done };
  });
}

/**
 * Describes what can be seen of a picture without understanding it: format, size in pixels and bytes, frames,
 * main colours.
 * @throws Error of the decoder
 */
export function describePicture(bytes: Buffer): Promise<string> {
  return decodeInTurn("sandbox", async () => {
    const image = await openPicture(bytes);
    const { autoOrient, format, pageHeight, pages = 1 } = await image.metadata();
    const sample = image.autoOrient().resize(64, 64, { fit: "fill", kernel: "nearest" });
    const pixels = await sample.toColourspace("srgb").ensureAlpha().raw().toBuffer();
    const size = `${autoOrient.width} × ${pageHeight ?? autoOrient.height} pixels, ${toSize(bytes.length)}.`;
    const frames = pages < 2 ? "" : ` Animated: ${pages} frames; the colours are of the first.`;
    return `**${format.toUpperCase()}**, ${size}${frames} Main colours: ${describeColours(pixels)}.`;
  });
}

function describeColours(pixels: Buffer): string {
  const counts = new Map<string, number>();
  for (let at = 0; at < pixels.length; at += 4) {
    const [red = 0, green = 0, blue = 0, alpha = 0] = pixels.subarray(at, at + 4);
    const name = alpha < 128 ? "transparent" : nameColour(red, green, blue);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 4);
  return most.map(([name, count]) => `${name} ${Math.round((count * 400) / pixels.length)} %`).join(", ");
}

/** Formats a size in bytes for people: "12.3 kB". */
export function toSize(bytes: number): string {
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
