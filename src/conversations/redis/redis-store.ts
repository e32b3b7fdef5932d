import type { StoreBackend } from "../store-backend.ts";

/** A Redis or Valkey server, for several processes. */
export const redisStore: StoreBackend = {
  schemes: ["redis", "rediss"],
  urlForms: ["redis://…", "rediss://…"],
  checkUrl(url) {
    if (!/^rediss?:\/\/./.test(url) || !URL.canParse(url))
      return "is not a URL: write redis://host:6379 or rediss://host:6380";
    const { username, password, pathname } = new URL(url);
    // The client would throw an error that quotes them.
    if (!isDecodable(username) || !isDecodable(password))
      return "has a user or password with a % that begins no escape: write %25 for %";
    return /^\/?\d{0,9}$/.test(pathname)
      ? undefined
      : "names a database that is not a number: write redis://host:6379/0";
  },
  dataFolder() {
    return undefined;
  },
  async inspect(url, options) {
    const { inspectRedis } = await import("./inspect-redis.ts");
    return await inspectRedis(url, options);
  },
  async open(url, { log, deadlineMs }) {
    const { openRedisBackend } = await import("./redis-backend.ts");
    const backend = await openRedisBackend(url, { log, deadlineMs });
    return {
      backend,
      name: `Redis at ${backend.address}`,
      blobs: "entries",
      leases: backend.leases,
      restored: undefined,
      backup: { unsupported: "Redis has backups of its own: use BGSAVE, or copy its files" },
    };
  },
};

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
