import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectRedis } from "../../src/conversations/redis/connect-redis.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { has } from "../support/requirements.ts";
import { silentLog } from "../support/silent-log.ts";
import { startStallingProxy } from "../support/stalling-proxy.ts";

describe.skipIf(!has("redis"))("closing the connection to Redis", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.remove());

  /** Through a proxy that stalls with a command on its way. */
  async function connectAndStall() {
    const proxy = await startStallingProxy(server.port);
    const url = `redis://127.0.0.1:${proxy.port}`;
    const connection = await connectRedis(url, { log: silentLog, deadlineMs: 200 });
    proxy.stall();
    return { proxy, ...connection };
  }

  it("while it reconnects leaves no connection behind when the server responds again", async () => {
    const { proxy, client, attempt, close } = await connectAndStall();
    await expect(attempt(() => client.get("x"))).rejects.toMatchObject({ code: "store-unavailable" });
    await close();
    const ready = once(client, "ready");
    proxy.resume();
    await ready;
    expect(client.isReady).toBe(false);
    await proxy.close();
  });

  it("with a command on its way ends at the deadline, and leaves nothing running", async () => {
    const { proxy, client, close } = await connectAndStall();
    const lost = client.get("x").catch((error: unknown) => error);
    await expect(close()).rejects.toMatchObject({ code: "store-unavailable" });
    expect(client.isReady).toBe(false);
    expect(await lost).toBeInstanceOf(Error);
    await proxy.close();
  });
});
