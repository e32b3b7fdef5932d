import { mkdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "redis";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { openStore } from "../../src/conversations/open-store.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { has } from "../support/requirements.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { eventOf } from "../support/store-samples.ts";
import { storeDataLossContract } from "./store-data-loss.ts";

describe.skipIf(!has("redis"))("a Redis that loses its data", () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await startRedis(["--appendonly", "no"]);
  });
  afterEach(async () => {
    await server.remove();
  });
  const restart = async () => {
    await server.kill();
    await server.start();
  };
  const send = async (...command: string[]) => {
    const client = await createClient({ url: server.url }).connect();
    const answer = (await client.sendCommand(command)) as string | null;
    await client.close();
    return answer;
  };

  storeDataLossContract(["restarted", "emptied"], () => ({
    url: server.url,
    lose: async (way) => (way === "restarted" ? restart() : void (await send("FLUSHALL"))),
    readVersion: async () => (await send("GET", "parley:schema")) ?? undefined,
    version: "3",
  }));

  it("that is restarted with its data is not reported", async () => {
    await server.remove();
    server = await startRedis();
    const lines: string[] = [];
    const store = await openStore(server.url, { log: createMemoryLog(lines) });
    await restart();
    await vi.waitFor(() => store.ping(), { timeout: 10_000, interval: 20 });
    await store.close();
    expect(lines.filter((line) => line.startsWith("error"))).toEqual([]);
  });
});

describe.skipIf(!has("redis"))("a Redis that refuses writes", () => {
  const start = async (...options: string[]) => {
    const server = await startRedis(options);
    onTestFinished(() => server.remove());
    const store = await openStore(server.url, { log: createMemoryLog([]) });
    onTestFinished(() => store.close());
    const client = await createClient({ url: server.url }).connect();
    onTestFinished(() => client.close());
    return { server, store, client };
  };

  it.each([
    ["has no memory left", "OOM", ["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]],
    ["is a replica", "READONLY", ["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]],
  ])("because it %s is not ready, and is again when it takes them", async (_, reason, breaks, mends) => {
    const { store, client } = await start();
    await client.sendCommand(breaks);
    expect(await store.findProblems()).toEqual([`refuses writes (${reason})`]);
    await expect(store.inbox.accept(eventOf("e"))).rejects.toMatchObject({ code: "store-unavailable" });
    await client.sendCommand(mends);
    expect(await store.findProblems()).toEqual([]);
  });

  it("because it could not save its snapshot is not ready", async () => {
    const { server, store, client } = await start("--appendonly", "no", "--save", "3600 1");
    // In the place of the snapshot's file.
    await mkdir(join(server.folder, "dump.rdb"));
    await client.bgSave();
    await expect.poll(() => client.info("persistence")).toContain("last_bgsave_status:err");
    expect(await store.findProblems()).toEqual(["refuses writes (MISCONF)"]);
    await rmdir(join(server.folder, "dump.rdb"));
    await client.bgSave();
    await expect.poll(() => store.findProblems()).toEqual([]);
  });
});
