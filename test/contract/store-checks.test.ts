import { randomBytes } from "node:crypto";
import { mkdtemp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createClient, type RedisClientType } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createStoreChecks, openStore } from "../../src/conversations/open-store.ts";
import { startPostgres, type PostgresServer } from "../support/postgres-server.ts";
import { startRedis, type RedisServer } from "../support/redis-server.ts";
import { has } from "../support/requirements.ts";
import { runDoctorChecks } from "../support/run-checks.ts";
import { silentLog } from "../support/silent-log.ts";
import { describeStores } from "../support/stores.ts";

const newKey = () => randomBytes(32).toString("base64");
const remedyOf = (text: string, subject: string) =>
  new RegExp(`[!✗] ${subject} +.*\\n +→ (.*)`).exec(text)?.[1] ?? "";

async function check(
  url: string,
  encryptionKeys: readonly string[] = [],
  deadlineMs?: number,
): Promise<string> {
  return (await runDoctorChecks(createStoreChecks(url, { encryptionKeys, log: silentLog, deadlineMs }))).text;
}

/** Opens the store, keeps one record in it, and closes it. */
async function fill(url: string, encryptionKeys: readonly string[] = []): Promise<void> {
  const store = await openStore(url, { log: silentLog, encryptionKeys });
  await store.records.set("something", "kept");
  await store.close();
}

describeStores("the doctor's look at the store", (current) => {
  test("finds a store in use right, and its encryption off", async () => {
    const { url } = current();
    await fill(url);
    const text = await check(url);
    expect(text).toMatch(
      /✓ Store {7}((SQLite file|Redis at) \S+, version 5|Postgres at \S+, schema \w+, version 5)\n/,
    );
    expect(text).toMatch(/✓ Free space {2}/);
    expect(text).toContain("✓ Durability  every message is on disk before it is acknowledged");
    expect(text).toContain("✓ Encryption  off");
  });

  test("works beside a running bot and disturbs nothing", async () => {
    const { url } = current();
    const store = await openStore(url, { log: silentLog });
    try {
      await store.records.set("something", "kept");
      expect(await check(url)).not.toMatch(/[✗!] /);
      await store.records.set("more", "kept");
      expect(await store.records.get("something")).toBe("kept");
      expect(await store.findProblems()).toEqual([]);
    } finally {
      await store.close();
    }
  });

  test("leaves an empty store empty", async () => {
    const { url } = current();
    const before = await current().bytes();
    expect(await check(url)).not.toMatch(/[✗!] /);
    expect((await current().bytes()).equals(before)).toBe(true);
  });

  test("knows keys that fit, other keys, missing keys, and keys that came later", async () => {
    const { url } = current();
    const [key, other] = [newKey(), newKey()];
    await fill(url, [key]);
    expect(await check(url, [key])).toContain("✓ Encryption  on, and the keys fit the store");
    expect(await check(url, [other, key])).toContain("✓ Encryption  on, and the keys fit the store");
    const wrongKey = await check(url, [other]);
    expect(wrongKey).toContain(
      "✗ Store       the store is encrypted with a key that is not in STORE_ENCRYPTION_KEYS",
    );
    expect(wrongKey).not.toContain(other);
    expect(remedyOf(await check(url), "Store")).toBe("set it to the store's keys");
  });

  test("says what to do about values from before encryption was turned on, and marks nothing", async () => {
    const { url } = current();
    await fill(url);
    const text = await check(url, [newKey()]);
    expect(text).toContain("✗ Store       the store holds values that are not encrypted");
    expect(remedyOf(text, "Store")).toContain("run parley copy <this store> <an empty store>");
    await fill(url);
  });
});

