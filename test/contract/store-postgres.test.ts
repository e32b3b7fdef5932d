import { afterAll, beforeAll, describe } from "vitest";
import { openStore } from "../../src/conversations/open-store.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { has } from "../support/requirements.ts";
import { silentLog } from "../support/silent-log.ts";
import { storeContract } from "./store.ts";

describe.skipIf(!has("postgres"))("with a Postgres server", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server.remove();
  });

  storeContract("postgres", () => ({
    url: server.url,
    open: () => openStore(server.url, { log: silentLog }),
    outage: { begin: () => server.kill(), end: () => server.start() },
  }));
});
