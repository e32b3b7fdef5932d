import fc from "fast-check";
import pg from "pg";
import { createClient } from "redis";
import { describe, expect, it } from "vitest";
import { backendOf, dataFolderOf, storeUrlProblem } from "../../../src/conversations/backends.ts";
import { parsePostgresUrl } from "../../../src/conversations/sql/postgres-url.ts";
import { isParleyError } from "../../../src/core/errors.ts";

/** These are printed with the shrunk example when a property fails. */
const bounds = { seed: 8, numRuns: 150 };

const part = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.constantFrom("%", "%zz", "%E0%A4", "secret", "user", "/", "0", "-1", "1e3", "::", "[", "@", "\0"),
);
const redisUrl = fc
  .tuple(fc.constantFrom("redis", "rediss"), part, part, part, part)
  .map(([scheme, user, password, host, path]) => `${scheme}://${user}:${password}@${host}h/${path}`);
const postgresUrl = fc
  .tuple(fc.constantFrom("postgres", "postgresql"), part, part, part, part, part)
  .map(
    ([scheme, user, password, host, path, query]) =>
      `${scheme}://${user}:${password}@${host}h/${path}?${query}`,
  );
const url = fc.oneof(
  redisUrl,
  postgresUrl,
  fc.string({ unit: "binary" }),
  fc
    .tuple(fc.constantFrom("sqlite", "redis", "redis+cluster", "postgres", "__proto__"), fc.string())
    .map(([scheme, rest]) => `${scheme}:${rest}`),
);

// Attack: Any `STORE_URL`; credentials in error words.
describe("any STORE_URL", () => {
  it("is a problem that can be named, or accepted; never an exception", () => {
    fc.assert(
      fc.property(url, (text) => {
        const problem = storeUrlProblem(text);
        expect(typeof dataFolderOf(text)).toBe("string");
        let error: unknown;
        try {
          backendOf(text);
        } catch (thrown) {
          error = thrown;
        }
        expect(isParleyError(error, "config")).toBe(problem !== undefined);
      }),
      bounds,
    );
  });

  it("that is accepted for Redis is one that its client accepts", () => {
    fc.assert(
      fc.property(redisUrl, (text) => {
        if (storeUrlProblem(text) === undefined) expect(() => createClient({ url: text })).not.toThrow();
      }),
      bounds,
    );
  });

  it("that is accepted for Postgres is one that its client accepts", () => {
    fc.assert(
      fc.property(postgresUrl, (text) => {
        if (storeUrlProblem(text) !== undefined) return;
        const { connectionString } = parsePostgresUrl(text);
        expect(() => new pg.Client({ connectionString })).not.toThrow();
      }),
      bounds,
    );
  });

  it.each([
    "redis://user:hunter2%zz@host:6379",
    "redis://hunter2%@host:6379",
    "redis://host:6379/hunter2",
    "redis://host:hunter2/0",
    "redis://host:6379?wait_replicas=hunter2",
    "redis+cluster://user:hunter2%zz@host",
    "redis+cluster://user:hunter2@host:99999",
    "postgres://user:hunter2%zz@host/db",
    "postgres://host:hunter2/db",
    "postgres://user@host/db?schema=Hunter2-hunter2",
  ])("that is wrong is not quoted: %s", (text) => {
    expect(storeUrlProblem(text)).toBeTypeOf("string");
    expect(storeUrlProblem(text)).not.toContain("hunter2");
  });
});
