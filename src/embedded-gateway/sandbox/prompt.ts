import { colourOf } from "./colours.ts";
import { shapes, type ShapeName } from "./shapes.ts";

/** A kind of thing that a prompt asks for. */
export interface Thing {
  readonly name: ShapeName;
  readonly count: number;
  readonly colour?: string;
  /** 1 is the usual size. */
  readonly scale: number;
}

export type Backdrop =
  | "day"
  | "night"
  | "sunset"
  | "underwater"
  | "space"
  | "snow"
  | "desert"
  | "rain"
  | "plain";

/** What the sandbox understood of a prompt. */
export interface Scene {
  readonly backdrop: Backdrop;
  /** Sea or lake instead of land. */
  readonly hasWater: boolean;
  /** Of the backdrop, where the prompt names one ("on a red background"). */
  readonly backdropColour?: string;
  readonly things: readonly Thing[];
  /** Colours named without a thing, for pictures of none. */
  readonly colours: readonly string[];
}

const synonyms: Readonly<Record<string, ShapeName>> = {
  ball: "circle",
  dot: "circle",
  disc: "circle",
  cube: "square",
  box: "rectangle",
  pyramid: "triangle",
  love: "heart",
  sunshine: "sun",
  saturn: "planet",
  hill: "mountain",
  peak: "mountain",
  alps: "mountain",
  volcano: "mountain",
  city: "tower",
  skyline: "tower",
  skyscraper: "tower",
  forest: "tree",
  wood: "tree",
  oak: "tree",
  palm: "tree",
  spruce: "pine",
  fir: "pine",
  cottage: "house",
  home: "house",
  hut: "house",
  cabin: "house",
  fortress: "castle",
  rose: "flower",
  tulip: "flower",
  garden: "flower",
  kitten: "cat",
  puppy: "dog",
  wolf: "dog",
  bunny: "rabbit",
  hare: "rabbit",
  teddy: "bear",
  man: "person",
  woman: "person",
  child: "person",
  girl: "person",
  boy: "person",
  people: "person",
  astronaut: "person",
  android: "robot",
  truck: "car",
  taxi: "car",
  seagull: "bird",
  eagle: "bird",
  gull: "bird",
  spaceship: "rocket",
  ship: "boat",
  sailboat: "boat",
  yacht: "boat",
  coffee: "cup",
  tea: "cup",
  mug: "cup",
  toadstool: "mushroom",
  shark: "fish",
  whale: "fish",
};

const counts: Readonly<Record<string, number>> = {
  one: 1,
  two: 2,
  couple: 2,
  pair: 2,
  three: 3,
  few: 3,
  four: 4,
  five: 5,
  several: 5,
  six: 6,
  seven: 7,
  some: 4,
  many: 8,
  eight: 8,
  nine: 9,
  ten: 10,
  dozen: 12,
};
const scales: Readonly<Record<string, number>> = {
  tiny: 0.5,
  small: 0.65,
  little: 0.7,
  big: 1.35,
  large: 1.35,
  huge: 1.6,
  giant: 1.7,
};

const backdrops: readonly (readonly [pattern: RegExp, backdrop: Backdrop])[] = [
  [/\b(underwater|under the sea|aquarium|coral)\b/, "underwater"],
  [/\b(space|galaxy|cosmos|universe|orbit)\b/, "space"],
  [/\b(sunset|sunrise|dusk|dawn|evening)\b/, "sunset"],
  [/\b(night|midnight|moonlit|starry|moon)\b/, "night"],
  [/\b(snow|snowy|winter|ice|arctic)\b/, "snow"],
  [/\b(rain|rainy|storm|stormy)\b/, "rain"],
  [/\b(desert|dunes?|sand)\b/, "desert"],
];

/** Reads things, their numbers, colours and sizes, and the place, out of a prompt. Never throws. */
export function parsePrompt(prompt: string): Scene {
  const text = prompt.toLowerCase().slice(0, 2000);
  const words = text.match(/[a-z]+|\d+/g) ?? [];
  const things: Thing[] = [];
  const colours: string[] = [];
  let next: { count?: number; colour?: string; scale?: number; age: number } = { age: 0 };
  for (const [at, word] of words.entries()) {
    const colour = colourOf(word);
    const following = words[at + 1];
    if (colour !== undefined && following !== "background" && following !== "backdrop") {
      next = { ...next, colour, age: 0 };
      colours.push(colour);
      continue;
    }
    const name = toShapeName(word);
    if (name !== undefined) {
      const usual = word.endsWith("s") || word === "forest" || word === "garden" || word === "city" ? 3 : 1;
      const count = Math.min(Math.max(next.count ?? usual, 1), 12);
      const known = things.findIndex((thing) => thing.name === name && thing.colour === next.colour);
      if (known === -1) {
        things.push({
          name,
          count,
          scale: next.scale ?? 1,
          ...(next.colour === undefined ? {} : { colour: next.colour }),
        });
      }
      next = { age: 0 };
      continue;
    }
    const count = Object.hasOwn(counts, word)
      ? counts[word]
      : /^\d{1,2}$/.test(word)
        ? Number(word)
        : undefined;
    const scale = Object.hasOwn(scales, word) ? scales[word] : undefined;
    if (count !== undefined) next = { ...next, count, age: 0 };
    else if (scale !== undefined) next = { ...next, scale, age: 0 };
    // An adjective belongs to a noun close by: "a red, very fluffy fox", not "a red sky over the hills and a fox".
    else next = next.age >= 2 ? { age: 0 } : { ...next, age: next.age + 1 };
  }
  const background = /\b([a-z]+) (?:background|backdrop)\b/.exec(text)?.[1];
  const backdropColour = background === undefined ? undefined : colourOf(background);
  const found = backdrops.find(([pattern]) => pattern.test(text))?.[1];
  const hasWater =
    /\b(sea|ocean|beach|lake|harbou?r|waves?|river|boats?|ships?|sail(boat|ing)?|yachts?|fish|whales?|sharks?)\b/.test(
      text,
    );
  const isGeometry = !hasWater && things.every(({ name }) => shapes[name].place === "centre");
  return {
    backdrop: backdropColour === undefined ? (found ?? (isGeometry ? "plain" : "day")) : "plain",
    hasWater,
    ...(backdropColour === undefined ? {} : { backdropColour }),
    things: things.slice(0, 8),
    colours: [...new Set(colours)],
  };
}

function toShapeName(word: string): ShapeName | undefined {
  const candidates = [word, word.replace(/s$/, ""), word.replace(/es$/, ""), word.replace(/ies$/, "y")];
  for (const candidate of candidates) {
    if (Object.hasOwn(shapes, candidate)) return candidate as ShapeName;
    if (Object.hasOwn(synonyms, candidate)) return synonyms[candidate];
  }
  return word === "foxes" ? "fox" : undefined;
}
