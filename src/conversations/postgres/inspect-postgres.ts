import type { ClientBase } from "pg";
import { right, warning, wrong, type Finding } from "../../core/checks.ts";
import { isParleyError } from "../../core/errors.ts";
import { inspectedEntries, type StoreInspection } from "../backend.ts";
import { toVersionFinding } from "../store-keys.ts";
import {
  connectPostgres,
  type PostgresConnection,
  type PostgresConnectionOptions,
} from "./postgres-client.ts";
import {
  type DurabilitySettings,
  durabilityText,
  quoteSchema,
  readSchema,
  schemaVersion,
} from "./postgres-schema.ts";
import { toStored } from "./postgres-writer.ts";

/** The oldest version that is maintained. @see https://www.postgresql.org/support/versioning/ */
const oldestMajor = 14;
const mebibyte = 1024 * 1024;
/** The share of `max_connections` from which a warning follows. */
const manyConnections = 0.8;

interface ServerState extends DurabilitySettings {
  readonly version: number;
  readonly encoding: string;
  readonly is_replica: boolean;
  readonly can_create: boolean;
  readonly bytes: string;
  readonly connections: string;
  readonly max_connections: number;
}

const stateText = `${durabilityText},
  current_setting('server_version_num')::integer / 10000 AS version,
  current_setting('server_encoding') AS encoding,
  pg_is_in_recovery() AS is_replica,
  has_database_privilege(current_database(), 'CREATE') AS can_create,
  pg_database_size(current_database()) AS bytes,
  (SELECT sum(numbackends) FROM pg_stat_database) AS connections,
  current_setting('max_connections')::integer AS max_connections`;

/** Inspects a Postgres server. It writes a row in a transaction that it does not commit. */
export async function inspectPostgres(
  url: string,
  options: PostgresConnectionOptions,
): Promise<StoreInspection> {
  let connection: PostgresConnection;
  try {
    connection = await connectPostgres(url, options);
  } catch (error) {
    return { findings: [toFailure(error)], hasEntries: false, entries: [] };
  }
  try {
    return await connection.attempt(() => connection.withClient((client) => inspect(connection, client)));
  } catch (error) {
    return { findings: [toFailure(error)], hasEntries: false, entries: [] };
  } finally {
    await connection.close();
  }
}

async function inspect(
  { address, schema, isEncrypted }: PostgresConnection,
  client: ClientBase,
): Promise<StoreInspection> {
  const { rows } = await client.query<ServerState>(stateText);
  const state = rows[0] as ServerState;
  const found = await readSchema(client, schema);
  const name = `Postgres at ${address}, schema ${schema}${isEncrypted ? " (TLS)" : ""}`;
  const problem = findProblem(state, found, { name, schema });
  const hasStore = found.version !== undefined && found.missing.length === 0;
  if (problem === undefined && hasStore && found.version === schemaVersion) await probe(client, schema);
  const stored = hasStore ? await readEntries(client, schema) : { hasEntries: false, entries: [] };
  return {
    findings: [
      problem ?? toVersionFinding(name, found.version, schemaVersion),
      ...(state.version < oldestMajor
        ? [
            warning(
              "Server",
              `Postgres ${state.version} is no longer kept up by its makers`,
              `use ${oldestMajor} or newer`,
            ),
          ]
        : []),
      right(
        "Free space",
        `${Math.ceil(Number(state.bytes) / mebibyte)} MiB used; its disk is not visible from here`,
      ),
      toConnectionsFinding(state),
      toDurabilityFinding(state),
    ].flat(),
    ...stored,
  };
}

function findProblem(
  state: ServerState,
  found: Awaited<ReturnType<typeof readSchema>>,
  { name, schema }: { readonly name: string; readonly schema: string },
): Finding | undefined {
  if (state.is_replica) return wrong("Store", `${name} is a replica`, "point STORE_URL to the primary");
  if (state.encoding !== "UTF8")
    return wrong(
      "Store",
      `${name}: its encoding ${state.encoding} cannot hold every text`,
      "create a database with ENCODING 'UTF8'",
    );
  if (found.version === undefined && found.hasTables)
    return wrong(
      "Store",
      `${name} has tables of another program`,
      "name another schema: STORE_URL=…?schema=parley",
    );
  if (!found.exists && !state.can_create)
    return wrong(
      "Store",
      `${name} does not exist, and the user of STORE_URL may not create it`,
      `run CREATE SCHEMA ${schema} AUTHORIZATION <user> as the owner of the database`,
    );
  if (found.version !== undefined && found.missing.length > 0)
    return wrong("Store", `${name} lacks tables: ${found.missing.join(", ")}`, "restore a backup");
  return undefined;
}

async function readEntries(client: ClientBase, schema: string): Promise<Omit<StoreInspection, "findings">> {
  const table = `${quoteSchema(schema)}.entries`;
  const any = await client.query(`SELECT FROM ${table} WHERE space <> 'mark' LIMIT 1`);
  const entries: (string | undefined)[] = [];
  for (const { space, key } of inspectedEntries) {
    const { rows } = await client.query<{ value: string }>(
      `SELECT value FROM ${table} WHERE space = $1 AND key = $2`,
      [space, toStored(key).name],
    );
    entries.push(rows[0]?.value);
  }
  return { hasEntries: any.rows.length > 0, entries };
}

/** Fails on a full disk, a missing permission or a read-only database. */
async function probe(client: ClientBase, schema: string): Promise<void> {
  await client.query("BEGIN");
  try {
    await client.query(
      `INSERT INTO ${quoteSchema(schema)}.entries (space, key, value) VALUES ('mark', 'doctor-probe', '')`,
    );
  } finally {
    await client.query("ROLLBACK");
  }
}

function toConnectionsFinding({ connections, max_connections: max }: ServerState): Finding[] {
  return Number(connections) < max * manyConnections
    ? []
    : [
        warning(
          "Connections",
          `${connections} of the server's ${max} connections are in use`,
          "raise max_connections, or lower pool_max in STORE_URL (default 10 for each instance)",
        ),
      ];
}

function toDurabilityFinding({ fsync, full_page_writes: pages }: ServerState): Finding {
  // `synchronous_commit` is not checked, because every write of the store turns it on.
  if (fsync === "off" || pages === "off")
    return wrong(
      "Durability",
      `Postgres may lose what was acknowledged: a crash of its machine can lose everything (${fsync === "off" ? "fsync" : "full_page_writes"} off)`,
      "set fsync and full_page_writes to on in postgresql.conf",
    );
  return right("Durability", "every message is on disk before it is acknowledged");
}

const remedies: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there: start Postgres, or correct STORE_URL and its port",
  ENOTFOUND: "no such host name: correct STORE_URL",
  "28P01": "correct user and password in STORE_URL: postgres://user:password@host:5432/database",
  "28000": "the server lets this user or address not in: look at pg_hba.conf, or set sslmode=require",
  "3D000": "create the database (createdb), or correct STORE_URL",
  "42501": "give Parley's user the schema: ALTER SCHEMA … OWNER TO <user>, and its tables",
  "25006": "this is a replica: point STORE_URL to the primary",
  "53100": "the disk of Postgres is full: make room",
  "53300": "raise max_connections, or lower pool_max in STORE_URL",
};

function toFailure(error: unknown): Finding {
  if (!isParleyError(error)) throw error;
  const remedy =
    remedies[String(error.detail["reason"])] ??
    "look at Postgres and the network (?sslmode=require where it wants TLS)";
  return wrong("Store", error.message.replace(/^the /, "The ").replace(": check STORE_URL", ""), remedy);
}
