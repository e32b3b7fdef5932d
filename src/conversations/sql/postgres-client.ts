import type { ClientBase, Pool, PoolConfig, QueryResultRow } from "pg";
import { ParleyError } from "../../core/errors.ts";
import { systemClock } from "../../support/clock.ts";
import type { BackendOptions } from "../backend.ts";
import { withinDeadline } from "../server-store.ts";
import { parsePostgresUrl, type PostgresUrl } from "./postgres-url.ts";

/** A bounded pool of connections, which replaces lost ones. */
export interface PostgresConnection {
  /** `host:port/database` without credentials. */
  readonly address: string;
  readonly schema: string;
  readonly isEncrypted: boolean;
  /**
   * Runs work within the deadline, so that a server that hangs counts as an outage.
   * @throws ParleyError `store-unavailable` or `store-corrupt`, after which the outcome is unknown
   */
  readonly attempt: <T>(work: () => Promise<T>) => Promise<T>;
  /**
   * Runs statements on one connection, which is replaced if it fails or does not respond. With `isAlone` it
   * is closed afterwards, which ends the settings of its session, and may take longer than the deadline. It
   * throws the errors of the service.
   */
  readonly withClient: <T>(
    work: (client: ClientBase) => Promise<T>,
    options?: { isAlone?: boolean },
  ) => Promise<T>;
  /** Like `withClient` for work that reads, which is repeated if its connection closed. */
  readonly reading: <T>(work: (client: ClientBase) => Promise<T>) => Promise<T>;
  /** Runs a reading statement in the same way. */
  readonly read: <Row extends QueryResultRow>(
    text: string,
    values?: readonly unknown[],
  ) => Promise<readonly Row[]>;
  /** Called when the server responds again after an outage. There is one listener. */
  readonly onRestored: (listener: () => void) => void;
  close(): Promise<void>;
}

const idleMs = 30_000;
/** How many connections stay open while they are idle. */
const keptConnections = 2;

/**
 * Settings that the store needs, whatever is set for the role or the database. A generic plan is made while a
 * table is small, and without them would still read all of it later. The server ends abandoned work and frees
 * its locks. PgBouncer refuses these settings as parameters of the connection.
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
  { log, deadlineMs = 5000, clock = systemClock }: BackendOptions,
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
  // An idle connection was closed. The next use opens another one.
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
      // Without a listener the error would be thrown. The running statement fails with it anyway.
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
        // One to a replica stays with it, although the address may lead to the primary now.
        const isUseless = isConnectionLost(failure) || sqlStateOf(failure) === "25006";
        client.release(isAlone || (failure !== undefined && isUseless));
        if (failure === undefined) noteResponse();
      }
    } catch (error) {
      if (isConnectionLost(error)) noteOutage(error);
      throw error;
    }
  };

  const reading: PostgresConnection["reading"] = async (work) => {
    // The server may have closed each idle connection, which only its next use notices.
    for (let retries = Math.max(1, pool.idleCount); ; retries -= 1) {
      try {
        return await withClient(work);
      } catch (error) {
        if (retries === 0 || !isConnectionLost(error) || isTimeout(error)) throw error;
      }
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
    reading,
    read: <Row extends QueryResultRow>(text: string, values: readonly unknown[] = []) =>
      reading(async (client) => (await client.query<Row>(text, [...values])).rows),
    onRestored(listener) {
      onRestored = listener;
    },
    async close() {
      isClosed = true;
      // This waits for a hanging statement no longer than for any other.
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

/** Opens the first connection, which decides whether all are encrypted if the URL leaves that open. */
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

