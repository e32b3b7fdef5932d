import type { Sharp } from "sharp";
import { colourOf } from "./colours.ts";
import { drawOverlay, type Size } from "./draw.ts";
import { parsePrompt } from "./prompt.ts";
import { decodeInTurn, openPicture } from "../../media/load-sharp.ts";

/** Longest edge of an edited picture. */
const maxEdgePx = 2048;

interface Edit {
  /** For the answer: "turned by 90°". */
  readonly done: string;
  apply(image: Sharp, size: Size): Sharp;
}

const edit = (done: string, apply: Edit["apply"]): Edit => ({ done, apply });

/** Edits in the order in which they are applied, each with the wording that asks for it. */
const rules: readonly (readonly [RegExp, (match: RegExpExecArray) => Edit | undefined])[] = [
  [/\b(\d{2,4}) ?(?:x|×|by) ?(\d{2,4})\b/, ([, width, height]) => resize(Number(width), Number(height))],
  [
    /\b(?:rotate|turn)\w* \D{0,40}?(-?\d{1,3})/,
    ([, degrees]) =>
      edit(`turned by ${degrees}°`, (image) => image.rotate(Number(degrees), { background: "#fff" })),
  ],
  [/\bmirror/, () => edit("mirrored", (image) => image.flop())],
  [/\bupside ?down\b/, () => edit("turned upside down", (image) => image.rotate(180))],
  [/\bflip/, () => edit("flipped upside down", (image) => image.flip())],
  [/\b(gr[ae]y|black[ -](and|&)[ -]white)/, () => edit("made greyscale", (image) => image.greyscale())],
  [/\b(sepia|vintage)\b/, () => edit("made sepia", (image) => image.tint("#c9a36b"))],
  [/\b(invert|negative)/, () => edit("inverted", (image) => image.negate({ alpha: false }))],
  [/\b(blur|soft(?:er|en))/, () => edit("blurred", (image, size) => image.blur(2 + size.widthPx / 100))],
  [/\bsharp(?:er|en)/, () => edit("sharpened", (image) => image.sharpen({ sigma: 2 }))],
  [/\b(?:bright|light)(?:er|en)/, () => edit("made brighter", (image) => image.linear(1.15, 30))],
  [/\bcontrast/, () => edit("given more contrast", (image) => image.linear(1.4, -51))],
  [/\bdark(?:er|en)/, () => edit("made darker", (image) => image.linear(0.6, 0))],
  [
    /\b(?:tint|colou?r|make|turn|paint)\w* (?:\w+ ){1,3}?([a-z]+)\b(?= *(?:$|[.,!]|and\b|with\b))/,
    ([, word]) => tint(word ?? ""),
  ],
  [/\b(?:([a-z]+) )?(?:border|frame)\b/, ([, word]) => border(word ?? "")],
];

function parseEdits(prompt: string): Edit[] {
  const text = withoutQuotes(prompt).toLowerCase().slice(0, 2000);
  return rules.flatMap(([pattern, toEdit]) => {
    const match = pattern.exec(text);
    return (match === null ? undefined : toEdit(match)) ?? [];
  });
}

/** Whether a prompt asks to edit a picture rather than to draw one. */
export function asksForEdit(prompt: string): boolean {
  const refers = /\b(it|this|that|the (?:picture|image|photo|drawing)|add|put|remove|change)\b/i;
  return refers.test(prompt) || parseEdits(prompt).length > 0;
}

/**
 * Edits a picture as the prompt asks. Quoted words become a caption; without a known edit, or with "add", the things
 * in the prompt are drawn over it. Returns a PNG with the sandbox label, of an animation the first frame, and what
 * was done, in words.
 * @throws Error of the decoder
 */
export function editPicture(bytes: Buffer, prompt: string): Promise<{ png: Buffer; done: string[] }> {
  return decodeInTurn("sandbox", () => edited(bytes, prompt));
}

async function edited(bytes: Buffer, prompt: string): Promise<{ png: Buffer; done: string[] }> {
  const render = (image: Sharp) => image.png({ compressionLevel: 1 }).toBuffer({ resolveWithObject: true });
  const bounds = { width: maxEdgePx, height: maxEdgePx, fit: "inside", withoutEnlargement: true } as const;
  let current = await render((await openPicture(bytes)).autoOrient().resize(bounds).toColourspace("srgb"));
  const size = (): Size => ({ widthPx: current.info.width, heightPx: current.info.height });
  const edits = parseEdits(prompt);
  // One pipeline for each edit: within a pipeline sharp has its own order.
  for (const one of edits) current = await render(one.apply(await openPicture(current.data), size()));

  const words = /["“„]([^"“”]{1,200})["”“]/.exec(prompt)?.[1];
  const isAddition = edits.length === 0 || /\b(add|draw|put)\b/i.test(prompt);
  const things = isAddition ? parsePrompt(withoutQuotes(prompt)).things : [];
  const done = edits.map((one) => one.done);
  if (words !== undefined) done.push(`captioned “${words}”`);
  if (things.length > 0) done.push(`drawn over (${things.map(({ name }) => name).join(", ")})`);
  const isUnknown = done.length === 0;
  if (isUnknown) done.push("captioned, since I know no such edit");
  const overlay = drawOverlay(size(), things, words ?? (isUnknown ? prompt : ""));
  return {
    png: await (
      await openPicture(current.data)
    )
      .composite([{ input: overlay }])
      .png()
      .toBuffer(),
    done,
  };
}

function withoutQuotes(prompt: string): string {
  return prompt.replaceAll(/["“„][^"“”]{1,200}["”“]/g, " ");
}

function resize(width: number, height: number): Edit {
  const [w, h] = [Math.min(width, maxEdgePx), Math.min(height, maxEdgePx)];
  return edit(`resized to ${w} × ${h}`, (image) => image.resize(w, h));
}

function tint(word: string): Edit | undefined {
  const colour = colourOf(word);
  return colour === undefined ? undefined : edit(`tinted ${word}`, (image) => image.tint(colour));
}

function border(word: string): Edit {
  const background = colourOf(word) ?? "#20232a";
  return edit("framed", (image, size) => {
    const edge = Math.max(2, Math.round(size.widthPx / 25));
    return image.extend({ top: edge, bottom: edge, left: edge, right: edge, background });
  });
}
