/**
 * The model id that was probably meant: the same in another case, the same without its provider, or the nearest by
 * edits. `undefined`: none is near. Ids are case-sensitive, so one that differs by case only is a good guess.
 */
export function suggestModel(wanted: string, known: readonly string[]): string | undefined {
  const lower = wanted.toLowerCase();
  const sameWords = known.find((id) => id !== wanted && id.toLowerCase() === lower);
  if (sameWords !== undefined) return sameWords;
  const name = withoutProvider(lower);
  const sameName = known.find((id) => id !== wanted && withoutProvider(id.toLowerCase()) === name);
  if (sameName !== undefined) return sameName;
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.ceil(name.length * 0.34)) + 1;
  for (const id of known) {
    if (id === wanted) continue;
    const candidate = id.toLowerCase();
    for (const form of [candidate, withoutProvider(candidate)]) {
      const distance = editDistance(form === candidate ? lower : name, form, bestDistance);
      if (distance < bestDistance) [best, bestDistance] = [id, distance];
    }
  }
  // A beginning that people stop typing after, or an id with a date behind it.
  return (
    best ??
    (name.length >= 3 ? known.find((id) => withoutProvider(id.toLowerCase()).startsWith(name)) : undefined)
  );
}

function withoutProvider(id: string): string {
  return id.slice(id.lastIndexOf("/") + 1);
}

/** Insertions, deletions, replacements and swaps between two words; `limit` where there are as many or more. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit || a.length > 256) return limit;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1])
        cost = Math.min(cost, (beforeLast[column - 2] ?? 0) + 1);
      current.push(cost);
    }
    [beforeLast, last] = [last, current];
  }
  return Math.min(limit, last[b.length] ?? limit);
}
