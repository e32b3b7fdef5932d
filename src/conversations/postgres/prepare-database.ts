import { ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { PostgresConnection } from "./postgres-client.ts";
import { sqlStateOf } from "./postgres-errors.ts";
import { migrate } from "./postgres-schema.ts";

/** Settings of a server by which it loses or damages what it has acknowledged. */
export interface DurabilitySettings {
  readonly fsync: string;
  readonly full_page_writes: string;
}

/** Reads {@link DurabilitySettings}. */
export const durabilityText =
  "SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes";

/**
 * Creates or migrates the schema, and warns of settings that lose what was acknowledged.
 * @throws ParleyError `config` (the role may not create the schema, or the database cannot hold all text),
 * `store-unavailable`, `store-newer`, `store-corrupt`
 */
export async function prepareDatabase(connection: PostgresConnection, log: Log): Promise<void> {
  const { address, attempt, read, schema, withClient } = connection;
  await attempt(async () => {
    const [row] = await read<DurabilitySettings & { encoding: string }>(
      `${durabilityText}, current_setting('server_encoding') AS encoding`,
    );
    if (row !== undefined && row.encoding !== "UTF8")
      throw new ParleyError(
        "config",
        `the database of Postgres at ${address} has the encoding ${row.encoding}, which cannot hold every text: create one with ENCODING 'UTF8'`,
      );
    if (row?.fsync === "off" || row?.full_page_writes === "off")
      log.warn(
        {},
        "Postgres does not keep its files safe (fsync or full_page_writes is off): a crash of its machine can lose everything; set both to on",
      );
    try {
      await withClient((client) => migrate(client, schema, { address }));
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
