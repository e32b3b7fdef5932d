import type { StoreBackend } from "../store-backend.ts";
import { findRedisUrlProblem } from "./redis-url.ts";

/** A Redis or Valkey server, several that sentinels watch, or a cluster, for several processes. */
export const redisStore: StoreBackend = {
  schemes: ["redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"],
  urlForms: ["redis://…", "rediss://…", "redis+sentinel://…", "redis+cluster://…"],
  isShared: true,
  checkUrl: findRedisUrlProblem,
  dataFolder() {
    return undefined;
  },
  async inspect(url, options) {
    const { inspectRedis } = await import("./inspect-redis.ts");
    return await inspectRedis(url, options);
  },
  async open(url, { log, deadlineMs, clock }) {
    const { openRedisBackend } = await import("./redis-backend.ts");
    const backend = await openRedisBackend(url, { log, deadlineMs, clock });
    return {
      backend,
      name: `${backend.product} at ${backend.address}`,
      blobs: "entries",
      leases: backend.leases,
      restored: undefined,
      sizeBytes: () => backend.usedMemoryBytes(),
      backup: { unsupported: "Redis has backups of its own: use BGSAVE, or copy its files" },
    };
  },
};
