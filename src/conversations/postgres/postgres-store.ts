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
  async open(url, options) {
    const { openPostgresBackend } = await import("./postgres-backend.ts");
    return await openPostgresBackend(url, options);
  },
};
