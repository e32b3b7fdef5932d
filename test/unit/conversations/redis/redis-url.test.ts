import { describe, expect, it } from "vitest";
import { redisStore } from "../../../../src/conversations/redis/redis-store.ts";
import { productOf } from "../../../../src/conversations/redis/redis-script.ts";

describe("a Redis URL", () => {
  it.each([["redis://:p@host:6380/2"], ["rediss://host"]])("%s is taken", (url) => {
    expect(redisStore.checkUrl(url)).toBeUndefined();
  });

  it.each([
    ["redis+cluster://a:6379,b:6379", "one Redis server, or Postgres"],
    ["rediss+cluster://u:secret@a", "one Redis server, or Postgres"],
    ["redis://a?wait_replicas=2", "wait_replicas"],
    ["redis://u:%zz@a", "escape"],
    ["redis://a/b", "database"],
  ])("%s is refused", (url, words) => {
    expect(redisStore.checkUrl(url)).toContain(words);
    expect(redisStore.checkUrl(url)).not.toContain("secret");
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
