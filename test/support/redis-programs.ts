const isValkey = process.env["TEST_REDIS"] === "valkey";

/**
 * The programs behind the stories of the Redis store: those of Redis, or of Valkey where `TEST_REDIS=valkey`. `title`: what the
 * server is called.
 */
export const redisPrograms = isValkey
  ? ({ server: "valkey-server", client: "valkey-cli", title: "Valkey" } as const)
  : ({ server: "redis-server", client: "redis-cli", title: "Redis" } as const);
