import { distance } from "fastest-levenshtein";

/** Longer names are compared by their first characters only: the distance costs the product of both lengths. */
const maxComparedChars = 128;
/** Names a prefix must have at least, in characters, to count as the beginning of another name. */
const minPrefixChars = 3;

/**
 * The name that was probably meant: the same in another case, the same without its prefix up to the last `/`, the
 * nearest by edit distance (at most a third of the name, at least two edits), or one that begins with it.
 * Returns `undefined` when none is near.
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
