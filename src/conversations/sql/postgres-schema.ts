import type { ClientBase } from "pg";
import { right, warning, wrong, type Finding } from "../../core/checks.ts";
import { ParleyError } from "../../core/errors.ts";
import { absentStore, expectKnownVersion, storeVersion } from "../backend.ts";
import { type PostgresConnection, sqlStateOf } from "./postgres-client.ts";

/** @param schema quoted */
const createLeases = (schema: string) => `
    CREATE TABLE ${schema}.leases (
      name text COLLATE "C" PRIMARY KEY,
      holder text NOT NULL,
      expires timestamptz NOT NULL
    ) WITH (fillfactor = 50);`;

const tableNames = ["entries", "rankings", "counts", "leases"] as const;
/** The table for the version and small marks of the backend. */
const marksTable = "marks";

/** An identifier in quotes. The URL check allows only lower-case letters, digits and underscores. */
export function quoteSchema(schema: string): string {
  return `"${schema}"`;
}

/** The content of a schema. Without `version` there is no store in it. */
interface FoundSchema {
  readonly exists: boolean;
  readonly version: number | undefined;
  /** Names of the store's own tables that are missing. */
  readonly missing: readonly string[];
  /** Whether it has any tables, of these names or others. */
  readonly hasTables: boolean;
}

/** Reads a schema without writing. It throws the errors of the service. */
async function readSchema(client: ClientBase, schema: string): Promise<FoundSchema> {
  const { rows } = await client.query<{ relname: string | null }>(
    `SELECT c.relname FROM pg_catalog.pg_namespace n
     LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm')
     WHERE n.nspname = $1`,
    [schema],
  );
  const found = new Set(rows.map(({ relname }) => relname));
  found.delete(null);
  const version = found.has(marksTable)
    ? await client.query<{ value: string }>(
        `SELECT value FROM ${quoteSchema(schema)}.${marksTable} WHERE name = 'version'`,
      )
    : undefined;
  const value = version?.rows[0]?.value;
  return {
    exists: rows.length > 0,
    version: value === undefined ? undefined : Number(value),
    missing: tableNames.filter((table) => !found.has(table)),
    hasTables: found.size > 0,
  };
}

/** Which schema is prepared, and whether only for a look. */
interface SchemaTarget {
  readonly schema: string;
  readonly address: string;
  readonly isLook?: boolean;
  /** Whether the version of an earlier one is raised. */
  readonly isBot?: boolean;
  /** Creates the tables of entries and indexes. */
  readonly tables: string;
}

/**
 * Creates the schema completely or not at all, and checks an existing one, whose version the bot raises.
 * Several processes may do so at once. A look takes back what it creates, and throws {@link absentStore}.
 * It throws the errors of the service. Returns the version that the store had.
 * @throws ParleyError `store-newer` if a later Parley wrote it, `config` if one from before the first release
 *   did, or `store-corrupt` if another program did or tables are gone
 */
async function prepareSchema(client: ClientBase, target: SchemaTarget): Promise<number> {
  const { schema, address, isLook = false, isBot = false, tables } = target;
  const found = await versionOf(client, target);
  if (found === storeVersion || (found > 0 && !isBot)) return found;
  const marks = `${quoteSchema(schema)}.${marksTable}`;
  if (found > 0) {
    await client.query(`UPDATE ${marks} SET value = $1 WHERE name = 'version'`, [String(storeVersion)]);
    return found;
  }
  await client.query("BEGIN");
  try {
    await client.query("SELECT pg_advisory_xact_lock(hashtext($1)::bigint)", [`parley/${schema}`]);
    if ((await versionOf(client, target)) === 0) {
      const quoted = quoteSchema(schema);
      // Without this condition the permission is needed even if the schema exists.
      if (!(await readSchema(client, schema)).exists) await client.query(`CREATE SCHEMA ${quoted}`);
      await client.query(`CREATE TABLE ${marks} (name text PRIMARY KEY, value text NOT NULL)`);
      await client.query(tables + createLeases(quoted));
      await client.query(`INSERT INTO ${marks} (name, value) VALUES ('version', $1)`, [String(storeVersion)]);
      if (isLook) throw absentStore(`the schema ${schema} of Postgres at ${address}`);
    }
    await client.query("COMMIT");
    return storeVersion;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {
      // The connection is gone, and the transaction with it.
    });
    throw error;
  }
}

