import { randomUUID } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import { type DataLossWatch, watchDataLoss } from "../data-loss-watch.ts";
import type { PostgresConnection } from "./postgres-client.ts";
import { isConnectionLost, isEmptied } from "./postgres-errors.ts";
import { migrate, quoteSchema } from "./postgres-schema.ts";

/** What the watch works with. */
export interface PostgresGenerationOptions {
  readonly connection: PostgresConnection;
  readonly log: Log;
  /** Writes what the emptied database must have again. Repeated at the next check when it fails. */
  readonly restore: () => Promise<void>;
  readonly clock: Clock;
}

/** No space of the store: it stands among the entries so that emptying their table removes it. */
const markSpace = "mark";
const markKey = "generation";
/** Of the log of the database: a replica that is promoted begins a new one. */
const timelineText = "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline";

/**
 * Watches a mark in the database, and writes one if it has none. Also notices that a replica was promoted, which may
 * lack the last writes.
 */
export async function watchPostgresGeneration(options: PostgresGenerationOptions): Promise<DataLossWatch> {
  const { connection, log, restore, clock } = options;
  const { address, attempt, read, schema, withClient } = connection;
  const entries = `${quoteSchema(schema)}.entries`;

  const readState = async () => {
    const [row] = await read<{ generation: string | null; is_read_only: boolean }>(
      `SELECT (SELECT value FROM ${entries} WHERE space = $1 AND key = $2) AS generation,
         current_setting('transaction_read_only') = 'on' AS is_read_only`,
      [markSpace, markKey],
    );
    if (row?.is_read_only === true) throw toReadOnlyError(address);
    return row?.generation ?? undefined;
  };
  const createMark = () =>
    withClient(async (client) => {
      await migrate(client, schema, { address });
      await client.query(
        `INSERT INTO ${entries} (space, key, value) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
        [markSpace, markKey, randomUUID()],
      );
    });
  const readGeneration = async () => {
    const found = await readState().catch((error: unknown) => {
      if (isEmptied(error)) return undefined;
      throw error;
    });
    if (found !== undefined) return found;
    await createMark();
    return await readState();
  };

  // Some services that speak Postgres' protocol have no such log.
  let hasTimeline = true;
  const readTimeline = async () => {
    if (!hasTimeline) return "";
    try {
      const [row] = await read<{ timeline: string }>(timelineText);
      return row?.timeline ?? "";
    } catch (error) {
      if (isConnectionLost(error)) throw error;
      log.debug({ error: String(error) }, "the timeline of Postgres cannot be read");
      hasTimeline = false;
      return "";
    }
  };
  await attempt(readTimeline);

  return watchDataLoss({
    restore,
    clock,
    readMark: () => attempt(async () => `${await readGeneration()}/${await readTimeline()}`),
    report(known, found) {
      if (known.split("/")[0] === found.split("/")[0]) {
        log.warn(
          { store: address },
          "another Postgres server has taken over: what the last one had acknowledged and not replicated is gone; messages that this process had accepted are stored anew. Replicate synchronously (synchronous_standby_names) where nothing may be lost",
        );
        return false;
      }
      log.error(
        { store: address },
        "Postgres lost its data: conversations and settings in it are gone, and messages that this process had accepted are stored anew. Find out who emptied it or put another database in its place; to restore a backup, stop Parley first",
      );
      return true;
    },
  });
}

function toReadOnlyError(address: string): ParleyError {
  const [problem, reason] = ["refuses writes: it is a replica, or read-only", "25006"];
  return new ParleyError("store-unavailable", `the Postgres store at ${address} ${problem} (${reason})`, {
    detail: { address, problem, reason },
  });
}
