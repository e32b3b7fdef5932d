import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { openStore, type StoreOptions } from "../../src/conversations/open-store.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { has } from "../support/requirements.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";
import { storeServerContract } from "./store-server.ts";

const password = "sesame-4711";

describe.skipIf(!has("postgres"))("the Postgres server", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
    await server.query(`CREATE ROLE guest LOGIN PASSWORD '${password}'`);
  });
  afterAll(async () => {
    await server.remove();
  });
  storeServerContract(() => server);

  const open = async (url: string, options: Partial<StoreOptions> = {}) => {
    const store = await openStore(url, { log: silentLog, deadlineMs: 1000, ...options });
    onTestFinished(() => store.close());
    return store;
  };
  const failureOf = (url: string) =>
    openStore(url, { log: silentLog, deadlineMs: 1000 }).then(
      async (store) => {
        await store.close();
        throw new Error("it opened");
      },
      (error: unknown) => error,
    );

  it("is described without user and password", async () => {
    const store = await open(server.url.replace("parley@", `parley:${password}@`));
    expect(store.describe()).toBe(`Postgres at 127.0.0.1:${server.port}/postgres, schema parley`);
  });

  it("takes both schemes, and keeps schemas apart", async () => {
    const url = `${server.url.replace("postgres:", "postgresql:")}?schema=other_one&pool_max=3`;
    const [one, two] = [await open(server.url), await open(url)];
    await one.inbox.accept(eventOf("in the first"));
    expect(await two.inbox.accept(eventOf("in the first"))).toBe("accepted");
    expect(two.describe()).toContain("schema other_one");
  });

  it.each([
    ["no server", () => "postgres://u:wrong-secret@127.0.0.1:1/db", "store-unavailable", "ECONNREFUSED"],
    ["no such database", () => `${server.url}_none`, "store-unavailable", "no such database"],
    [
      "no such user",
      () => server.url.replace("parley@", "nobody:wrong-secret@"),
      "store-unavailable",
      "28000",
    ],
    ["a malformed URL", () => "postgres://u:wrong-secret@127.0.0.1:port/db", "config", "is not a URL"],
    ["TLS where there is none", () => `${server.url}?sslmode=require`, "store-unavailable", "SSL"],
    ["another schema's name", () => `${server.url}?schema=a;b`, "config", "names a schema"],
  ])("fails to open with %s, and shows no password", async (_, address, code, words) => {
    const error = await failureOf(address());
    expect(error).toMatchObject({ code, message: expect.stringContaining(words) });
    expect(inspect(error, { depth: 9 })).not.toContain("wrong-secret");
  });

  it("says what to do where the user may not create the schema, and works in one that it is given", async () => {
    const url = `${server.url.replace("parley@", `guest:${password}@`)}?schema=guests`;
    expect(await failureOf(url)).toMatchObject({
      code: "config",
      message: expect.stringContaining("run CREATE SCHEMA guests AUTHORIZATION"),
    });
    await server.query("CREATE SCHEMA guests AUTHORIZATION guest");
    const store = await open(url);
    expect(await store.inbox.accept(eventOf(freshId()))).toBe("accepted");
  });

  it("refuses a database that cannot hold every text", async () => {
    const url = await server.createDatabase("ENCODING 'LATIN1' TEMPLATE template0");
    expect(await failureOf(url)).toMatchObject({
      code: "config",
      message: expect.stringContaining("ENCODING 'UTF8'"),
    });
  });

  it("is refused when a newer Parley wrote it, another program did, or tables are gone", async () => {
    const url = await server.createDatabase();
    const database = new URL(url).pathname.slice(1);
    await server.query("CREATE SCHEMA parley; CREATE TABLE parley.entries (note text)", database);
    expect(await failureOf(url)).toMatchObject({ code: "store-corrupt" });
    await server.query("DROP SCHEMA parley CASCADE", database);
    await (await openStore(url, { log: silentLog })).close();
    await server.query("DROP TABLE parley.rankings", database);
    expect(await failureOf(url)).toMatchObject({ code: "store-corrupt" });
    await server.query("UPDATE parley.marks SET value = '99' WHERE name = 'version'", database);
    expect(await failureOf(url)).toMatchObject({ code: "store-newer" });
  });

  it("is created by several processes at once", async () => {
    const url = await server.createDatabase();
    const stores = await Promise.all(Array.from({ length: 6 }, () => open(url, { deadlineMs: 5000 })));
    for (const store of stores) await store.ping();
  });

  it("that closes all connections serves the next request", async () => {
    const lines: string[] = [];
    const store = await open(await server.createDatabase(), { log: createMemoryLog(lines) });
    const id = freshId();
    for (let n = 0; n < 5; n++) {
      await store.conversations.append(id, messageOf(`m${n}`));
      await server.terminateConnections();
      expect(await store.conversations.recent(id, { maxMessages: 9 })).toHaveLength(n + 1);
    }
  });

  it("is durable whatever is set for the role", async () => {
    const url = await server.createDatabase();
    await server.query("ALTER ROLE parley SET synchronous_commit = off");
    const store = await open(url);
    await store.inbox.accept(eventOf("k"));
    await server.kill();
    await server.start();
    await vi.waitFor(() => store.ping(), { timeout: 10_000, interval: 20 });
    expect(await store.inbox.accept(eventOf("k"))).toBe("duplicate");
    await server.query("ALTER ROLE parley RESET synchronous_commit");
  });

  it("applies the writes of instances that collide, each once", async () => {
    const url = await server.createDatabase();
    const stores = await Promise.all([open(url), open(url), open(url)]);
    const ids = Array.from({ length: 8 }, freshId);
    const now = Date.now();
    await Promise.all(
      Array.from({ length: 40 }, async (_, n) => {
        const order = n % 2 === 0 ? ids : ids.toReversed();
        const store = stores[n % stores.length]!;
        await Promise.all(
          order.map(async (id) => {
            await store.conversations.append(id, messageOf(`m${n}`));
            await store.spending.countTurn("test:ann", { max: 1_000_000, now });
          }),
        );
      }),
    );
    for (const id of ids)
      expect(await stores[0].conversations.recent(id, { maxMessages: 99 })).toHaveLength(40);
    expect(await stores[0].spending.countTurn("test:ann", { max: 320, now })).toBeGreaterThan(0);
    expect(await stores[0].spending.countTurn("test:ann", { max: 321, now })).toBeUndefined();
  });
});
