import { createHash, randomUUID } from "node:crypto";
import type { ClientBase } from "pg";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";
import { backoffMs, backoffs, retry } from "../../support/retry.ts";
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
import {
  type PostgresConnection,
  connectPostgres,
  isCollision,
  isEmptied,
  isOfOneWrite,
} from "./postgres-client.ts";
import { createSqlEngine, type Outcome, type SqlRow, type SqlWrite, type Step } from "./engine.ts";
import { quoteSchema, prepareDatabase } from "./postgres-schema.ts";
import { createTables, type SqlDialect } from "./statements.ts";
import { createWriteQueue } from "./write-queue.ts";

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
  const found = await prepareDatabase(connection, {
    isLook,
    isBot: raisesVersion(options),
    tables: createTables(toDialect(schema)),
    report,
  });
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

  const writer = createPostgresWriter({ connection, maxWaitMs: deadlineMs, clock });
  const read = (step: Step) => attempt(() => connection.reading((client) => run(client, step)));
  const engine = createSqlEngine(toDialect(schema), {
    read: async (step) => (await read(step)).rows,
    async readValues(addresses, statement) {
      const rows = addresses.map(({ space, key }) => [space, key]);
      const found = await read({ statement, rows });
      return found.rows.map(([value]) => (typeof value === "string" ? value : undefined));
    },
    write: (work) => write(() => writer.write(work)),
    sinceMs: () => systemClock.now(),
  });

  const backend: Backend = {
    ...engine,
    async apply(conditions, changes, resolves) {
      const unmet = await engine.apply(conditions, changes, resolves);
      if (resolves === "scrubbed") await scrubber.request();
      return unmet;
    },
    lease: createPostgresLeases(connection),
    async look(sweepUntil) {
      let swept = 0;
      if (sweepUntil !== undefined) {
        await scrubber.resume();
        swept = await engine.sweep(sweepUntil);
      }
      await watch.check();
      if (isInDoubt) await engine.apply([], []);
      return { problems: [], swept };
    },
    async close() {
      watch.close();
      await connection.close();
    },
  };
  return {
    backend,
    name,
    blobs: "entries",
    writes: () => ({ commits: writer.commits, durableCommits: writer.commits, syncs: 0 }),
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

/** Keeps each lease in a row, which expires by the database's clock. */
function createPostgresLeases({
  schema,
  attempt,
  withClient,
}: Pick<PostgresConnection, "schema" | "attempt" | "withClient">): Backend["lease"] {
  const leases = `${quoteSchema(schema)}.leases`;
  const change = async (text: string, values: readonly unknown[]): Promise<boolean> =>
    attempt(async () => {
      const { rowCount } = await withClient((client) => client.query(text, [...values]));
      return rowCount === 1;
    });
  // If a crash of the server undoes one of these, the lease ends earlier or later, which harms nobody.
  const withoutWaiting = "set_config('synchronous_commit', 'off', true) IS NOT NULL";
  const isOver = "expires <= clock_timestamp()";
  return (name, holder, ttlMs) =>
    ttlMs === "release"
      ? change(`DELETE FROM ${leases} WHERE name = $1 AND holder = $2 AND ${withoutWaiting}`, [name, holder])
      : change(
          // It is looked up first, because a failed attempt to insert would lock the holder's row.
          `INSERT INTO ${leases} AS held (name, holder, expires)
           SELECT $1, $2, clock_timestamp() + $3 * interval '1 millisecond'
           WHERE NOT EXISTS (SELECT FROM ${leases} WHERE name = $1 AND holder <> $2 AND NOT ${isOver})
           ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
           WHERE CASE WHEN held.${isOver} THEN true
             ELSE held.holder = excluded.holder AND ${withoutWaiting} END`,
          [name, holder, ttlMs],
        );
}

/** The Unix ms of the database's clock, by which entries expire for every process. */
const nowMs = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

const toDialect = (schema: string): SqlDialect => {
  const table = (name: string) => `${quoteSchema(schema)}.${name}`;
  const types = { text: "text", integer: "bigint" } as const;
  return {
    tables: { entries: table("entries"), rankings: table("rankings"), counts: table("counts") },
    space: "space",
    parameter: (position, type) => `$${position}::${types[type]}`,
    // All rows go in one round trip, a column in each parameter.
    rows: (columns) => {
      const arrays = Object.values(columns).map((type, at) => `$${at + 1}::${types[type]}[]`);
      return `unnest(${arrays.join(", ")}) WITH ORDINALITY AS wanted (${Object.keys(columns).join(", ")}, position)`;
    },
    addresses: "unnest($1::text[], $2::text[]) WITH ORDINALITY AS wanted (space, key, position)",
    inOrder: "ORDER BY position",
    now: nowMs,
    since: nowMs,
    greatest: "greatest",
    // It does not wait for rows that another process changes or removes.
    sweep: (max) =>
      `DELETE FROM ${table("entries")} WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM ${table("entries")} WHERE expires <= least($1::bigint, ${nowMs})
         ORDER BY expires LIMIT ${max} FOR UPDATE SKIP LOCKED))`,
    text: `text COLLATE "C"`,
    integer: "bigint",
    storage: {
      entries: "WITH (autovacuum_vacuum_scale_factor = 0.05)",
      rankings: "WITH (autovacuum_vacuum_scale_factor = 0.02)",
      counts: "WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02)",
    },
    byScore: "ranking, score, member",
  };
};

/** Runs a statement with its rows, at once if it takes all. It throws the service's errors. */
async function run(client: ClientBase, { statement, rows }: Step): Promise<Outcome> {
  if (rows.length === 0) return { rows: [], changed: 0 };
  const { text, takes } = statement;
  const runs = takes === "row" ? rows : [(rows[0] ?? []).map((_, column) => rows.map((row) => row[column]))];
  const found: SqlRow[] = [];
  let changed = 0;
  for (const values of runs) {
    const result = await client.query<unknown[]>({ text, values: [...values], rowMode: "array" });
    found.push(...result.rows);
    changed += result.rowCount ?? 0;
  }
  return { rows: found, changed };
}

/** The limits of a batch. By default the server has 6,400 locks for all its clients together. */
const maxLocks = 400;
const maxWrites = 50;
/** A write with longer contents, such as pictures and recordings, is sent in parallel to the others. */
const largeChars = 100_000;
const maxCollisions = 8;

/** What is acknowledged is on disk, whatever is set for the role or the database. */
const begin = `BEGIN;
  SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'`;
/** In the order of their numbers, which prevents most deadlocks. */
const toLockText = (locks: ReadonlySet<bigint>): string =>
  [...locks]
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((number) => `; SELECT pg_advisory_xact_lock('${number}')`)
    .join("");

/** A write with the locks of everything that it checks or changes, which other processes may change too. */
interface LockedWrite {
  readonly write: SqlWrite;
  readonly locks: ReadonlySet<bigint>;
}

/**
 * Writes one transaction at a time. Under READ COMMITTED its checks see the writes for which its locks
 * waited. It throws the errors of the service.
 */
function createPostgresWriter({
  connection: { schema, withClient },
  maxWaitMs,
  clock,
}: {
  readonly connection: Pick<PostgresConnection, "schema" | "withClient">;
  readonly maxWaitMs: number;
  readonly clock: Clock;
}) {
  let commits = 0;
  // Other schemas of a database have other locks.
  const toLock = (name: string, key: string): bigint =>
    createHash("sha1").update(`parley/${schema}\0${name}\0${key}`).digest().readBigInt64BE();

  const transact = (writes: readonly LockedWrite[]) =>
    withClient(async (client) => {
      try {
        await client.query(begin + toLockText(new Set(writes.flatMap(({ locks }) => [...locks]))));
        const results: unknown[] = [];
        for (const { write } of writes) {
          const steps = write.steps();
          let next = steps.next();
          while (next.done !== true) next = steps.next(await run(client, next.value));
          results.push(next.value);
        }
        await client.query("COMMIT");
        commits++;
        return results;
      } catch (error) {
        await client.query("ROLLBACK").catch(() => {
          // The connection is gone, and the transaction with it.
        });
        throw error;
      }
    });

  const commit = (writes: readonly LockedWrite[]) =>
    retry(() => transact(writes), {
      // Nothing of the batch was written.
      delayMs: (error, attempt) =>
        isCollision(error) && attempt < maxCollisions
          ? backoffMs(attempt, backoffs.collision) * (0.5 + Math.random())
          : undefined,
    });

  const countLocks = (writes: readonly LockedWrite[]) =>
    writes.reduce((sum, { locks }) => sum + locks.size, 0);
  const queue = createWriteQueue<LockedWrite>({
    commit,
    isOfOneWrite,
    fits: (batch, next) => batch.length < maxWrites && countLocks([...batch, next]) <= maxLocks,
    maxWaitMs,
    clock,
  });

  return {
    /** The number of committed transactions. */
    get commits() {
      return commits;
    },
    async write<T>(write: SqlWrite<T>): Promise<T> {
      const locks = write
        .touches()
        .map((at) => ("space" in at ? toLock(at.space, at.key) : toLock(at.index, at.member)));
      const locked = { write, locks: new Set(locks) };
      return (await (write.chars() > largeChars
        ? commit([locked]).then(([one]) => one)
        : queue(locked))) as T;
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
