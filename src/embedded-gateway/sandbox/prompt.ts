import { colourOf } from "./colours.ts";
import { shapes, type ShapeName } from "./shapes.ts";

/** Things of one kind in a picture. */
export interface Thing {
  readonly name: ShapeName;
  readonly count: number;
  readonly colour?: string;
  /** 1 is the normal size. */
  readonly scale: number;
}

/** What was recognised in a prompt. */
export interface Scene {
  readonly backdrop: "day" | "night" | "sunset" | "snow" | "sea" | "plain";
  readonly things: readonly Thing[];
}

const synonyms: Readonly<Record<string, ShapeName>> = {
  ball: "circle",
  hill: "mountain",
  kitten: "cat",
  foxe: "fox",
  puppy: "dog",
  ship: "boat",
};
const numbers = "one two three four five six seven eight nine ten".split(" ");
const scales: Readonly<Record<string, number>> = {
  tiny: 0.5,
  small: 0.65,
  big: 1.35,
  large: 1.35,
  huge: 1.6,
};
const backdrops: readonly (readonly [pattern: RegExp, backdrop: Scene["backdrop"]])[] = [
  [/\b(sunset|sunrise|evening|desert)\b/, "sunset"],
  [/\b(night|space|starry|moon)\b/, "night"],
  [/\b(snow|snowy|winter|ice)\b/, "snow"],
  [/\b(sea|ocean|beach|lake|underwater|boats?|ships?|fish)\b/, "sea"],
];
const maxThings = 8;
const maxCopies = 12;

/** Reads things with their numbers, colours and sizes, and the surroundings, from a prompt. Never throws. */
export function parsePrompt(prompt: string): Scene {
  const text = prompt.toLowerCase().slice(0, 2000);
  const things = parseThings(text.match(/[a-z]+|\d+/g) ?? []);
  const found = backdrops.find(([pattern]) => pattern.test(text))?.[1];
  const isGeometry = things.every(({ name }) => shapes[name].place === "centre");
  return { backdrop: found ?? (isGeometry ? "plain" : "day"), things };
}

function parseThings(words: readonly string[]): Thing[] {
  const things: Thing[] = [];
  let adjectives: Partial<Thing> = {};
  let distance = 0;
  for (const word of words) {
    const name = toShapeName(word) ?? toShapeName(word.replace(/s$/, ""));
    if (name !== undefined) {
      const { count = word.endsWith("s") ? 3 : 1, ...rest } = adjectives;
      things.push({ scale: 1, ...rest, name, count: Math.min(Math.max(count, 1), maxCopies) });
      adjectives = {};
      continue;
    }
    const adjective = toAdjective(word);
    distance = adjective === undefined ? distance + 1 : 0;
    // Adjectives apply to a nearby noun: "a red, very fluffy fox", not "a red sky over the hills and a fox".
    adjectives = { ...(distance > 2 ? {} : adjectives), ...adjective };
  }
  return things.slice(0, maxThings);
}

function toAdjective(word: string): Partial<Thing> | undefined {
  const colour = colourOf(word);
  if (colour !== undefined) return { colour };
  if (Object.hasOwn(scales, word)) return { scale: scales[word] ?? 1 };
  const count = /^\d{1,2}$/.test(word) ? Number(word) : numbers.indexOf(word) + 1;
  return count > 0 ? { count } : undefined;
}

function toShapeName(word: string): ShapeName | undefined {
  if (Object.hasOwn(shapes, word)) return word as ShapeName;
  return Object.hasOwn(synonyms, word) ? synonyms[word] : undefined;
}
