import type { ClientBase, Pool, PoolConfig, QueryResultRow } from "pg";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";
import { withinDeadline } from "../response-deadline.ts";
import { isConnectionLost, reasonOf, toPostgresStoreError } from "./postgres-errors.ts";
import { parsePostgresUrl, type PostgresUrl } from "./postgres-url.ts";

/** A bounded pool of connections, which are made anew as they are lost. */
export interface PostgresConnection {
  /** `host:port/database`, without credentials. */
  readonly address: string;
  readonly schema: string;
  readonly isEncrypted: boolean;
  /**
   * Runs work within the deadline: a server that hangs is an outage like one that is down.
   * @throws ParleyError `store-unavailable`, `store-corrupt`; the outcome of what was sent is then unknown
   */
  readonly attempt: <T>(work: () => Promise<T>) => Promise<T>;
  /**
   * Runs statements on one connection, which is replaced when it fails or does not respond. `isAlone`: it is closed
   * afterwards, so that settings of the session end with the work, and may take longer than the deadline. Throws the
   * errors of the service.
   */
  readonly withClient: <T>(
    work: (client: ClientBase) => Promise<T>,
    options?: { isAlone?: boolean },
  ) => Promise<T>;
  /** One statement that reads: sent again if its connection was closed. Throws the errors of the service. */
  readonly read: <Row extends QueryResultRow>(
    text: string,
    values?: readonly unknown[],
  ) => Promise<readonly Row[]>;
  /** Called when the server responds again after an outage. One listener. */
  onRestored(listener: () => void): void;
  close(): Promise<void>;
}

/** How the connections are made. */
export interface PostgresConnectionOptions {
  readonly log: Log;
  /** Longest wait for a response, in milliseconds. Default 5 s. */
  readonly deadlineMs?: number | undefined;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
}

const idleMs = 30_000;
/** Connections that stay open while nothing is asked. */
const keptConnections = 2;

/**
 * What the store relies on, whatever is set for the role or the database. A generic plan is made while a table is
 * small, and would read all of it also when it has grown. The server ends what nobody waits for any more, and frees
 * its locks. Not as parameters of the connection, which PgBouncer refuses.
 */
const toSessionSettings = (deadlineMs: number): string => `
  SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
  SET enable_seqscan = off; SET jit = off; SET client_min_messages = warning;
  SET statement_timeout = ${deadlineMs}; SET idle_in_transaction_session_timeout = ${deadlineMs * 2}`;

/**
 * Connects to `postgres://`.
 * @throws ParleyError `store-unavailable`
 */
export async function connectPostgres(
  url: string,
  { log, deadlineMs = 5000, clock = systemClock }: PostgresConnectionOptions,
): Promise<PostgresConnection> {
  const { default: pg } = await import("pg");
  const parsed = parsePostgresUrl(url);
  const address = toAddress(new pg.Client({ connectionString: parsed.connectionString }));
  const toError = (error: unknown) => toPostgresStoreError(error, address);
  const { pool, isEncrypted } = await openPool(
    (config) => new pg.Pool({ ...toPoolConfig(parsed, deadlineMs), ...config }),
    parsed,
  ).catch((error: unknown) => {
    throw toError(error);
  });
  // One that was idle is closed; the next use makes another one.
  pool.on("error", (error) => log.debug({ reason: reasonOf(error) }, "idle Postgres connection closed"));

  let isDown = false;
  let onRestored = () => {};
  const noteOutage = (error: unknown) => {
    if (!isDown && !isClosed)
      log.warn({ store: address, reason: reasonOf(error) }, "Postgres connection lost");
    isDown = true;
  };
  const noteResponse = () => {
    if (!isDown) return;
    isDown = false;
    log.info({ store: address }, "Postgres connection restored");
    onRestored();
  };

  let isClosed = false;
  const withClient: PostgresConnection["withClient"] = async (work, { isAlone = false } = {}) => {
    try {
      const client = await pool.connect();
      // Without a listener it would be thrown; the statement that runs fails with it.
      const ignore = () => {};
      client.on("error", ignore);
      let failure: unknown;
      try {
        return await (isAlone ? work(client) : withinDeadline(() => work(client), { deadlineMs, clock }));
      } catch (error) {
        failure = error;
        throw error;
      } finally {
        client.off("error", ignore);
        client.release(isAlone || (failure !== undefined && isConnectionLost(failure)));
        if (failure === undefined) noteResponse();
      }
    } catch (error) {
      if (isConnectionLost(error)) noteOutage(error);
      throw error;
    }
  };

  return {
    address,
    schema: parsed.schema,
    isEncrypted,
    withClient,
    async attempt(work) {
      try {
        return await withinDeadline(work, { deadlineMs, clock });
      } catch (error) {
        throw toError(error);
      }
    },
    async read<Row extends QueryResultRow>(text: string, values: readonly unknown[] = []) {
      const query = () => withClient(async (client) => (await client.query<Row>(text, [...values])).rows);
      try {
        return await query();
      } catch (error) {
        // A connection that the server closed while it was idle: only its next use notices.
        if (!isConnectionLost(error) || isTimeout(error)) throw error;
        return await query();
      }
    },
    onRestored(listener) {
      onRestored = listener;
    },
    async close() {
      isClosed = true;
      // A statement that hangs is waited for no longer than any other.
      await withinDeadline(() => pool.end(), { deadlineMs, clock }).catch((error: unknown) => {
        log.debug({ error: toError(error) }, "Postgres connections were not closed in time");
      });
    },
  };
}

function toPoolConfig({ connectionString, maxConnections }: PostgresUrl, deadlineMs: number): PoolConfig {
  return {
    connectionString,
    application_name: "parley",
    max: maxConnections,
    min: keptConnections,
    idleTimeoutMillis: idleMs,
    connectionTimeoutMillis: deadlineMs,
    keepAlive: true,
    onConnect: (client) => client.query(toSessionSettings(deadlineMs)) as unknown as void,
  };
}

/** The first connection is tried once, and decides whether the others are encrypted where the URL leaves it open. */
async function openPool(
  create: (config: PoolConfig) => Pool,
  { tls }: PostgresUrl,
): Promise<{ readonly pool: Pool; readonly isEncrypted: boolean }> {
  const tryOpen = async (config: PoolConfig) => {
    const pool = create(config);
    try {
      (await pool.connect()).release();
      return pool;
    } catch (error) {
      await pool.end();
      throw error;
    }
  };
  if (tls === "from-url") return { pool: await tryOpen({}), isEncrypted: true };
  if (tls === "off") return { pool: await tryOpen({ ssl: false }), isEncrypted: false };
  try {
    return { pool: await tryOpen({ ssl: { rejectUnauthorized: false } }), isEncrypted: true };
  } catch (error) {
    if (!(error instanceof Error && error.message.includes("does not support SSL"))) throw error;
    return { pool: await tryOpen({ ssl: false }), isEncrypted: false };
  }
}

function toAddress({
  host,
  port,
  database,
}: {
  host: string;
  port: number;
  database?: string | undefined;
}): string {
  return `${host.startsWith("/") ? host : `${host}:${port}`}/${database ?? ""}`;
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && /^(no response within|timeout exceeded)/.test(error.message);
}
