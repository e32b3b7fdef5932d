import type { StoreBackend } from "../backend.ts";
import { findUrlProblem } from "./postgres-client.ts";

/** A database of a Postgres server, for several processes. */
export const postgresStore: StoreBackend = {
  schemes: ["postgres", "postgresql"],
  urlForms: ["postgres://…"],
  isShared: true,
  checkUrl: findUrlProblem,
  dataFolder() {
    return undefined;
  },
  async inspect(url, options) {
    const { inspectPostgres } = await import("./inspect-postgres.ts");
    return await inspectPostgres(url, options);
  },
  async open(url, { log, deadlineMs, clock }) {
    const { openPostgresBackend } = await import("./postgres-backend.ts");
    const backend = await openPostgresBackend(url, { log, deadlineMs, clock });
    return {
      backend,
      name: backend.name,
      blobs: "entries",
      leases: backend.leases,
      restored: undefined,
      sizeBytes: () => backend.sizeBytes(),
      backup: { unsupported: "Postgres has backups of its own: use pg_dump, or copies of its server" },
    };
  },
};
