import { inspect } from "node:util";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStore } from "../../src/conversations/open-store.ts";
import { has } from "../support/requirements.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { silentLog } from "../support/silent-log.ts";
import { freshId, messageOf } from "../support/store-samples.ts";
import { storeServerContract } from "./store-server.ts";
import { redisPrograms } from "../support/redis-programs.ts";

const password = "sesame-4711";

describe.skipIf(!has("redis"))("the Redis server", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis(["--requirepass", password]);
  });
  afterAll(async () => {
    await server.remove();
  });
  storeServerContract(() => ({
    url: `redis://:${password}@127.0.0.1:${server.port}`,
    pause: async () => server.pause(),
    resume: async () => server.resume(),
    kill: () => server.kill(),
    start: () => server.start(),
  }));

  const open = async () => openStore(url(), { log: silentLog, deadlineMs: 1000 });
  const url = () => `redis://:${password}@127.0.0.1:${server.port}`;

  it("is described without its password", async () => {
    const store = await open();
    expect(store.describe()).toBe(`${redisPrograms.title} at 127.0.0.1:${server.port}`);
    await store.close();
  });

  it.each([
    ["a wrong password", () => `redis://:wrong-secret@127.0.0.1:${server.port}`, "store-unavailable"],
    ["no password", () => `redis://127.0.0.1:${server.port}`, "store-unavailable"],
    ["no server", () => "redis://:wrong-secret@127.0.0.1:1", "store-unavailable"],
    ["a malformed URL", () => "redis://:wrong-secret@127.0.0.1:port", "config"],
    ["another scheme", () => "mysql://u:wrong-secret@127.0.0.1/db", "config"],
  ])("fails to open with %s, and shows no password", async (_, address, code) => {
    const error = await openStore(address(), { log: silentLog, deadlineMs: 1000 }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code });
    expect(inspect(error, { depth: 9 })).not.toContain("wrong-secret");
  });

  it("is refused when a newer Parley wrote it", async () => {
    const client = await createClient({ url: `${url()}/3` }).connect();
    await client.set("parley:schema", "99");
    await client.close();
    await expect(openStore(`${url()}/3`, { log: silentLog })).rejects.toMatchObject({ code: "store-newer" });
  });

  it("that lost the head of a conversation finds its end again", async () => {
    const store = await open();
    const id = freshId();
    for (let n = 0; n < 450; n++) await store.conversations.append(id, messageOf(`m${n}`));
    const client = await createClient({ url: url() }).connect();
    await client.del(`parley:head::${id}`);
    expect((await store.conversations.recent(id, { maxMessages: 2 })).map((m) => m.id)).toEqual([
      "m448",
      "m449",
    ]);
    await client.set(`parley:head::${id}`, JSON.stringify({ value: { next: 17 } }));
    expect((await store.conversations.recent(id, { maxMessages: 2 })).map((m) => m.id)).toEqual([
      "m448",
      "m449",
    ]);
    await store.conversations.append(id, messageOf("m450"));
    expect((await store.conversations.recent(id, { maxMessages: 1 })).map((m) => m.id)).toEqual(["m450"]);
    await client.close();
    await store.close();
  });
});
