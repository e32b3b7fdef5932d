import { randomUUID } from "node:crypto";
import type { Log } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";
import {
  type Backend,
  type BackendOptions,
  type OpenedBackend,
  raisesVersion,
  reportVersion,
} from "../backend.ts";
import {
  type BackgroundScrub,
  createBackgroundScrub,
  type ScrubServer,
  watchServer,
} from "../server-store.ts";
import type { Leases } from "../leased-queue.ts";
import { type PostgresConnection, connectPostgres, isEmptied } from "./postgres-client.ts";
import { quoteSchema, prepareDatabase } from "./postgres-schema.ts";
import { createPostgresWriter, nowMs, tableOf } from "./postgres-writer.ts";

const sweepBatch = 500;

/**
 * Opens the backend for several instances on a Postgres server. Every write is on disk when it resolves.
 * @throws ParleyError `config`, `store-unavailable`, `store-corrupt`, `store-newer`
 */
export async function openPostgresBackend(url: string, options: BackendOptions): Promise<OpenedBackend> {
  const connection = await connectPostgres(url, options);
  try {
    return await openOn(connection, options);
  } catch (error) {
    await connection.close();
    throw error;
  }
}

async function openOn(connection: PostgresConnection, options: BackendOptions): Promise<OpenedBackend> {
  const { log, deadlineMs = 5000, clock = systemClock, report = () => {}, isLook = false } = options;
  const { address, attempt, schema } = connection;
  const name = `Postgres at ${address}, schema ${schema}${connection.isEncrypted ? " (TLS)" : ""}`;
  const found = await prepareDatabase(connection, { isLook, isBot: raisesVersion(options), report });
  reportVersion(name, found, options);
  const scrubber = createPostgresScrubber(connection, log);
  const watch = await watchServer({
    store: name,
    readMark: await createMark(connection),
    scrubber,
    onReady: connection.onRestored,
    onDataLost: options.onDataLost ?? (() => {}),
    log,
    clock,
  });

  const writer = createPostgresWriter({
    connection,
    maxWaitMs: deadlineMs,
    now: () => systemClock.now(),
    clock,
  });
  const reader = createPostgresReader({
    schema,
    read: (text, values) => attempt(() => connection.read(text, values)),
  });
  /** Whether the last write failed, so that a check must try one. */
  let isInDoubt = false;
  const write = <T>(work: () => Promise<T>): Promise<T> =>
    attempt(async () => {
      try {
        const result = await work();
        isInDoubt = false;
        return result;
      } catch (error) {
        isInDoubt = true;
        throw error;
      }
    });

  const backend: Backend = {
    ...reader,
    apply: (conditions, changes) => write(() => writer.apply(conditions, changes)),
    count: (limits, changes) => write(() => writer.count(limits, changes)),
    async sweep(before) {
      await scrubber.resume();
      const remove = `
        DELETE FROM ${quoteSchema(schema)}.entries WHERE ctid = ANY (ARRAY(
          SELECT ctid FROM ${quoteSchema(schema)}.entries WHERE expires <= least($1, ${nowMs})
          ORDER BY expires LIMIT ${sweepBatch} FOR UPDATE SKIP LOCKED
        ))`;
      for (let total = 0; ;) {
        const { rowCount } = await attempt(() =>
          connection.withClient((client) => client.query(remove, [before])),
        );
        total += rowCount ?? 0;
        if ((rowCount ?? 0) < sweepBatch) return total;
      }
    },
    scrub: () => scrubber.request(),
    writes: () => ({ commits: writer.commits, durableCommits: writer.commits, syncs: 0 }),
    async ping() {
      await watch.check();
      if (isInDoubt) await write(() => writer.apply([], []));
    },
    problems: () => [],
    async close() {
      watch.close();
      await connection.close();
    },
  };
  return {
    backend,
    name,
    blobs: "entries",
    leases: createPostgresLeases(connection),
    restored: undefined,
    async sizeBytes() {
      const [row] = await attempt(() =>
        connection.read<{ bytes: string }>(
          `SELECT sum(pg_total_relation_size(oid)) AS bytes FROM pg_class
           WHERE relnamespace = $1::regnamespace AND relkind = 'r'`,
          [quoteSchema(schema)],
        ),
      );
      return Number(row?.bytes ?? 0);
    },
    backup: { unsupported: "Postgres has backups of its own: use pg_dump, or copies of its server" },
  };
}

