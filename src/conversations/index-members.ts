import type { KeyValueStore } from "./key-value.ts";

const pageSize = 500;

/**
 * All members of a sorted index, lowest score first. Members with scores of their own are found whatever is removed
 * meanwhile: each page begins at the score where the last one ended.
 */
export async function readMembers(
  store: Pick<KeyValueStore, "backend">,
  index: string,
): Promise<readonly string[]> {
  const members = new Set<string>();
  let minScore: number | undefined;
  // Of the members with that score, so many have been read.
  let offset = 0;
  for (;;) {
    const page = { order: "lowest-first", minScore, offset, max: pageSize } as const;
    const found = await store.backend.readIndex(index, page);
    for (const { member } of found) members.add(member);
    const last = found.at(-1)?.score;
    if (last === undefined || found.length < pageSize) return [...members];
    const readOfLast = found.filter(({ score }) => score === last).length;
    offset = last === minScore ? offset + readOfLast : readOfLast;
    minScore = last;
  }
}
