import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { openStore } from "../../src/conversations/open-store.ts";
import { startTcpProxy, type TcpProxy } from "../chaos/faults/tcp-proxy.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { has } from "../support/requirements.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";

describe.skipIf(!has("postgres"))("a replica of Postgres that takes over", () => {
  let primary: PostgresServer;
  let replica: PostgresServer;
  let proxy: TcpProxy;
  beforeAll(async () => {
    primary = await startPostgres();
    replica = await primary.startReplica();
    proxy = await startTcpProxy(primary.port);
  }, 60_000);
  afterAll(async () => {
    await proxy.close();
    await Promise.all([primary.remove(), replica.remove()]);
  });

  it(
    "has what was accepted and not answered again, and is no loss of data",
    { timeout: 60_000 },
    async () => {
      const lines: string[] = [];
      const url = `postgres://parley@127.0.0.1:${proxy.port}/postgres`;
      const store = await openStore(url, { log: createMemoryLog(lines) });
      onTestFinished(() => store.close());
      await store.conversations.append("test:1", messageOf("m"));
      await vi.waitFor(async () =>
        expect(await replica.query("SELECT FROM parley.entries WHERE space = 'slot'")).toHaveLength(1),
      );
      // The primary acknowledges this event, and the replica never gets it.
      await replica.kill();
      await store.inbox.accept(eventOf("late"));
      await primary.kill();
      await replica.start();
      expect(await replica.query("SELECT FROM parley.entries WHERE space = 'inbox'")).toEqual([]);

      proxy.switchTo(replica.port);
      await expect
        .poll(() => store.findProblems())
        .toEqual(["refuses writes: it is a replica, or read-only (25006)"]);
      await replica.query("SELECT pg_promote()");
      await vi.waitFor(() => store.ping(), { timeout: 20_000, interval: 50 });
      expect(await store.inbox.open()).toEqual([]);
      expect(await store.conversations.recent("test:1", { maxMessages: 9 })).toHaveLength(1);
      expect(lines.filter((line) => line.startsWith("error"))).toEqual([]);
    },
  );
});
