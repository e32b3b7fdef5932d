import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { prepareSchema, schemaVersion } from "../../../../src/conversations/sqlite/sqlite-file.ts";

describe("the tables of the SQLite file", () => {
  let database: DatabaseSync;
  beforeEach(() => {
    database = new DatabaseSync(":memory:");
  });
  afterEach(() => {
    database.close();
  });
  const version = () => database.prepare("PRAGMA user_version").get()?.["user_version"];

  it("are created once", () => {
    prepareSchema(database, "f");
    database.exec("INSERT INTO entries (namespace, key, value) VALUES ('slot', 'k', 'v')");
    prepareSchema(database, "f");
    expect(version()).toBe(schemaVersion);
    expect(database.prepare("SELECT value FROM entries").get()?.["value"]).toBe("v");
  });

  it.each([
    ["newer", schemaVersion + 1, { code: "store-newer" }],
    ["from before the first release", schemaVersion - 1, { code: "config" }],
  ])("are refused and not changed in a file that is %s", (_, other, error) => {
    prepareSchema(database, "f");
    database.exec(`PRAGMA user_version = ${other}`);
    expect(() => prepareSchema(database, "f")).toThrow(expect.objectContaining(error));
    expect(version()).toBe(other);
    expect(database.isTransaction).toBe(false);
  });
});
