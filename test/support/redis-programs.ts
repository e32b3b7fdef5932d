const isValkey = process.env["TEST_REDIS"] === "valkey";

/**
 * The programs for the Redis store's tests: those of Redis, or of Valkey where `TEST_REDIS=valkey`. The
 * `title` is the server's name.
 */
export const redisPrograms = isValkey
  ? ({ server: "valkey-server", client: "valkey-cli", title: "Valkey" } as const)
  : ({ server: "redis-server", client: "redis-cli", title: "Redis" } as const);
