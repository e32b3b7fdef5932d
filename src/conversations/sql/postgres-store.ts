import { isOnOtherMachine } from "../../support/http/client-address.ts";
import type { StoreBackend } from "../backend.ts";
import { findPostgresUrlProblem, parsePostgresUrl } from "./postgres-url.ts";

/** A database of a Postgres server, for several processes. */
export const postgresStore: StoreBackend = {
  schemes: ["postgres", "postgresql"],
  urlForms: ["postgres://…"],
  isShared: true,
  checkUrl: findPostgresUrlProblem,
  findExposure(text) {
    const { host, tls } = parsePostgresUrl(text);
    if (tls === "from-url" || !isOnOtherMachine(host)) return undefined;
    return "names a Postgres on another machine without insisting on TLS: add sslmode=verify-full, or require";
  },
  dataFolder() {
    return undefined;
  },
  async open(url, options) {
    const { openPostgresBackend } = await import("./postgres.ts");
    return await openPostgresBackend(url, options);
  },
};
