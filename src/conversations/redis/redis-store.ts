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