/** If a crash of the server undoes a renewal, the lease ends earlier, which harms nobody. */
const withoutWaiting = "set_config('synchronous_commit', 'off', true) IS NOT NULL";

/** Keeps each lease in a row, which expires by the database's clock. */
function createPostgresLeases({
  schema,
  attempt,
  withClient,
}: Pick<PostgresConnection, "schema" | "attempt" | "withClient">): Leases {
  const leases = `${quoteSchema(schema)}.leases`;
  const change = async (text: string, values: readonly unknown[]): Promise<boolean> =>
    attempt(async () => {
      const { rowCount } = await withClient((client) => client.query(text, [...values]));
      return rowCount === 1;
    });
  const end = "clock_timestamp() + $3 * interval '1 millisecond'";
  return {
    take: (name, holder, ttlMs) =>
      change(
        // It is looked up first, because a failed attempt to insert would lock the holder's row.
        `INSERT INTO ${leases} AS held (name, holder, expires)
         SELECT $1, $2, ${end}
         WHERE NOT EXISTS (
           SELECT FROM ${leases} WHERE name = $1 AND holder <> $2 AND expires > clock_timestamp())
         ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
         WHERE held.holder = excluded.holder OR held.expires <= clock_timestamp()`,
        [name, holder, ttlMs],
      ),
    renew: (name, holder, ttlMs) =>
      change(
        `UPDATE ${leases} SET expires = ${end}
         WHERE name = $1 AND holder = $2 AND expires > clock_timestamp() AND ${withoutWaiting}`,
        [name, holder, ttlMs],
      ),
    async release(name, holder) {
      await change(`DELETE FROM ${leases} WHERE name = $1 AND holder = $2 AND ${withoutWaiting}`, [
        name,
        holder,
      ]);
    },
  };
}

const isAlive = `(expires IS NULL OR expires > ${nowMs})`;
const pageSize = 500;

/** Reads entries and sorted indexes. */
function createPostgresReader({
  read,
  schema,
}: Pick<PostgresConnection, "read" | "schema">): Pick<
  Backend,
  "read" | "has" | "readIndex" | "keys" | "expiries" | "indexNames"
> {
  const entries = `${quoteSchema(schema)}.entries`;
  // Each key is read by itself. With `= ANY` and old statistics, a planner reads and filters the whole space.
  const lookUp = (column: string): string => `
    SELECT wanted.key, found.* FROM unnest($2::text[]) AS wanted (key)
    CROSS JOIN LATERAL (
      SELECT ${column} FROM ${entries} AS entry
      WHERE entry.space = $1 AND entry.key = wanted.key AND ${isAlive} LIMIT 1
    ) AS found`;
  return {
    async read(space, keys) {
      const rows = await read<{ key: string; value: string }>(lookUp("value"), [space, keys]);
      const values = new Map(rows.map(({ key, value }) => [key, value]));
      return keys.map((name) => values.get(name));
    },
    async has(space, keys) {
      const rows = await read<{ key: string }>(lookUp("1"), [space, keys]);
      const found = new Set(rows.map(({ key }) => key));
      return keys.map((name) => found.has(name));
    },
    async readIndex(name, { order, after, max }) {
      const [direction, isBehind] = order === "highest-first" ? ["DESC", "<"] : ["ASC", ">"];
      const rest = after === undefined ? "" : `AND (score, t.member) ${isBehind} ($3, $4)`;
      const rows = await read<{ member: string; score: string }>(
        `SELECT t.member, score FROM ${quoteSchema(schema)}.${tableOf(name)} AS t
         WHERE ranking = $1 ${rest} ORDER BY score ${direction}, t.member ${direction} LIMIT $2`,
        [name, max, ...(after === undefined ? [] : [after.score, after.member])],
      );
      return rows.map(({ member, score }) => ({ member, score: Number(score) }));
    },
    async *keys(space) {
      for (let last = ""; ;) {
        const rows = await read<{ key: string }>(
          `SELECT key FROM ${entries} WHERE space = $1 AND key > $2 AND ${isAlive} ORDER BY key LIMIT ${pageSize}`,
          [space, last],
        );
        for (const { key } of rows) yield key;
        if (rows.length < pageSize) return;
        last = rows.at(-1)?.key ?? last;
      }
    },
    async expiries(space, keys) {
      const rows = await read<{ key: string; ttl: string | null }>(lookUp(`expires - ${nowMs} AS ttl`), [
        space,
        keys,
      ]);
      const now = systemClock.now();
      const found = new Map(rows.map(({ key, ttl }) => [key, ttl === null ? undefined : now + Number(ttl)]));
      return keys.map((name) => found.get(name));
    },
    async *indexNames() {
      const of = (table: string) => `SELECT ranking FROM ${quoteSchema(schema)}.${table}`;
      const rows = await read<{ ranking: string }>(`${of("rankings")} UNION ${of("counts")}`, []);
      for (const { ranking } of rows) yield ranking;
    },
  };
}

