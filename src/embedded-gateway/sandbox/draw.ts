import { parsePrompt, type Scene, type Thing } from "./prompt.ts";
import { createRandom, type Random } from "./random.ts";
import { loadSharp } from "../../media/load-sharp.ts";
import { shapes } from "./shapes.ts";

/** In pixels. */
export interface Size {
  readonly widthPx: number;
  readonly heightPx: number;
}

/** All drawing is done on a canvas 1000 units wide. */
const width = 1000;
const captionChars = 56;

/**
 * A PNG of the scene that a prompt describes, with the prompt as caption and the sandbox label.
 * @param index of several pictures of one prompt, which all differ; the same index gives the same picture
 */
export async function drawPicture(prompt: string, size: Size, index = 0): Promise<Buffer> {
  const height = heightOf(size);
  const random = createRandom(`${prompt}\n${index}`);
  const scene = parsePrompt(prompt);
  const isEmpty = scene.things.length === 0 && scene.backdrop === "plain";
  const content = isEmpty ? drawAbstract(height, random) : drawThings(scene.things, height, random);
  const svg = toSvg(
    size,
    drawBackdrop(scene, height, random) + content + caption(prompt, height) + label(height),
  );
  const sharp = await loadSharp();
  return sharp(svg).png().toBuffer();
}

/** An SVG to lay over a picture: things, a caption, and always the sandbox label. */
export function drawOverlay(size: Size, things: readonly Thing[], words = ""): Buffer {
  const height = heightOf(size);
  const content = drawThings(things, height, createRandom(words));
  return toSvg(size, content + (words === "" ? "" : caption(words, height)) + label(height));
}

function heightOf({ widthPx, heightPx }: Size): number {
  return (width * heightPx) / widthPx;
}

function toSvg(size: Size, content: string): Buffer {
  const box = `viewBox="0 0 ${width} ${heightOf(size)}" preserveAspectRatio="none"`;
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.widthPx}" height="${size.heightPx}" ${box}>${content}</svg>`,
  );
}

/** Colours of the sky from top to horizon, and of the ground. */
const skies = {
  day: ["#7ec3f0", "#dff1fb", "#7fb95c"],
  night: ["#0d1533", "#34407a", "#22363a"],
  sunset: ["#51316e", "#f79a5c", "#5c4a3c"],
  snow: ["#b9d3e8", "#eef5fa", "#f7fafc"],
  sea: ["#9fd3ee", "#dff1fb", "#2d7fb5"],
} as const;

function drawBackdrop({ backdrop }: Scene, height: number, random: Random): string {
  if (backdrop === "plain") return `<rect width="100%" height="100%" fill="#f3ede2"/>`;
  const [sky, low, ground] = skies[backdrop];
  const horizon = height * random(0.58, 0.66);
  const land =
    backdrop === "sea"
      ? `<rect y="${horizon}" width="100%" height="100%" fill="${ground}"/>`
      : `<path d="M0 ${height}V${horizon}Q250 ${horizon - 50} 500 ${horizon}T1000 ${horizon - 10}V${height}Z" fill="${ground}"/>`;
  return `<linearGradient id="sky" x2="0" y2="1"><stop stop-color="${sky}"/><stop offset="0.7" stop-color="${low}"/></linearGradient><rect width="100%" height="100%" fill="url(#sky)"/>${land}`;
}

const places = {
  sky: { size: 0.2, y: 0.2, sway: 0.08 },
  ground: { size: 0.36, y: 0.66, sway: 0.05 },
  centre: { size: 0.46, y: 0.44, sway: 0.02 },
} as const;

/** Things of the sky first, since the others stand in front of them. */
function drawThings(things: readonly Thing[], height: number, random: Random): string {
  return Object.entries(places)
    .flatMap(([place, { size, y, sway }]) => {
      const copies = things
        .filter(({ name }) => shapes[name].place === place)
        .flatMap((thing) => Array.from({ length: thing.count }, () => thing));
      const slot = width / copies.length;
      return copies.map(({ name, colour, scale }, at) => {
        const edge = Math.min(Math.min(width, height * 1.2) * size * scale, slot * 1.1);
        const left = slot * (at + 0.5 + random(-sway, sway));
        const top = height * (y + random(-sway, sway));
        const transform = `translate(${left.toFixed(1)} ${top.toFixed(1)}) scale(${(edge / 100).toFixed(3)})`;
        return `<g transform="${transform}" fill="${colour ?? shapes[name].colour}">${shapes[name].svg}</g>`;
      });
    })
    .join("");
}

/** For prompts in which nothing is recognised: overlapping discs. */
function drawAbstract(height: number, random: Random): string {
  return Array.from({ length: 20 }, () => {
    const [x, y, radius] = [random(0, width), random(0, height), height * random(0.05, 0.25)];
    const fill = `hsl(${random(0, 360).toFixed(0)} 60% 55%)`;
    return `<circle cx="${x.toFixed(0)}" cy="${y.toFixed(0)}" r="${radius.toFixed(0)}" fill="${fill}" fill-opacity="0.5"/>`;
  }).join("");
}

function caption(text: string, height: number): string {
  const line = text.slice(0, 1000).replaceAll(/\s+/g, " ").trim();
  const shown = escapeXml(line.length > captionChars ? `${line.slice(0, captionChars - 1)}…` : line);
  const band = `<rect y="${height - 56}" width="1000" height="56" fill="#10131a" fill-opacity="0.62"/>`;
  return `${band}<text x="500" y="${height - 18}" text-anchor="middle" font-family="sans-serif" font-size="32" fill="#fff">${shown}</text>`;
}

/** Escapes text for SVG and drops what XML 1.0 cannot contain: control characters and lone surrogates. */
function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\uFFFE\uFFFF]/gu, "")
    .replaceAll(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
}

/** "SANDBOX" in pixels, since the label must be readable on a machine without fonts. */
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
