import type { Sharp } from "sharp";
import { colourOf } from "./colours.ts";
import { drawMark, drawOverlay, drawWords } from "./draw.ts";
import { parsePrompt } from "./prompt.ts";
import { loadSharp, maxInputPixels } from "./sharp.ts";

/** Largest edge of a changed picture. */
const maxEdgePx = 2048;

interface Change {
  /** For the answer: "turned by 90°". */
  readonly done: string;
  readonly apply: (image: Sharp, size: Size) => Sharp;
}

interface Size {
  readonly widthPx: number;
  readonly heightPx: number;
}

export interface EditedPicture {
  readonly png: Buffer;
  /** What was done, in words. */
  readonly done: readonly string[];
}

type Rule = readonly [pattern: RegExp, toChange: (match: RegExpExecArray) => Change | undefined];

const change = (done: string, apply: Change["apply"]): Change => ({ done, apply });

const rules: readonly Rule[] = [
  [/\bcrop\w*\b(?:.*?\b(left|right|top|bottom)\b)?/, ([, side]) => crop(side)],
  [/\b(\d{2,4}) ?(?:x|×|by) ?(\d{2,4})\b/, ([, width, height]) => resize(Number(width), Number(height))],
  [
    /\b(half (?:the|its) size|half as (?:big|large)|smaller|shrink|thumbnail)\b/,
    () => scale(0.5, "half the size"),
  ],
  [
    /\b(double (?:the|its) size|twice as (?:big|large)|larger|bigger|enlarge)\b/,
    () => scale(2, "twice the size"),
  ],
  [
    /\b(?:rotate|turn|spin)\w*\b(?:\D{0,40}?(-?\d{1,3}))?(.*\b(?:left|counter|anti)\w*)?/,
    ([text, degrees, left]) => rotate(text, degrees, left !== undefined),
  ],
  [/\bupside ?down\b/, () => change("turned upside down", (image) => image.rotate(180))],
  [/\bmirror|\bflip\w*\b(?=.*\bhoriz)|\bflop/, () => change("mirrored", (image) => image.flop())],
  [/\bflip\w*\b(?!.*\bhoriz)/, () => change("flipped upside down", (image) => image.flip())],
  [
    /\b(gr[ae]y ?scale|gr[ae]y|black[ -]?(?:and|&)[ -]?white|b&w|monochrome|desaturate)\b/,
    () => change("made greyscale", (image) => image.greyscale()),
  ],
  [/\b(sepia|vintage|old[- ]fashioned)\b/, () => change("made sepia", (image) => image.tint("#c9a36b"))],
  [/\b(invert\w*|negative)\b/, () => change("inverted", (image) => image.negate({ alpha: false }))],
  [/\b(blur\w*|soft(?:er|en))\b/, () => change("blurred", blur)],
  [/\bsharp(?:er|en)\w*\b/, () => change("sharpened", (image) => image.sharpen({ sigma: 2 }))],
  [
    /\b(bright(?:er|en)\w*|light(?:er|en)\w*)\b/,
    () => change("made brighter", (image) => image.linear(1.15, 30)),
  ],
  [/\bdark(?:er|en)\w*\b/, () => change("made darker", (image) => image.linear(0.6, 0))],
  [/\bcontrast\w*\b/, () => change("given more contrast", (image) => image.linear(1.4, -51))],
  [
    /\b(saturat\w*|more colou?rful|vivid)\b/,
    () => change("made more colourful", (image) => image.modulate({ saturation: 1.8 })),
  ],
  [
    /\b(?:tint\w*|colou?ri[sz]e\w*|(?:make|turn|paint|dye|colou?r) (?:it|this|that|everything|(?:the|my) (?:picture|image|photo))(?: (?:all|more|look|a bit))*)\b.*?\b([a-z]+?)(?:ish)?\b(?= *(?:$|[.,!]|and\b|tint|tone))/,
    ([, word]) => tint(word ?? ""),
  ],
  [/\b([a-z]+) (?:border|frame)\b|\b(?:border|frame)\b/, ([, word]) => border(word ?? "")],
];

/** The changes that a prompt asks for, in the order of the list above. */
function parseChanges(prompt: string): Change[] {
  const text = withoutQuotes(prompt).toLowerCase().slice(0, 2000);
  return rules.flatMap(([pattern, toChange]) => {
    const match = pattern.exec(text);
    const found = match === null ? undefined : toChange(match);
    return found === undefined ? [] : [found];
  });
}

/** Whether a prompt asks for a change of a picture rather than for a new one. */
export function asksForChange(prompt: string): boolean {
  return (
    parseChanges(prompt).length > 0 ||
    quotedWords(prompt) !== undefined ||
    /\b(it|this|that|the (?:picture|image|photo|drawing)|add|put|remove|change)\b/i.test(prompt)
  );
}

/**
 * Changes a picture as the prompt asks; what else the prompt names is drawn over it. Of an animation the first
 * frame is taken. The result is a PNG with the sandbox's mark, its longest edge at most 2048 pixels.
 * @throws Error of the decoder
 */
