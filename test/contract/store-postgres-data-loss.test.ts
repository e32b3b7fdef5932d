import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { openStore } from "../../src/conversations/open-store.ts";
import { schemaVersion } from "../../src/conversations/postgres/postgres-schema.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { has } from "../support/requirements.ts";
import { eventOf } from "../support/store-samples.ts";
import { storeDataLossContract } from "./store-data-loss.ts";

describe.skipIf(!has("postgres"))("with a Postgres server", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server.remove();
  });

  describe("a Postgres that loses its data", () => {
    let url: string;
    let database: string;
    beforeEach(async () => {
      url = await server.createDatabase();
      database = new URL(url).pathname.slice(1);
    });
    const restart = async () => {
      await server.kill();
      await server.start();
    };

    storeDataLossContract(["emptied", "truncated"], () => ({
      url,
      async lose(way) {
        await server.query(
          way === "emptied"
            ? "DROP SCHEMA parley CASCADE"
            : "TRUNCATE parley.entries, parley.rankings, parley.counts, parley.leases",
          database,
        );
      },
      async readVersion() {
        const [row] = await server.query("SELECT value FROM parley.marks WHERE name = 'version'", database);
        return row?.["value"] as string | undefined;
      },
      version: String(schemaVersion),
    }));

    it("that crashes and starts again is not reported", async () => {
      const lines: string[] = [];
      const store = await openStore(url, { log: createMemoryLog(lines) });
      await store.inbox.accept(eventOf("before"));
      await restart();
      await vi.waitFor(() => store.ping(), { timeout: 10_000, interval: 20 });
      expect(await store.inbox.accept(eventOf("before"))).toBe("duplicate");
      await store.close();
      expect(lines.filter((line) => line.startsWith("error"))).toEqual([]);
    });
  });

  describe("a Postgres that refuses writes", () => {
    afterEach(async () => {
      await server.query("ALTER SYSTEM RESET default_transaction_read_only");
      await server.query("SELECT pg_reload_conf()");
    });

    it("because it is read-only is not ready, and is again when it takes them", async () => {
      const store = await openStore(await server.createDatabase(), { log: createMemoryLog([]) });
      onTestFinished(() => store.close());
      const setReadOnly = async (value: "on" | "off") => {
        await server.query(`SET default_transaction_read_only = off`);
        await server.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`);
        await server.query("SELECT pg_reload_conf()");
      };
      await setReadOnly("on");
      await expect
        .poll(() => store.findProblems())
        .toEqual(["refuses writes: it is a replica, or read-only (25006)"]);
      await expect(store.inbox.accept(eventOf("e"))).rejects.toMatchObject({ code: "store-unavailable" });
      await setReadOnly("off");
      await expect.poll(() => store.findProblems()).toEqual([]);
      expect(await store.inbox.accept(eventOf("e"))).toBe("accepted");
    });
  });
});
