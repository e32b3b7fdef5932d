import type { ClientBase } from "pg";
import { ParleyError } from "../../core/errors.ts";
import { writeFunction } from "./write-function.ts";

/** Each step migrates from version n to n + 1. Never edit a released step, add one. `schema`: quoted. */
export const migrations: readonly ((schema: string) => string)[] = [
  (schema) => `
    CREATE TABLE ${schema}.entries (
      space text COLLATE "C" NOT NULL,
      key text COLLATE "C" NOT NULL,
      value text NOT NULL,
      expires bigint,
      original text,
      PRIMARY KEY (space, key)
    ) WITH (autovacuum_vacuum_scale_factor = 0.05);
    CREATE INDEX entries_by_expiry ON ${schema}.entries (expires) WHERE expires IS NOT NULL;
    CREATE TABLE ${schema}.rankings (
      ranking text COLLATE "C" NOT NULL,
      member text COLLATE "C" NOT NULL,
      score bigint NOT NULL,
      original text,
      PRIMARY KEY (ranking, member)
    ) WITH (autovacuum_vacuum_scale_factor = 0.02);
    CREATE INDEX rankings_by_score ON ${schema}.rankings (ranking, score, member);
    CREATE TABLE ${schema}.counts (
      ranking text COLLATE "C" NOT NULL,
      member text COLLATE "C" NOT NULL,
      score bigint NOT NULL,
      original text,
      PRIMARY KEY (ranking, member)
    ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
    CREATE TABLE ${schema}.leases (
      name text COLLATE "C" PRIMARY KEY,
      holder text NOT NULL,
      expires timestamptz NOT NULL
    ) WITH (fillfactor = 50);
    ${writeFunction(schema)}`,
  // The condition that an entry exists.
  writeFunction,
  // The condition that an entry has not changed.
  writeFunction,
];

/** The version that this Parley reads and writes. */
export const schemaVersion = migrations.length;

const tables = ["entries", "rankings", "counts", "leases"] as const;
/** Holds the version and small marks of the backend. */
const marksTable = "marks";

/** An identifier in quotes. Checked where the URL is read: lower-case letters, digits and underscores. */
export function quoteSchema(schema: string): string {
  return `"${schema}"`;
}

/** What is in a schema. `version` undefined: no store is. */
export interface FoundSchema {
  readonly exists: boolean;
  readonly version: number | undefined;
  /** Of the store's own tables. */
  readonly missing: readonly string[];
  /** Whether it has tables of these names or others. */
  readonly hasTables: boolean;
}

/** Looks at a schema without writing. Throws the errors of the service. */
export async function readSchema(client: ClientBase, schema: string): Promise<FoundSchema> {
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
    missing: tables.filter((table) => !found.has(table)),
    hasTables: found.size > 0,
  };
}

/**
 * Creates the schema or migrates it to the newest version, all steps or none; several processes may do so at once.
 * Throws the errors of the service.
 * @throws ParleyError `store-newer` when a later Parley wrote it; `store-corrupt` when another program did, or when
 * tables are gone
 */
export async function migrate(
  client: ClientBase,
  schema: string,
  { steps = migrations, address = "" }: { steps?: typeof migrations; address?: string } = {},
): Promise<void> {
  if ((await check(client, schema, { steps, address })) === steps.length) return;
  await client.query("BEGIN");
  try {
    await client.query("SELECT pg_advisory_xact_lock(hashtext($1)::bigint)", [`parley/${schema}`]);
    const version = await check(client, schema, { steps, address });
    const quoted = quoteSchema(schema);
    // Without the condition the permission is asked for even where the schema exists.
    if (!(await readSchema(client, schema)).exists) await client.query(`CREATE SCHEMA ${quoted}`);
    if (version === 0)
      await client.query(`CREATE TABLE ${quoted}.${marksTable} (name text PRIMARY KEY, value text NOT NULL)`);
    for (const step of steps.slice(version)) await client.query(step(quoted));
    await client.query(
      `INSERT INTO ${quoted}.${marksTable} (name, value) VALUES ('version', $1)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      [String(steps.length)],
    );
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {
      // The connection is gone, and the transaction with it.
    });
    throw error;
  }
}

async function check(
  client: ClientBase,
  schema: string,
  { steps, address }: { readonly steps: typeof migrations; readonly address: string },
): Promise<number> {
  const { version = 0, hasTables, missing } = await readSchema(client, schema);
  if (version > steps.length)
    throw new ParleyError(
      "store-newer",
      `the schema ${schema} of Postgres at ${address} was written by a newer Parley (version ${version}, this one knows ${steps.length}): update Parley`,
      { detail: { version, known: steps.length } },
    );
  if (version === 0 && hasTables)
    throw new ParleyError(
      "store-corrupt",
      `the schema ${schema} of Postgres at ${address} has tables of another program: name another with ?schema= in STORE_URL`,
      { detail: { schema } },
    );
  if (version > 0 && missing.length > 0)
    throw new ParleyError(
      "store-corrupt",
      `the schema ${schema} of Postgres at ${address} lacks tables (${missing.join(", ")}): restore a backup`,
      { detail: { schema, missing: missing.join(", ") } },
    );
  return version;
}