const markName = "scrub";
const tables = ["entries", "rankings"] as const;
/** Tables up to this size are rewritten as a whole, which is fast. */
const maxRewriteBytes = 32 * 1024 * 1024;
const vacuumTimeoutMs = 30 * 60_000;
/** A rewrite blocks everything else while it waits for its lock. */
const lockTimeoutMs = 1000;

/**
 * Removes deleted rows from the tables. A small table is rewritten, so that its file keeps nothing of them. A
 * large one is vacuumed, so that its file keeps their bytes until new rows take the space.
 * @see docs/security.md for what remains in the log and in backups
 */
function createPostgresScrubber(connection: PostgresConnection, log: Log): BackgroundScrub {
  const { attempt, read, withClient } = connection;
  const schema = quoteSchema(connection.schema);
  const change = (text: string, values: readonly string[]) =>
    attempt(() => withClient((client) => client.query(text, [...values])));

  const clean = async (table: string) => {
    const [row] = await attempt(() =>
      read<{ bytes: string }>("SELECT pg_total_relation_size($1::regclass) AS bytes", [`${schema}.${table}`]),
    );
    const isSmall = Number(row?.bytes ?? 0) <= maxRewriteBytes;
    await withClient(
      async (client) => {
        await client.query(`SET statement_timeout = ${vacuumTimeoutMs}; SET lock_timeout = ${lockTimeoutMs}`);
        if (!isSmall) await client.query(`VACUUM ${schema}.${table}`);
        else
          await client.query(`VACUUM FULL ${schema}.${table}`).catch(async (error: unknown) => {
            log.debug({ error: String(error) }, "a table could not be rewritten, so it is vacuumed");
            await client.query(`VACUUM ${schema}.${table}`);
          });
      },
      { isAlone: true },
    );
  };

  const server: ScrubServer = {
    async store(id) {
      await change(
        `INSERT INTO ${schema}.marks (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
        [markName, id],
      );
    },
    async stored() {
      const [row] = await attempt(() =>
        read<{ value: string }>(`SELECT value FROM ${schema}.marks WHERE name = $1`, [markName]),
      );
      return row?.value;
    },
    async settle(id) {
      await change(`DELETE FROM ${schema}.marks WHERE name = $1 AND value = $2`, [markName, id]);
    },
    async rewrite() {
      for (const table of tables) await clean(table);
    },
    onFailure(error, isFirst) {
      log[isFirst ? "warn" : "debug"](
        { error: String(error) },
        "Postgres did not vacuum the store's tables, so deleted text may still be in their files: tried again every ten minutes",
      );
    },
  };
  return createBackgroundScrub(server);
}

/** This is no space of the store. The mark is among the entries so that emptying the table removes it. */
const markSpace = "mark";
const markKey = "generation";

/**
 * Writes the database's mark for the watch if there is none, and returns a function that reads it. That
 * fails if the database refuses writes.
 */
async function createMark(connection: PostgresConnection): Promise<() => Promise<string | undefined>> {
  const { attempt, read, schema, withClient } = connection;
  const entries = `${quoteSchema(schema)}.entries`;
  await attempt(() =>
    withClient((client) =>
      client.query(`INSERT INTO ${entries} (space, key, value) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, [
        markSpace,
        markKey,
        randomUUID(),
      ]),
    ),
  );
  const readMark = async () => {
    const [row] = await read<{ mark: string | null; is_read_only: boolean }>(
      `SELECT (SELECT value FROM ${entries} WHERE space = $1 AND key = $2) AS mark,
         current_setting('transaction_read_only') = 'on' AS is_read_only`,
      [markSpace, markKey],
    );
    // The same error as that of a write.
    if (row?.is_read_only === true)
      throw Object.assign(new Error("read-only"), { code: "25006", severity: "ERROR" });
    return row?.mark ?? undefined;
  };
  return () =>
    attempt(() =>
      readMark().catch((error: unknown) => {
        if (isEmptied(error)) return undefined;
        throw error;
      }),
    );
}
