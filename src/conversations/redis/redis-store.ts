import type { StoreBackend } from "../store-backend.ts";

/** A Redis or Valkey server, for several processes. */
export const redisStore: StoreBackend = {
  schemes: ["redis", "rediss"],
  urlForms: ["redis://…", "rediss://…"],
  checkUrl(url) {
    return /^rediss?:\/\/./.test(url) && URL.canParse(url)
      ? undefined
      : "is not a URL: write redis://host:6379 or rediss://host:6380";
  },
  dataFolder() {
    return undefined;
  },
  async open(url, { log, deadlineMs }) {
    const { openRedisBackend } = await import("./redis-backend.ts");
    const backend = await openRedisBackend(url, { log, deadlineMs });
    return {
      backend,
      name: `Redis at ${backend.address}`,
      blobs: "entries",
      leases: backend.leases,
      backup: { unsupported: "Redis has backups of its own: use BGSAVE, or copy its files" },
    };
  },
};
