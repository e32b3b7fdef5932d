import { describe, expect, it } from "vitest";
import { parseRedisUrl, redisStore } from "../../../../src/conversations/redis/redis-store.ts";
import { productOf } from "../../../../src/conversations/redis/redis-script.ts";

describe("a Redis URL", () => {
  it("of one server waits for no replica unless it says so, which the client does not see", () => {
    expect(parseRedisUrl("redis://:p@host:6380/2")).toEqual({
      url: "redis://:p@host:6380/2",
      isTls: false,
      replicas: 0,
      cluster: undefined,
    });
    expect(parseRedisUrl("rediss://host?wait_replicas=2")).toMatchObject({
      url: "rediss://host",
      isTls: true,
      replicas: 2,
    });
  });

  it("of a cluster names some of its servers, and leaves it to the cluster whether there are replicas", () => {
    expect(parseRedisUrl("redis+cluster://u:p@a:1,b")).toMatchObject({
      replicas: undefined,
      cluster: {
        addresses: [
          { host: "a", port: 1 },
          { host: "b", port: 6379 },
        ],
        username: "u",
        password: "p",
      },
    });
    expect(parseRedisUrl("rediss+cluster://a/?wait_replicas=2")).toMatchObject({ isTls: true, replicas: 2 });
  });

  it.each([
    ["redis+cluster://a/0", "cluster"],
    ["redis+cluster://a,,b", "cluster"],
    ["redis+cluster://a?wait_replicas=x", "wait_replicas"],
    ["redis://a?wait_replicas=101", "wait_replicas"],
    ["redis+cluster://u:%zz@a", "escape"],
  ])("%s is refused", (url, words) => {
    expect(redisStore.checkUrl(url)).toContain(words);
  });
});

describe("the product behind the protocol", () => {
  it("is named as it names itself", () => {
    expect(productOf("# Server\r\nredis_version:7.0.15\r\n")).toBe("Redis");
    expect(
      productOf("# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n"),
    ).toBe("Valkey");
  });
});
