import type { EntryReader, IndexMember, IndexPage, Space } from "../backend.ts";
import type { PostgresConnection } from "./postgres-client.ts";
import { quoteSchema } from "./postgres-schema.ts";
import { fromStored, toStored } from "./stored-name.ts";
import { tableOf } from "./write-steps.ts";

/** Unix ms of the database's clock, which ends the entries. */
export const nowMs = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

const isAlive = `(expires IS NULL OR expires > ${nowMs})`;
const pageSize = 500;

/** Reads entries and sorted indexes. Throws the errors of the service. */
export interface PostgresReader {
  ofSpace(space: Space): EntryReader;
  readIndex(name: string, page: IndexPage): Promise<readonly IndexMember[]>;
  /** `attempt` wraps each page. */
  keys(space: Space): AsyncIterable<string>;
}

/** @see {@link PostgresReader} */
export function createPostgresReader({
  read,
  schema,
  attempt,
}: Pick<PostgresConnection, "read" | "schema" | "attempt">): PostgresReader {
  const entries = `${quoteSchema(schema)}.entries`;
  // Each key by itself: with `= ANY`, a planner whose statistics are old reads the whole space and filters it.
  const lookUp = (column: string): string => `
    SELECT wanted.key, found.* FROM unnest($2::text[]) AS wanted (key)
    CROSS JOIN LATERAL (
      SELECT ${column} FROM ${entries} AS entry
      WHERE entry.space = $1 AND entry.key = wanted.key AND ${isAlive} LIMIT 1
    ) AS found`;
  return {
    ofSpace: (space) => ({
      async get(key) {
        const [row] = await read<{ value: string }>(
          `SELECT value FROM ${entries} WHERE space = $1 AND key = $2 AND ${isAlive}`,
          [space, toStored(key).name],
        );
        return row?.value;
      },
      async getMany(keys) {
        const names = keys.map((key) => toStored(key).name);
        const rows = await read<{ key: string; value: string }>(lookUp("value"), [space, names]);
        const values = new Map(rows.map(({ key, value }) => [key, value]));
        return names.map((name) => values.get(name));
      },
      async hasMany(keys) {
        const names = keys.map((key) => toStored(key).name);
        const rows = await read<{ key: string }>(lookUp("1"), [space, names]);
        const found = new Set(rows.map(({ key }) => key));
        return names.map((name) => found.has(name));
      },
    }),
    async readIndex(name, { order, minScore = Number.MIN_SAFE_INTEGER, offset, max }) {
      const direction = order === "highest-first" ? "DESC" : "ASC";
      const rows = await read<{ member: string; score: string }>(
        `SELECT coalesce(original, member) AS member, score FROM ${quoteSchema(schema)}.${tableOf(name)} AS t
         WHERE ranking = $1 AND score >= $4 ORDER BY score ${direction}, t.member ${direction} LIMIT $2 OFFSET $3`,
        [toStored(name).name, max, offset, minScore],
      );
      return rows.map(({ member, score }) => ({ member: fromStored(member), score: Number(score) }));
    },
    async *keys(space) {
      for (let last = ""; ;) {
        const after = last;
        const rows = await attempt(() =>
          read<{ key: string; original: string | null }>(
            `SELECT key, original FROM ${entries} WHERE space = $1 AND key > $2 AND ${isAlive} ORDER BY key LIMIT ${pageSize}`,
            [space, after],
          ),
        );
        for (const { key, original } of rows) yield fromStored(original ?? key);
        if (rows.length < pageSize) return;
        last = rows.at(-1)?.key ?? last;
      }
    },
  };
}