export async function editPicture(bytes: Buffer, prompt: string): Promise<EditedPicture> {
  const sharp = await loadSharp();
  const changes = parseChanges(prompt);
  let current = await sharp(bytes, { limitInputPixels: maxInputPixels, failOn: "error" })
    .autoOrient()
    .resize({ width: maxEdgePx, height: maxEdgePx, fit: "inside", withoutEnlargement: true })
    .toColourspace("srgb")
    .png({ compressionLevel: 1 })
    .toBuffer({ resolveWithObject: true });
  const sizeOf = (): Size => ({ widthPx: current.info.width, heightPx: current.info.height });
  const run = async (image: Sharp): Promise<void> => {
    current = await image.png({ compressionLevel: 1 }).toBuffer({ resolveWithObject: true });
  };
  // One at a time: within one pipeline sharp has an order of its own.
  for (const { apply } of changes) await run(apply(sharp(current.data), sizeOf()));

  const done = changes.map((one) => one.done);
  const words = quotedWords(prompt);
  const adds =
    /\b(add|draw|put|place|with|insert|wearing)\b/i.test(prompt) && parsePrompt(prompt).things.length > 0;
  if (words !== undefined) {
    await run(sharp(current.data).composite([{ input: drawWords(words, sizeOf()) }]));
    done.push(`written “${words}” on`);
  } else if (changes.length === 0 || adds) {
    await run(sharp(current.data).composite([{ input: drawOverlay(withoutQuotes(prompt), sizeOf()) }]));
    const names = parsePrompt(withoutQuotes(prompt)).things.map(({ name }) => name);
    done.push(
      names.length > 0 ? `drawn over (${names.join(", ")})` : "captioned, since I know no such change",
    );
  }
  const png = await sharp(current.data)
    .composite([{ input: drawMark(sizeOf()) }])
    .png({ compressionLevel: 7 })
    .toBuffer();
  return { png, done };
}

function quotedWords(prompt: string): string | undefined {
  if (!/\b(text|words?|caption|write|say(?:s|ing)?|title|label|add)\b/i.test(prompt)) return undefined;
  return /["“„]([^"“”]{1,200})["”“]/.exec(prompt)?.[1];
}

function withoutQuotes(prompt: string): string {
  return prompt.replaceAll(/["“„][^"“”]{1,200}["”“]/g, " ");
}

function crop(side: string | undefined): Change {
  if (side === undefined) {
    return change("cropped to a square", (image, size) => {
      const edge = Math.min(size.widthPx, size.heightPx);
      return image.resize(edge, edge, { fit: "cover" });
    });
  }
  return change(`cropped to the ${side} half`, (image, { widthPx, heightPx }) => {
    const isWide = side === "left" || side === "right";
    const width = isWide ? Math.max(1, Math.floor(widthPx / 2)) : widthPx;
    const height = isWide ? heightPx : Math.max(1, Math.floor(heightPx / 2));
    const left = side === "right" ? widthPx - width : 0;
    return image.extract({ left, top: side === "bottom" ? heightPx - height : 0, width, height });
  });
}

function resize(width: number, height: number): Change {
  const [w, h] = [Math.min(width, maxEdgePx), Math.min(height, maxEdgePx)];
  return change(`resized to ${w} × ${h}`, (image) => image.resize(w, h, { fit: "fill" }));
}

function scale(factor: number, done: string): Change {
  return change(`made ${done}`, (image, { widthPx, heightPx }) => {
    const limit = Math.min(factor, maxEdgePx / Math.max(widthPx, heightPx));
    return image.resize(Math.max(1, Math.round(widthPx * limit)), Math.max(1, Math.round(heightPx * limit)));
  });
}

/** "turn it blue" and "turn this into a postcard" are no rotations. */
function rotate(text: string, degrees: string | undefined, isLeft: boolean): Change | undefined {
  if (
    text.startsWith("turn") &&
    degrees === undefined &&
    !isLeft &&
    !/\b(right|clockwise|around)\b/.test(text)
  ) {
    return undefined;
  }
  const amount = Number(degrees ?? 90);
  return change(`turned by ${amount}°${isLeft ? " to the left" : ""}`, (image) =>
    image.rotate(isLeft ? -amount : amount, { background: "#ffffff" }),
  );
}

function blur(image: Sharp, size: Size): Sharp {
  return image.blur(Math.max(1.5, Math.max(size.widthPx, size.heightPx) / 100));
}

function tint(word: string): Change | undefined {
  const colour = colourOf(word) ?? colourOf(word.replace(/d$/, ""));
  return colour === undefined ? undefined : change(`tinted ${word}`, (image) => image.tint(colour));
}

function border(word: string): Change {
  const colour = colourOf(word);
  return change(`framed${colour === undefined ? "" : ` in ${word}`}`, (image, { widthPx, heightPx }) => {
    const edge = Math.max(2, Math.round(Math.min(widthPx, heightPx) / 25));
    return image.extend({
      top: edge,
      bottom: edge,
      left: edge,
      right: edge,
      background: colour ?? "#20232a",
    });
  });
}
