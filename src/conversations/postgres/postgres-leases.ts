import type { Leases } from "../leased-queue.ts";
import type { PostgresConnection } from "./postgres-client.ts";
import { quoteSchema } from "./postgres-schema.ts";
import { toStored } from "./stored-name.ts";

/** A renewal that a crash of the server undoes leaves the lease with an earlier end, which harms nobody. */
const withoutWaiting = "set_config('synchronous_commit', 'off', true) IS NOT NULL";

/** One row per lease, which expires by the database's clock. */
export function createPostgresLeases({
  schema,
  attempt,
  withClient,
}: Pick<PostgresConnection, "schema" | "attempt" | "withClient">): Leases {
  const leases = `${quoteSchema(schema)}.leases`;
  const change = async (text: string, values: readonly unknown[]): Promise<boolean> =>
    attempt(async () => {
      const { rowCount } = await withClient((client) => client.query(text, [...values]));
      return rowCount === 1;
    });
  const end = "clock_timestamp() + $3 * interval '1 millisecond'";
  return {
    take: (name, holder, ttlMs) =>
      change(
        // Looked up first: a try in vain would lock the row of the holder.
        `INSERT INTO ${leases} AS held (name, holder, expires)
         SELECT $1, $2, ${end}
         WHERE NOT EXISTS (SELECT FROM ${leases} WHERE name = $1 AND expires > clock_timestamp())
         ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
         WHERE held.expires <= clock_timestamp()`,
        [toStored(name).name, holder, ttlMs],
      ),
    renew: (name, holder, ttlMs) =>
      change(
        `UPDATE ${leases} SET expires = ${end}
         WHERE name = $1 AND holder = $2 AND expires > clock_timestamp() AND ${withoutWaiting}`,
        [toStored(name).name, holder, ttlMs],
      ),
    async release(name, holder) {
      await change(`DELETE FROM ${leases} WHERE name = $1 AND holder = $2 AND ${withoutWaiting}`, [
        toStored(name).name,
        holder,
      ]);
    },
  };
}