describe("the doctor's look at an SQLite file", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "parley-doctor-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const file = () => join(folder, "parley.db");
  const setVersion = (version: number): void => {
    const database = new DatabaseSync(file());
    database.exec(`PRAGMA user_version = ${version}`);
    database.close();
  };

  test("a store that does not exist yet, in folders that do not either, is not created", async () => {
    const text = await check(`sqlite:${join(folder, "a/b/parley.db")}`);
    expect(text).toContain("parley.db does not exist yet: the first start creates it");
    expect(await readdir(folder)).toEqual([]);
  });

  test("a folder that cannot be written", async () => {
    await writeFile(join(folder, "data"), "a file in the place of the folder");
    const text = await check(`sqlite:${join(folder, "data/parley.db")}`);
    expect(text).toMatch(/✗ Store {7}\S+\/data cannot be written \(ENOTDIR\)/);
    expect(remedyOf(text, "Store")).toContain("let Parley's user write in that folder");
  });

  test("a store of a newer version is named and left as it is", async () => {
    await fill(`sqlite:${file()}`);
    setVersion(99);
    const before = await readFile(file());
    const text = await check(`sqlite:${file()}`);
    expect(text).toMatch(
      /✗ Store {7}the store \S+ was written by a newer Parley \(its version is 99, this one knows 5\)/,
    );
    expect(remedyOf(text, "Store")).toBe("update Parley, or restore an older backup");
    expect((await readFile(file())).equals(before)).toBe(true);
  });

  test("a store from before the first release is named, and not changed", async () => {
    await fill(`sqlite:${file()}`);
    setVersion(2);
    const text = await check(`sqlite:${file()}`);
    expect(text).toMatch(/✗ Store {7}.* was written by a Parley from before the first release/);
    expect(remedyOf(text, "Store")).toContain("name an empty store in STORE_URL");
    const database = new DatabaseSync(file());
    expect(database.prepare("PRAGMA user_version").get()).toEqual({ user_version: 2 });
    database.close();
  });

  test("a file of another program, one that is no database, and a damaged one", async () => {
    const foreign = new DatabaseSync(file());
    foreign.exec("CREATE TABLE notes (text TEXT)");
    foreign.close();
    const before = await readFile(file());
    expect(await check(`sqlite:${file()}`)).toMatch(
      /✗ Store {7}the file \S+ is an SQLite file of another program/,
    );
    expect((await readFile(file())).equals(before)).toBe(true);

    const noDatabase = join(folder, "other.db");
    await writeFile(noDatabase, "this is not a database file, but as long as one. ".repeat(40));
    expect(await check(`sqlite:${noDatabase}`)).toMatch(/✗ Store {7}the store \S+ is not an SQLite file/);

    const damaged = join(folder, "damaged.db");
    await fill(`sqlite:${damaged}`);
    const bytes = await readFile(damaged);
    bytes.fill(0x5a, 2 * 4096);
    await writeFile(damaged, bytes);
    expect(await check(`sqlite:${damaged}`)).toMatch(/✗ (Integrity|Store) .*damaged/);
  });

  test("a folder in the place of the file", async () => {
    await mkdir(file());
    expect(await check(`sqlite:${file()}`)).toMatch(/✗ Store {7}the store \S+ cannot be opened/);
  });
});

describe.skipIf(!has("redis"))("the doctor's look at a Redis server", () => {
  let server: RedisServer;
  let client: RedisClientType;
  beforeAll(async () => {
    server = await startRedis();
    client = createClient({ url: server.url });
    client.on("error", () => {});
    await client.connect();
  });
  afterAll(async () => {
    client.destroy();
    await server.remove();
  });
  /** Changes settings until the end of the test. */
  const configure = async (...settings: readonly (readonly [string, string])[]) => {
    for (const [name, value] of settings) {
      const before = (await client.configGet(name))[name] ?? "";
      await client.configSet(name, value);
      onTestFinished(async () => {
        await client.configSet(name, before);
      });
    }
  };

  test.each([
    [
      [["appendfsync", "everysec"]],
      "!",
      "a crash of its machine loses the last second (appendfsync everysec)",
    ],
    [[["appendfsync", "no"]], "✗", "a crash of its machine loses the last half minute (appendfsync no)"],
    [[["appendonly", "no"]], "✗", "a restart loses everything (appendonly no)"],
    [
      [
        ["appendonly", "no"],
        ["save", "60 1"],
      ],
      "✗",
      "a restart loses everything since its last snapshot",
    ],
  ] as const)("says plainly that %j may lose what was acknowledged", async (settings, mark, what) => {
    await configure(...settings);
    const text = await check(server.url);
    expect(text).toContain(`${mark} Durability  Redis may lose what was acknowledged: ${what}`);
    expect(remedyOf(text, "Durability")).toContain("CONFIG SET append");
  });

  test("a server that evicts, and one that is full and refuses the probe", async () => {
    await configure(["maxmemory", "100mb"], ["maxmemory-policy", "allkeys-lru"]);
    const text = await check(server.url);
    expect(text).toContain(
      "✗ Eviction    Redis may delete conversations when its memory is full (allkeys-lru)",
    );
    expect(text).toMatch(/✓ Free space {2}\d+ MiB used of 100/);
    await configure(["maxmemory-policy", "noeviction"], ["maxmemory", "1"]);
    expect(remedyOf(await check(server.url), "Store")).toBe("Redis is full: raise maxmemory");
  });

  test("a missing and a wrong password, which is not shown", async () => {
    await configure(["requirepass", "the-right-one"]);
    expect(remedyOf(await check(server.url), "Store")).toContain("Redis asks for a password");
    const text = await check(server.url.replace("redis://", "redis://:the-wrong-one@"));
    expect(remedyOf(text, "Store")).toContain("correct user and password in STORE_URL");
    expect(text).not.toContain("the-wrong-one");
  });

  test("a replica", async () => {
    await client.sendCommand(["REPLICAOF", "127.0.0.1", "1"]);
    expect(remedyOf(await check(server.url), "Store")).toBe(
      "this is a replica: point STORE_URL to the primary",
    );
    await client.sendCommand(["REPLICAOF", "NO", "ONE"]);
  });

  test("a store of a newer version is named and left as it is", async () => {
    await client.flushDb();
    await client.set("parley:schema", "99");
    expect(await check(server.url)).toContain(
      "was written by a newer Parley (its version is 99, this one knows 5)",
    );
    expect(await client.get("parley:schema")).toBe("99");
    expect(await client.keys("*")).toEqual(["parley:schema"]);
    await client.flushDb();
  });

  test("a server whose settings may not be read", async () => {
    await client.sendCommand(["ACL", "SETUSER", "default", "-config"]);
    expect(await check(server.url)).toContain("! Durability  Redis does not show its settings");
    await client.sendCommand(["ACL", "SETUSER", "default", "+config"]);
  });

  test("a server that is down, and one that hangs", async () => {
    server.pause();
    const hanging = await check(server.url, [], 200);
    server.resume();
    expect(hanging).toMatch(/✗ Store {2}the Redis store at 127\.0\.0\.1:\d+ does not respond/);
    await server.kill();
    expect(remedyOf(await check(server.url), "Store")).toContain("nothing listens there: start Redis");
  });
});