const noAnswer = "does not respond";
const lostTables = "has lost its tables";
const restoreIt = "restore a backup, or start Parley anew without them";
const lookAtIt = "look at Postgres and the network (?sslmode=require where it wants TLS)";
/**
 * What is wrong, and what to do about it, by the beginning of the code, which is an SQLSTATE of Postgres or a
 * code of the system.
 * @see https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const problems: readonly (readonly [code: string, problem: string, remedy: string])[] = [
  ["ECONNREFUSED", noAnswer, "nothing listens there: start Postgres, or correct STORE_URL and its port"],
  ["ENOTFOUND", noAnswer, "no such host name: correct STORE_URL"],
  [
    "28P01",
    "refuses this user or password",
    "correct user and password in STORE_URL: postgres://user:password@host:5432/database",
  ],
  [
    "28",
    "does not let this user or address in",
    "look at pg_hba.conf, set sslmode=require, or correct the user in STORE_URL",
  ],
  ["3D000", "has no such database", "create the database (createdb), or correct STORE_URL"],
  [
    "42501",
    "does not permit this user what it needs",
    "give Parley's user the schema: ALTER SCHEMA … OWNER TO <user>, and its tables",
  ],
  ["25006", "refuses writes: it is a replica, or read-only", "point STORE_URL to the primary"],
  ["53100", "refuses writes: its disk is full", "make room on the disk of Postgres"],
  ["53300", "has no connection left", "raise max_connections, or lower pool_max in STORE_URL"],
  ["57P", "is shutting down or starting", lookAtIt],
  ["57", noAnswer, lookAtIt],
  ["3F000", lostTables, restoreIt],
  ["42P01", lostTables, restoreIt],
];

/** Errors of the database, which would also fail the other writes of a batch. */
const ofServer = /^(08|25|28|3D|3F|53|57|58|XX|42501|42P01)/;
/** Errors by which the server ends the connection or has ended it. */
const ofConnection = /^(08|57P)/;

/** The SQLSTATE of an error that the server has reported, or `undefined` for other errors. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("severity" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** Whether the same statement may succeed now, because it only collided and nothing was written. */
export function isCollision(error: unknown): boolean {
  return ["40001", "40P01"].includes(sqlStateOf(error) ?? "");
}

/** Whether the connection is unusable. Errors that Postgres did not report are connection errors. */
function isConnectionLost(error: unknown): boolean {
  if (error instanceof ParleyError) return false;
  const state = sqlStateOf(error);
  return state === undefined || ofConnection.test(state) || isFatal(error);
}

/** Whether the tables are gone, because they were dropped or another database replaced this one. */
export function isEmptied(error: unknown): boolean {
  return ["42P01", "3F000"].includes(sqlStateOf(error) ?? "");
}

/** Whether an error may concern one write only, for example a text that the database cannot hold. */
export function isOfOneWrite(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== undefined && !ofServer.test(state) && !isCollision(error);
}

/** Makes a ParleyError without credentials and contents of an error of Postgres or its driver. */
function toPostgresStoreError(error: unknown, address: string): ParleyError {
  if (error instanceof ParleyError) return error;
  const reason = reasonOf(error);
  if (reason.startsWith("XX00"))
    return new ParleyError(
      "store-corrupt",
      `the Postgres store at ${address} is damaged (${reason}): stop Parley, and restore a backup`,
      { detail: { address, reason }, cause: withoutContents(error) },
    );
  const unknown = sqlStateOf(error) === undefined ? noAnswer : "reports an error";
  const [, problem, remedy] = problems.find(([code]) => reason.startsWith(code)) ?? ["", unknown, lookAtIt];
  return new ParleyError(
    "store-unavailable",
    `the Postgres store at ${address} ${problem} (${reason}): ${remedy}`,
    { detail: { address, problem, reason }, cause: withoutContents(error) },
  );
}

/** A short code or text. Postgres' own messages give only the code, because the rest may quote contents. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code === "string" && code !== "") return code;
  return error.message.slice(0, 80);
}

/** Error details of Postgres quote keys and values. */
function withoutContents(error: unknown): unknown {
  const state = sqlStateOf(error);
  return state === undefined ? error : new Error(`Postgres reports ${state}`);
}

function isFatal(error: unknown): boolean {
  return error instanceof Error && "severity" in error && /^(FATAL|PANIC)$/.test(String(error.severity));
}
