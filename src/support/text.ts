import { ParleyError } from "../core/errors.ts";
import { distance } from "fastest-levenshtein";

/** Only these first characters are compared, because the time grows with the product of both lengths. */
const maxComparedChars = 128;
/** The shortest prefix that can count as the beginning of another name, in characters. */
const minPrefixChars = 3;

/**
 * Finds the name that was probably meant: the same in another case, the same without its prefix up to the
 * last `/`, the nearest by edit distance (at most a third of the name, but at least two edits), or one that
 * begins with it. It returns `undefined` if no name is near.
 */
export function nearestName(wanted: string, names: readonly string[]): string | undefined {
  const others = names.filter((name) => name !== wanted);
  const folded = fold(wanted);
  const bare = withoutPrefix(folded);
  return (
    others.find((name) => fold(name) === folded) ??
    others.find((name) => withoutPrefix(fold(name)) === bare) ??
    nearestByDistance(folded, bare, others) ??
    (bare.length < minPrefixChars
      ? undefined
      : others.find((name) => withoutPrefix(fold(name)).startsWith(bare)))
  );
}

function nearestByDistance(folded: string, bare: string, names: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let nearestDistance = Math.max(2, Math.ceil(bare.length / 3)) + 1;
  for (const name of names) {
    const candidate = fold(name);
    const edits = Math.min(distance(folded, candidate), distance(bare, withoutPrefix(candidate)));
    if (edits < nearestDistance) [nearest, nearestDistance] = [name, edits];
  }
  return nearest;
}

function fold(name: string): string {
  return name.slice(0, maxComparedChars).toLowerCase();
}

function withoutPrefix(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

/** The text, or its first `maxChars` characters and " (cut)". It never splits a character. */
export function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  return `${text.slice(0, maxChars).replace(/[\uD800-\uDBFF]$/, "")} (cut)`;
}

const maxChars = 60;
/** A cut keeps whole words if at least this much of the title is left. */
const minWordCutChars = 30;
/** It is created on first use, because it costs time and memory. */
let graphemes: Intl.Segmenter | undefined;

/** A title of one line and at most 60 characters, cut at a word with `…`. Empty text stays empty. */
export function toTitle(text: string): string {
  const line = text.slice(0, 1000).replace(/\s+/g, " ").trim();
  if (line.length <= maxChars) return line;
  graphemes ??= new Intl.Segmenter();
  const chars = Array.from(graphemes.segment(line), ({ segment }) => segment);
  if (chars.length <= maxChars) return line;
  const cut = chars.slice(0, maxChars - 1).join("");
  const space = cut.lastIndexOf(" ");
  return `${space > minWordCutChars ? cut.slice(0, space) : cut}…`;
}

/** Whether every percent sign in a part of a URL begins an encoded character. */
export function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    // The reason of the failure does not matter.
    return false;
  }
}

/** The error for a command that does not exist, with the command that was probably meant. */
export function unknownCommand(name: string, known: Iterable<string>): ParleyError {
  const names = [...known];
  const suggestion = nearestName(name, names);
  return new ParleyError("unknown-command", "no such command", {
    detail: {
      command: name,
      commands: names.map((one) => `/${one}`).join(", "),
      ...(suggestion === undefined ? {} : { suggestion }),
    },
  });
}

/** Matches a character that people can see. The one named by its number is Braille without a dot. */
const visible = /[^\s\p{Z}\p{Cc}\p{Cf}\p{Cs}\p{Cn}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** Whether people can see anything of a text. White space, controls and blank letters are nothing. */
export function isVisible(text: string): boolean {
  return visible.test(text);
}

// oxlint-disable-next-line no-control-regex -- control characters are what it removes
const control = /[\u0000-\u0008\u000B-\u001F\u007F]+/g;

/** Returns a text without control characters, apart from tabs and line feeds. */
export function withoutControls(text: string): string {
  return text.replaceAll(control, "");
}
