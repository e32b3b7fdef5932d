import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/telemetry.ts";
import { type BackgroundScrub, createBackgroundScrub, type ScrubServer } from "../background-scrub.ts";
import type { PostgresConnection } from "./postgres-client.ts";
import { quoteSchema } from "./postgres-schema.ts";

/** What the scrubber works with. */
export interface PostgresScrubberOptions {
  readonly connection: PostgresConnection;
  readonly log: Log;
  readonly clock: Clock;
  /** Tables up to this size are rewritten as a whole. Default 32 MiB, which takes a fraction of a second. */
  readonly maxRewriteBytes?: number | undefined;
}

const markName = "scrub";
const tables = ["entries", "rankings"] as const;
const mebibyte = 1024 * 1024;
const vacuumTimeoutMs = 30 * 60_000;
/** A rewrite holds up everything else while it waits for its lock. */
const lockTimeoutMs = 1000;

/**
 * Removes deleted rows from the tables. A small table is rewritten, so that its file has nothing of them; a large one
 * is vacuumed, which frees their space: it holds their bytes until new rows take it.
 * @see docs/security.md for what remains in the log and in backups
 */
export function createPostgresScrubber(options: PostgresScrubberOptions): BackgroundScrub {
  const { connection, log, clock, maxRewriteBytes = 32 * mebibyte } = options;
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
    onFailure(error, what, isFirst) {
      log[what === "rewrite" && isFirst ? "warn" : "debug"](
        { error: String(error) },
        "Postgres did not vacuum the store's tables, so deleted text may still be in their files: tried again every ten minutes",
      );
    },
  };
  return createBackgroundScrub(server, clock);
}
