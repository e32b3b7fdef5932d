import { afterAll, beforeAll, describe } from "vitest";
import { openStore } from "../../src/conversations/open-store.ts";
import { has } from "../support/requirements.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { silentLog } from "../support/silent-log.ts";
import { storeContract } from "./store.ts";

describe.skipIf(!has("redis"))("with redis-server", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(async () => {
    await server.remove();
  });

  storeContract("redis", () => ({
    url: server.url,
    open: () => openStore(server.url, { log: silentLog }),
    outage: { begin: () => server.kill(), end: () => server.start() },
  }));
});
