import type { EntryReader, Space } from "../backend.ts";
import type { RedisConnection } from "./redis-connection.ts";
import { type KeyNames, tagOfEntry } from "./redis-layout.ts";

/** Reads the entries of a space. Of a cluster, those of each group are read from its server. */
export function createRedisReader(connection: RedisConnection, names: KeyNames, space: Space): EntryReader {
  const nameOf = (key: string) => names.entry({ space, key });
  const groupOf = (key: string) => (connection.isCluster ? tagOfEntry({ space, key }) : "");
  return {
    get: async (key) => (await connection.client.get(nameOf(key))) ?? undefined,
    async getMany(keys) {
      const found = new Map<string, string | null | undefined>();
      const groups = [...Map.groupBy(keys, groupOf).values()];
      await Promise.all(
        groups.map(async (group) => {
          const values = await connection.client.mGet(group.map(nameOf));
          for (const [index, key] of group.entries()) found.set(key, values[index]);
        }),
      );
      return keys.map((key) => found.get(key) ?? undefined);
    },
    // The client sends them all at once.
    hasMany: (keys) =>
      Promise.all(keys.map(async (key) => (await connection.client.exists(nameOf(key))) === 1)),
  };
}