describe.skipIf(!has("postgres"))("the doctor's look at a Postgres server", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres(["max_connections = 12", "fsync = on"]);
  });
  afterAll(() => server.remove());

  test.each(["fsync", "full_page_writes"])(
    "says plainly that %s off may lose what was acknowledged",
    async (name) => {
      await server.query(`ALTER SYSTEM SET ${name} = off`);
      await server.query("SELECT pg_reload_conf()");
      try {
        await expect
          .poll(() => check(server.url))
          .toContain(
            `✗ Durability  Postgres may lose what was acknowledged: a crash of its machine can lose everything (${name} off)`,
          );
        expect(remedyOf(await check(server.url), "Durability")).toContain("postgresql.conf");
      } finally {
        await server.query(`ALTER SYSTEM RESET ${name}`);
        await server.query("SELECT pg_reload_conf()");
      }
    },
  );

  test("a wrong password, which is not shown, a missing database and a schema that may not be created", async () => {
    await server.query("CREATE ROLE guest LOGIN PASSWORD 'the-right-one'");
    expect(remedyOf(await check(server.url.replace("parley@", "guest@")), "Store")).toBe(
      "run CREATE SCHEMA parley AUTHORIZATION <user> as the owner of the database",
    );
    expect(remedyOf(await check(`${server.url}_none`), "Store")).toContain("create the database (createdb)");
    const text = await check(server.url.replace("parley@", "nobody:the-wrong-one@"));
    expect(text).toMatch(/✗ Store .*\(28000\)/);
    expect(text).not.toContain("the-wrong-one");
  });

  test("a store of a newer version is named and left as it is, and another program's tables too", async () => {
    const url = `${server.url}?schema=newer`;
    await fill(url);
    await server.query("UPDATE newer.marks SET value = '99'");
    expect(await check(url)).toContain("was written by a newer Parley (its version is 99, this one knows 5)");
    await server.query("CREATE SCHEMA foreign_one; CREATE TABLE foreign_one.notes (text text)");
    expect(await check(`${server.url}?schema=foreign_one`)).toMatch(/✗ Store .*tables of another program/);
    expect(await server.query("SELECT FROM pg_tables WHERE schemaname = 'foreign_one'")).toHaveLength(1);
  });

  test("a server that refuses writes, and one with few connections left", async () => {
    const url = `${server.url}?schema=busy`;
    await fill(url);
    const readOnly = `${url}&options=-c%20default_transaction_read_only%3Don`;
    expect(remedyOf(await check(readOnly), "Store")).toContain("replica");
    const stores = await Promise.all(
      Array.from({ length: 3 }, () => openStore(`${url}&pool_max=3`, { log: silentLog })),
    );
    await Promise.all(
      stores.map((store) => Promise.all(Array.from({ length: 3 }, () => store.records.get("a")))),
    );
    expect(await check(url)).toMatch(/! Connections +\d+ of the server's 12 connections are in use/);
    for (const store of stores) await store.close();
  });

  test("a server that is down, and one that hangs", async () => {
    await server.pause();
    const hanging = await check(server.url, [], 200);
    await server.resume();
    expect(hanging).toMatch(/✗ Store {2}the Postgres store at 127\.0\.0\.1:\d+\/postgres does not respond/);
    await server.kill();
    expect(remedyOf(await check(server.url), "Store")).toContain("nothing listens there: start Postgres");
    await server.start();
  });
});