/** The version of the store in a schema. It is 0 where there is none. */
async function versionOf(client: ClientBase, { schema, address }: SchemaTarget): Promise<number> {
  const { version = 0, hasTables, missing } = await readSchema(client, schema);
  const name = `the schema ${schema} of Postgres at ${address}`;
  if (version > 0) expectKnownVersion(name, version);
  else if (hasTables)
    throw new ParleyError(
      "store-corrupt",
      `${name} has tables of another program: name another with ?schema= in STORE_URL`,
      { detail: { schema } },
    );
  if (version > 0 && missing.length > 0)
    throw new ParleyError("store-corrupt", `${name} lacks tables (${missing.join(", ")}): restore a backup`, {
      detail: { schema, missing: missing.join(", ") },
    });
  return version;
}

/** The oldest version that is maintained. @see https://www.postgresql.org/support/versioning/ */
const oldestMajor = 14;
const mebibyte = 1024 * 1024;
/** The share of `max_connections` from which a warning follows. */
const manyConnections = 0.8;

interface ServerState {
  readonly version: number;
  readonly encoding: string;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly bytes: string;
  readonly connections: string;
  readonly max_connections: number;
}

const stateText = `SELECT current_setting('server_version_num')::integer / 10000 AS version,
  current_setting('server_encoding') AS encoding,
  current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS full_page_writes,
  pg_database_size(current_database()) AS bytes,
  (SELECT sum(numbackends) FROM pg_stat_database) AS connections,
  current_setting('max_connections')::integer AS max_connections`;

/**
 * Reports what the server is like, and creates the schema. A look takes that back.
 * @throws ParleyError `config` (the role may not create the schema, or the database cannot hold all text),
 * `store-unavailable`, `store-newer`, `store-corrupt`
 */
export async function prepareDatabase(
  { address, attempt, read, schema, withClient }: PostgresConnection,
  {
    report,
    ...target
  }: Omit<SchemaTarget, "address" | "schema"> & { readonly report: (finding: Finding) => void },
): Promise<number> {
  return await attempt(async () => {
    const [state] = await read<ServerState>(stateText);
    if (state === undefined) return storeVersion;
    if (state.encoding !== "UTF8")
      throw new ParleyError(
        "config",
        `the database of Postgres at ${address} has the encoding ${state.encoding}, which cannot hold every text: create one with ENCODING 'UTF8'`,
      );
    toServerFindings(state).forEach(report);
    try {
      return await withClient((client) => prepareSchema(client, { schema, address, ...target }));
    } catch (error) {
      if (sqlStateOf(error) !== "42501") throw error;
      throw new ParleyError(
        "config",
        `the user of STORE_URL may not create or use the schema ${schema} of Postgres at ${address}: run CREATE SCHEMA ${schema} AUTHORIZATION <user> as the owner of the database`,
        { detail: { schema } },
      );
    }
  });
}

function toServerFindings({
  version,
  bytes,
  connections,
  max_connections: max,
  fsync,
  full_page_writes: pages,
}: ServerState): Finding[] {
  const size = `${Math.ceil(Number(bytes) / mebibyte)} MiB used; its disk is not visible from here`;
  const unsafe = fsync === "off" ? "fsync" : pages === "off" ? "full_page_writes" : undefined;
  return [
    ...(version < oldestMajor
      ? [
          warning(
            "Server",
            `Postgres ${version} is no longer kept up by its makers`,
            `use ${oldestMajor} or newer`,
          ),
        ]
      : []),
    right("Free space", size),
    ...(Number(connections) < max * manyConnections
      ? []
      : [
          warning(
            "Connections",
            `${connections} of the server's ${max} connections are in use`,
            "raise max_connections, or lower pool_max in STORE_URL (default 10 for each instance)",
          ),
        ]),
    // `synchronous_commit` is not checked, because every write of the store turns it on.
    unsafe === undefined
      ? right("Durability", "every message is on disk before it is acknowledged")
      : wrong(
          "Durability",
          `Postgres may lose what was acknowledged: a crash of its machine can lose everything (${unsafe} off)`,
          "set fsync and full_page_writes to on in postgresql.conf",
        ),
  ];
}
