import { type AST, RegExpParser } from "@eslint-community/regexpp";

/** A text that makes a pattern try as much as it can: `before`, then `pump` again and again, then `after`. */
export interface Pumped {
  readonly before: string;
  readonly pump: string;
  readonly after: string;
}

/** Repetitions up to this number cost a constant factor. */
const boundedTimes = 64;
const maxPumps = 400;

/** Each character stands for many others. Each order, tried from its start, gives a family of texts. */
const alphabets = [
  "\n\r \ta0_-.:/<>[](){}\"'`!\\;,=é~*#|?&@$%^+A",
  " \t\n\u000ba0A_-./<>[](){}\"'`!\\:;,=é~*#|?&@$%^+",
  "0aA_-./:;,=\"' \t\n\u000b<>[](){}`!\\é~*#|?&@$%^+",
  "<>[](){}\"'`!\\:;,=~*#|?&@$%^+/._-0aAé \t\n\u000b",
];

const parser = new RegExpParser();

/** Whether a pattern's time grows with the text at all, since it repeats something without a small bound. */
export function isRepeating({ source, flags }: { readonly source: string; readonly flags: string }): boolean {
  let found = false;
  walk(parse(source, flags), (quantifier) => (found ||= quantifier.max > boundedTimes));
  return found;
}

/**
 * Returns texts on which a pattern with quadratic time shows it. Every run of neighbouring parts of the
 * pattern is repeated. It stands behind what the pattern wants before it, and before what the pattern does
 * not want.
 */
export function pumpsOf({
  source,
  flags,
}: {
  readonly source: string;
  readonly flags: string;
}): readonly Pumped[] {
  const pattern = parse(source, flags);
  const pumps = new Map<string, Pumped>();
  for (const alphabet of alphabets) {
    const own = [...new Set(source.replaceAll(/\\./g, ""))].join("");
    for (const letters of [alphabet, own + alphabet]) {
      const sample = createSampler(letters, flags);
      for (const alternative of alternativesOf(pattern)) {
        const parts = alternative.elements.map(sample);
        for (let from = 0; from < parts.length; from += 1) {
          for (let to = from + 1; to <= parts.length; to += 1) {
            const pump = parts.slice(from, to).join("");
            if (pump === "") continue;
            for (const before of new Set(["", parts.slice(0, from).join("")]))
              for (const after of ["", "\u0000", "\u0000\n"])
                pumps.set(JSON.stringify([before, pump, after]), { before, pump, after });
          }
        }
      }
    }
  }
  return [...pumps.values()].slice(0, maxPumps);
}

function parse(source: string, flags: string): AST.Pattern {
  return parser.parsePattern(source, undefined, undefined, {
    unicode: flags.includes("u"),
    unicodeSets: flags.includes("v"),
  });
}

type Parent = AST.Pattern | AST.Group | AST.CapturingGroup | AST.LookaroundAssertion;

/** Returns all alternatives, those inside of groups and look-arounds too. */
function alternativesOf(parent: Parent): readonly AST.Alternative[] {
  return parent.alternatives.flatMap((alternative) => [
    alternative,
    ...alternative.elements.flatMap((element) => {
      const inner = element.type === "Quantifier" ? element.element : element;
      return hasAlternatives(inner) ? alternativesOf(inner) : [];
    }),
  ]);
}

function hasAlternatives(element: AST.Element): element is Exclude<Parent, AST.Pattern> {
  return (
    element.type === "Group" ||
    element.type === "CapturingGroup" ||
    (element.type === "Assertion" && "alternatives" in element)
  );
}

function walk(parent: Parent, visit: (quantifier: AST.Quantifier) => void): void {
  for (const alternative of alternativesOf(parent))
    for (const element of alternative.elements) if (element.type === "Quantifier") visit(element);
}

/** Returns a function that makes a short text for an element, of the first letters that it accepts. */
function createSampler(letters: string, flags: string): (element: AST.Element) => string {
  const kept = flags.replaceAll(/[^iuvs]/g, "");
  const letterOf = (raw: string): string => {
    const one = new RegExp(`^(?:${raw})$`, kept);
    return letters.split("").find((letter) => one.test(letter)) ?? "";
  };
  const sample = (element: AST.Element): string => {
    switch (element.type) {
      case "Character":
        return String.fromCodePoint(element.value);
      case "CharacterClass":
      case "CharacterSet":
      case "ExpressionCharacterClass":
        return letterOf(element.raw);
      case "Quantifier":
        return sample(element.element).repeat(Math.min(Math.max(1, element.min), boundedTimes));
      case "Group":
      case "CapturingGroup":
        return (element.alternatives[0]?.elements ?? []).map(sample).join("");
      default:
        return "";
    }
  };
  return sample;
}
