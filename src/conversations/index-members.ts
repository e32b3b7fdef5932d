import type { KeyValueStore } from "./key-value.ts";

const pageSize = 500;

/** All members of a sorted index, lowest score first. */
export async function readMembers(store: KeyValueStore, index: string): Promise<readonly string[]> {
  const members: string[] = [];
  for (;;) {
    const page = { order: "lowest-first", offset: members.length, max: pageSize } as const;
    const found = await store.backend.readIndex(index, page);
    members.push(...found.map(({ member }) => member));
    if (found.length < pageSize) return members;
  }
}
