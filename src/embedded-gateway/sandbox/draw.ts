import { drawScene, drawThings, type Canvas } from "./scene.ts";
import { parsePrompt } from "./prompt.ts";
import { createRandom } from "./random.ts";
import { loadSharp } from "./sharp.ts";

export interface DrawOptions {
  readonly widthPx: number;
  readonly heightPx: number;
  /** Which of several pictures of one prompt: each is different, and each the same again next time. */
  readonly index: number;
}

/** A PNG of exactly the size asked for: the scene that the prompt's words make, with the prompt below it. */
export async function drawPicture(prompt: string, options: DrawOptions): Promise<Buffer> {
  const canvas = toCanvas(options);
  const random = createRandom(`${prompt}\n${options.index}`);
  const scene = drawScene(parsePrompt(prompt), canvas, random);
  const sharp = await loadSharp();
  return sharp(toSvg(scene + caption(prompt, canvas) + mark(canvas), canvas, options))
    .png({ compressionLevel: 7 })
    .toBuffer();
}

/** What the prompt names, drawn on nothing, to be laid over a picture. Where it names nothing its words are. */
export function drawOverlay(prompt: string, size: { widthPx: number; heightPx: number }): Buffer {
  const canvas = toCanvas(size);
  const { things } = parsePrompt(prompt);
  const drawing = drawThings(things, canvas, createRandom(prompt), false);
  return toSvg(drawing + (things.length === 0 ? caption(prompt, canvas) : "") + mark(canvas), canvas, size);
}

/** Words laid over a picture. */
export function drawWords(words: string, size: { widthPx: number; heightPx: number }): Buffer {
  const canvas = toCanvas(size);
  return toSvg(caption(words, canvas, 64) + mark(canvas), canvas, size);
}

/** The mark alone, for pictures that were changed. */
export function drawMark(size: { widthPx: number; heightPx: number }): Buffer {
  const canvas = toCanvas(size);
  return toSvg(mark(canvas), canvas, size);
}

function toCanvas(size: { widthPx: number; heightPx: number }): Canvas {
  return { width: 1000, height: (1000 * size.heightPx) / size.widthPx };
}

function toSvg(content: string, canvas: Canvas, size: { widthPx: number; heightPx: number }): Buffer {
  const box = `viewBox="0 0 ${canvas.width} ${canvas.height}" preserveAspectRatio="none"`;
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.widthPx}" height="${size.heightPx}" ${box}>${content}</svg>`,
  );
}

function caption(text: string, canvas: Canvas, fontSize = 32): string {
  const charsPerLine = Math.floor(940 / (fontSize * 0.56));
  const lines = wrap(text.replaceAll(/\s+/g, " ").trim(), charsPerLine, 2);
  const height = lines.length * fontSize * 1.3 + fontSize * 0.7;
  const top = canvas.height - height;
  const rows = lines.map((line, index) => {
    const y = (top + fontSize * 1.25 + index * fontSize * 1.3).toFixed(1);
    return `<text x="500" y="${y}" text-anchor="middle" font-family="sans-serif" font-size="${fontSize}" fill="#ffffff">${escapeXml(line)}</text>`;
  });
  const band = `<rect y="${top.toFixed(1)}" width="1000" height="${height.toFixed(1)}" fill="#10131a" fill-opacity="0.62"/>`;
  return band + rows.join("");
}

function wrap(text: string, charsPerLine: number, maxLines: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > charsPerLine) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  lines.push(line);
  const kept = lines.slice(0, maxLines).map((part) => Array.from(part).slice(0, charsPerLine).join(""));
  if (lines.length > maxLines || lines.some((part) => part.length > charsPerLine)) {
    kept[kept.length - 1] = `${kept.at(-1)?.slice(0, charsPerLine - 1) ?? ""}…`;
  }
  return kept;
}

/** Also drops what XML 1.0 cannot hold at all: control characters and half emoji. */
function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\uFFFE\uFFFF]/gu, "")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&apos;");
}

/** Letters as pixels, since the label must be readable on a machine without any font. */
const letters: Readonly<Record<string, readonly string[]>> = {
  S: ["####", "#...", "####", "...#", "####"],
  A: [".##.", "#..#", "####", "#..#", "#..#"],
  N: ["#..#", "##.#", "#.##", "#..#", "#..#"],
  D: ["###.", "#..#", "#..#", "#..#", "###."],
  B: ["###.", "#..#", "###.", "#..#", "###."],
  O: [".##.", "#..#", "#..#", "#..#", ".##."],
  X: ["#..#", "#..#", ".##.", "#..#", "#..#"],
};

function mark(canvas: Canvas): string {
  const dot = 4;
  const cells = Array.from("SANDBOX").flatMap((letter, at) =>
    (letters[letter] ?? []).flatMap((row, y) =>
      Array.from(row).flatMap((cell, x) =>
        cell === "#"
          ? [`<rect x="${(at * 5 + x) * dot}" y="${y * dot}" width="${dot}" height="${dot}"/>`]
          : [],
      ),
    ),
  );
  const width = 7 * 5 * dot;
  const scale = Math.min(1, canvas.height / 120);
  return `<g transform="translate(${1000 - (width + 40) * scale} ${16 * scale}) scale(${scale})"><rect width="${width + 22}" height="44" rx="10" fill="#10131a" fill-opacity="0.62"/><g fill="#ffffff" transform="translate(13 12)">${cells.join("")}</g></g>`;
}
