import type { StoreBackend } from "../backend.ts";
import { findRedisUrlProblem } from "./redis-connection.ts";

/** A Redis or Valkey server, or a cluster of them, for several processes. */
export const redisStore: StoreBackend = {
  schemes: ["redis", "rediss", "redis+cluster", "rediss+cluster"],
  urlForms: ["redis://…", "rediss://…", "redis+cluster://…"],
  isShared: true,
  checkUrl: findRedisUrlProblem,
  dataFolder() {
    return undefined;
  },
  async open(url, options) {
    const { openRedisBackend } = await import("./redis-backend.ts");
    return await openRedisBackend(url, options);
  },
};
