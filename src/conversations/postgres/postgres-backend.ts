import { type Backend, type EntryReader, spaces, type Space } from "../backend.ts";
import { systemClock } from "../../support/clock.ts";
import { steadyClock } from "../../support/steady-clock.ts";
import { describeLosses } from "../data-loss-watch.ts";
import { type Leases, withCheck } from "../leased-queue.ts";
import {
  connectPostgres,
  type PostgresConnection,
  type PostgresConnectionOptions,
} from "./postgres-client.ts";
import { isEmptied } from "./postgres-errors.ts";
import { watchPostgresGeneration } from "./postgres-generation.ts";
import { createPostgresLeases } from "./postgres-leases.ts";
import { createPostgresReader, nowMs } from "./postgres-reader.ts";
import { migrate, quoteSchema } from "./postgres-schema.ts";
import { createPostgresScrubber } from "./postgres-scrubber.ts";
import { createPostgresWriter, type WriteOutcome } from "./postgres-writer.ts";
import { createWriteEncoder, type EncodedWrite } from "./write-steps.ts";
import { prepareDatabase } from "./prepare-database.ts";

/** How often an idle process looks whether the database still has its data. */
const checkIntervalMs = 15_000;
const sweepBatch = 500;

/** {@link Backend} with leases. */
export interface PostgresBackend extends Backend {
  readonly leases: Leases;
  /** Where the store is, without credentials. */
  readonly name: string;
  /** Of the schema's tables and their indexes. */
  sizeBytes(): Promise<number>;
}

/**
 * The backend for several instances on a Postgres server: every write is on disk when it resolves.
 * @throws ParleyError `config`, `store-unavailable`, `store-corrupt`, `store-newer`
 */
export async function openPostgresBackend(
  url: string,
  options: PostgresConnectionOptions,
): Promise<PostgresBackend> {
  const connection = await connectPostgres(url, options);
  try {
    return await openOn(connection, options);
  } catch (error) {
    await connection.close();
    throw error;
  }
}

async function openOn(
  connection: PostgresConnection,
  { log, deadlineMs = 5000, clock = systemClock }: PostgresConnectionOptions,
): Promise<PostgresBackend> {
  const { address, attempt, schema } = connection;
  await prepareDatabase(connection, log);
  let onDataLost = async () => {};
  let isRestoring = false;
  const generation = await watchPostgresGeneration({
    connection,
    log,
    clock,
    restore: async () => {
      isRestoring = true;
      try {
        await attempt(() => connection.withClient((client) => migrate(client, schema, { address })));
        await onDataLost();
      } finally {
        isRestoring = false;
      }
    },
  });
  const checkGeneration = async () => {
    await generation.check().catch((error: unknown) => {
      log.debug({ error }, "whether Postgres has its data could not be checked; checked again soon");
    });
  };

  /** Where the tables are gone, they are created and what was lost is restored before the work is tried again. */
  const withTables = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (!isEmptied(error) || isRestoring) throw error;
      await generation.check();
      return await work();
    }
  };
  const guarded: PostgresConnection = {
    ...connection,
    read: (text, values) => withTables(() => connection.read(text, values)),
    withClient: (work, how) => withTables(() => connection.withClient(work, how)),
  };
  const { withClient } = guarded;
  const encoder = createWriteEncoder(schema);
  const writer = createPostgresWriter({
    connection,
    commonLock: encoder.commonLock,
    maxWaitMs: deadlineMs,
    clock,
  });
  const reader = createPostgresReader(guarded);
  const readers = new Map(spaces.map((space) => [space, reader.ofSpace(space)]));
  const scrubber = createPostgresScrubber({ connection, log, clock });

  connection.onRestored(() => void checkGeneration().then(() => scrubber.resume()));
  // Not waited for: a start must not depend on what an earlier process left undone.
  void scrubber.resume();
  const stopChecks = clock.every(checkIntervalMs, () => void checkGeneration());

  /** The last write failed, so a check must try one. */
  let isInDoubt = false;
  const write = (encoded: EncodedWrite): Promise<WriteOutcome> =>
    attempt(async () => {
      try {
        const outcome = await withTables(() => writer.write(encoded));
        isInDoubt = false;
        return outcome;
      } catch (error) {
        isInDoubt = true;
        throw error;
      }
    });
  const now = () => steadyClock.latest();

  return {
    name: `Postgres at ${address}, schema ${schema}${connection.isEncrypted ? " (TLS)" : ""}`,
    attempt,
    leases: withCheck(createPostgresLeases(guarded), checkGeneration),
    reader: (space: Space) => readers.get(space) as EntryReader,
    async apply(conditions, changes) {
      return (await write(encoder.apply(conditions, changes, now()))).outcome;
    },
    async count(limits, changes) {
      const { outcome, scores } = await write(encoder.count(limits, changes));
      return outcome === -1 ? undefined : { position: outcome, scores };
    },
    async replace(at, old, value) {
      return (await write(encoder.replace(at, old, value))).outcome === 1;
    },
    readIndex: (name, page) => attempt(() => reader.readIndex(name, page)),
    keys: (space) => reader.keys(space),
    async sweep(before) {
      await scrubber.resume();
      const remove = `
        DELETE FROM ${quoteSchema(schema)}.entries WHERE ctid = ANY (ARRAY(
          SELECT ctid FROM ${quoteSchema(schema)}.entries WHERE expires <= least($1, ${nowMs})
          ORDER BY expires LIMIT ${sweepBatch} FOR UPDATE SKIP LOCKED
        ))`;
      for (let total = 0; ;) {
        const { rowCount } = await attempt(() => withClient((client) => client.query(remove, [before])));
        total += rowCount ?? 0;
        if ((rowCount ?? 0) < sweepBatch) return total;
      }
    },
    scrub: () => scrubber.request(),
    async sizeBytes() {
      const [row] = await attempt(() =>
        guarded.read<{ bytes: string }>(
          `SELECT sum(pg_total_relation_size(oid)) AS bytes FROM pg_class
           WHERE relnamespace = $1::regnamespace AND relkind = 'r'`,
          [quoteSchema(schema)],
        ),
      );
      return Number(row?.bytes ?? 0);
    },
    writes: () => ({ commits: writer.commits, durableCommits: writer.commits, syncs: 0 }),
    async ping() {
      await generation.check();
      if (isInDoubt) await write(encoder.apply([], [], now()));
    },
    notes: () => ({
      problems: [],
      warnings: describeLosses(generation.losses, "Postgres"),
      dataLosses: generation.losses.count,
    }),
    onDataLost(listener) {
      onDataLost = listener;
    },
    async close() {
      stopChecks();
      scrubber.close();
      await connection.close();
    },
  };
}
