import { join } from "node:path";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { openStore, type StoreOptions } from "../../src/conversations/open-store.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { has } from "../support/requirements.ts";
import { silentLog } from "../support/silent-log.ts";
import { bytesOfFolder } from "../support/store-bytes.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";
import { deletionOf } from "../support/turn-steps.ts";
import { storeServerContract } from "./store-server.ts";

const password = "sesame-4711";
const dayMs = 24 * 60 * 60 * 1000;

describe.skipIf(!has("postgres"))("postgres: the server", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
    await server.query(`CREATE ROLE guest LOGIN PASSWORD '${password}'`);
  });
  afterAll(() => server.remove());
  storeServerContract(() => server);

  let schemas = 0;
  /** Returns the URL of an empty store. */
  const newUrl = () => `${server.url}?schema=s${schemas++}`;
  const schemaOf = (url: string) => new URL(url).searchParams.get("schema");
  const open = async (url: string, options: Partial<StoreOptions> = {}) => {
    const store = await openStore(url, { log: silentLog, ...options });
    onTestFinished(() => store.close());
    return store;
  };
  const failureOf = async (url: string) => {
    const outcome = await open(url, { deadlineMs: 1000 }).catch((error: unknown) => error);
    expect(outcome).toBeInstanceOf(Error);
    return outcome;
  };

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
    const url = newUrl();
    const schema = schemaOf(url);
    await server.query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.entries (note text)`);
    expect(await failureOf(url)).toMatchObject({ code: "store-corrupt" });
    await server.query(`DROP SCHEMA ${schema} CASCADE`);
    await (await openStore(url, { log: silentLog })).close();
    await server.query(`DROP TABLE ${schema}.rankings`);
    expect(await failureOf(url)).toMatchObject({ code: "store-corrupt" });
    await server.query(`UPDATE ${schema}.marks SET value = '99' WHERE name = 'version'`);
    expect(await failureOf(url)).toMatchObject({ code: "store-newer" });
  });

  it("of the version before is raised by the bot, and by nothing beside it", async () => {
    const url = newUrl();
    const marks = `${schemaOf(url)}.marks`;
    const version = async () =>
      (await server.query(`SELECT value FROM ${marks} WHERE name = 'version'`))[0]?.["value"];
    await (await openStore(url, { log: silentLog })).close();
    await server.query(`UPDATE ${marks} SET value = '4' WHERE name = 'version'`);
    for (const beside of [{ isLook: true }, { exclusive: false }])
      await (await openStore(url, { log: silentLog, ...beside })).close();
    expect(await version()).toBe("4");
    await (await openStore(url, { log: silentLog })).close();
    expect(await version()).toBe("5");
  });

  it("is created by several processes at once", async () => {
    const url = newUrl();
    const stores = await Promise.all(Array.from({ length: 6 }, () => open(url)));
    for (const store of stores) await store.ping();
  });

  it("that closes all connections serves the next request", async () => {
    const store = await open(newUrl());
    for (let n = 0; n < 3; n++) {
      await store.conversations.append("test:1", messageOf(`m${n}`));
      await server.terminateConnections();
      expect(await store.conversations.recent("test:1", { maxMessages: 9 })).toHaveLength(n + 1);
    }
  });

  it("is durable whatever is set for the role, and not reported as emptied after a crash", async () => {
    const lines: string[] = [];
    await server.query("ALTER ROLE parley SET synchronous_commit = off");
    const store = await open(newUrl(), { log: createMemoryLog(lines) });
    await store.inbox.accept(eventOf("k"));
    await server.kill();
    await server.start();
    await vi.waitFor(() => store.ping(), { timeout: 10_000, interval: 20 });
    expect(await store.inbox.accept(eventOf("k"))).toBe("duplicate");
    await server.query("ALTER ROLE parley RESET synchronous_commit");
    expect(lines.filter((line) => line.startsWith("error"))).toEqual([]);
  });

  it("applies the writes of instances that collide, each once", async () => {
    const url = newUrl();
    const stores = await Promise.all([open(url), open(url), open(url)]);
    const ids = Array.from({ length: 8 }, freshId);
    const now = Date.now();
    await Promise.all(
      Array.from({ length: 20 }, async (_, n) => {
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
      expect(await stores[0].conversations.recent(id, { maxMessages: 99 })).toHaveLength(20);
    expect(await stores[0].spending.countTurn("test:ann", { max: 160, now })).toBeGreaterThan(0);
    expect(await stores[0].spending.countTurn("test:ann", { max: 161, now })).toBeUndefined();
  });

  it("that is read-only is not ready, and is again when it takes writes", async () => {
    const store = await open(newUrl());
    const setReadOnly = async (value: "on" | "off") => {
      await server.query("SET default_transaction_read_only = off");
      await server.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`);
      await server.query("SELECT pg_reload_conf()");
    };
    onTestFinished(() => setReadOnly("off"));
    await setReadOnly("on");
    await expect
      .poll(() => store.findProblems())
      .toEqual(["refuses writes: it is a replica, or read-only (25006)"]);
    await expect(store.inbox.accept(eventOf("e"))).rejects.toMatchObject({ code: "store-unavailable" });
    await setReadOnly("off");
    await expect.poll(() => store.findProblems()).toEqual([]);
    expect(await store.inbox.accept(eventOf("e"))).toBe("accepted");
  });

  it("that was read-only when a connection was opened is asked again by a new one", async () => {
    await server.query("CREATE DATABASE changing");
    const store = await open(server.url.replace(/postgres$/, "changing"));
    await server.query("ALTER DATABASE changing SET default_transaction_read_only = on");
    await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'changing'");
    const accept = (id: string) => store.inbox.accept(eventOf(id)).catch((error: unknown) => String(error));
    await expect.poll(() => accept("e")).toContain("25006");
    await server.query("ALTER DATABASE changing RESET default_transaction_read_only");
    await expect.poll(() => accept("e")).toBe("accepted");
    expect(await store.findProblems()).toEqual([]);
  });

  describe("deleted text in the files of the tables", () => {
    /** Whether it is in the tables, but not in the write-ahead log, which the server keeps for a while. */
    const isInTables = async (secret: string) => {
      await server.query("CHECKPOINT");
      return (await vi.waitFor(() => bytesOfFolder(join(server.folder, "data", "base")))).includes(secret);
    };
    const whenGone = (secret: string) => expect.poll(() => isInTables(secret), { interval: 100 }).toBe(false);
    const isPending = async (url: string) =>
      (await server.query(`SELECT FROM ${schemaOf(url)}.marks WHERE name = 'scrub'`)).length > 0;
    const fill = async (url: string, secret: string, log = silentLog) => {
      const store = await open(url, { log });
      await store.conversations.append("test:1", messageOf("m", secret));
      await store.inbox.accept({ ...eventOf("k"), text: secret });
      await store.conversations.append("test:2", messageOf("m2"));
      expect(await isInTables(secret)).toBe(true);
      return store;
    };

    it("goes soon after it was erased", async () => {
      const [url, secret, lines] = [newUrl(), freshId(), [] as string[]];
      const store = await fill(url, secret, createMemoryLog(lines));
      await store.erasure.deleteConversation("test:1");
      await store.inbox.change(deletionOf("k"));
      await whenGone(secret);
      await expect.poll(() => isPending(url)).toBe(false);
      expect(await store.conversations.recent("test:2", { maxMessages: 99 })).toHaveLength(1);
      expect(lines.filter((line) => /^(warn|error)/.test(line))).toEqual([]);
    });

    it("goes at the next start when the process ended before", async () => {
      const [url, secret] = [newUrl(), freshId()];
      await (await fill(url, secret)).close();
      const schema = schemaOf(url);
      await server.query(`DELETE FROM ${schema}.entries WHERE space IN ('slot', 'inbox')`);
      await server.query(`INSERT INTO ${schema}.marks (name, value) VALUES ('scrub', 'before')`);
      await open(url);
      await whenGone(secret);
      await expect.poll(() => isPending(url)).toBe(false);
    });

    it("goes at the sweep after it has expired", async () => {
      const secret = freshId();
      const store = await open(newUrl(), { retentionDays: 50 / dayMs });
      await store.conversations.append("test:1", messageOf("m", secret));
      await expect.poll(() => store.conversations.recent("test:1", { maxMessages: 1 })).toEqual([]);
      await store.sweep(Date.now());
      await whenGone(secret);
    });
  });
});
