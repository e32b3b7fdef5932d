import { describe, expect, it } from "vitest";
import {
  backendOf,
  dataFolderOf,
  defaultStoreUrl,
  storeUrlProblem,
} from "../../../src/conversations/backends.ts";

describe("the registry of store backends", () => {
  it("finds a backend by the scheme of the URL", () => {
    expect(backendOf(defaultStoreUrl).schemes).toContain("sqlite");
    expect(backendOf("redis://localhost:6379").schemes).toContain("redis");
    expect(backendOf("rediss://localhost:6380")).toBe(backendOf("redis://localhost:6379"));
    expect(backendOf("postgres://localhost/db").schemes).toContain("postgres");
    expect(backendOf("postgresql://localhost/db")).toBe(backendOf("postgres://localhost/db"));
  });

  it.each(["mongodb://user:secret@host", "file.db", "", "sqlite", ":memory:", "SQLITE:x"])(
    "refuses %j and names the known schemes",
    (url) => {
      const problem = storeUrlProblem(url);
      expect(problem).toBe("must be sqlite:<file>, redis://…, rediss://… or postgres://…");
      expect(() => backendOf(url)).toThrow(`STORE_URL ${problem}`);
    },
  );

  it.each([
    "sqlite:",
    "redis:",
    "redis://",
    "redis:localhost",
    "rediss://user:secret@host:port",
    "postgres://",
    "postgres:db",
    "postgres://user:secret@host:port/db",
    "postgres://user:secret%zz@host/db",
  ])("refuses the malformed %j without quoting it", (url) => {
    const problem = storeUrlProblem(url);
    expect(problem).toContain("write ");
    expect(problem).not.toContain("secret");
    expect(() => backendOf(url)).toThrow("STORE_URL");
  });

  it("keeps local data beside a file, and in a folder of its own otherwise", () => {
    expect(dataFolderOf("sqlite:here/parley.db")).toBe("here");
    expect(dataFolderOf("sqlite:///srv/parley.db")).toBe("/srv");
    expect(dataFolderOf("redis://localhost:6379")).toBe("data");
    expect(dataFolderOf("postgres://localhost/db")).toBe("data");
  });
});
