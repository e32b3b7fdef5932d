import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { migrate, migrations } from "../../../../src/conversations/sqlite/sqlite-schema.ts";

const addColumn = (database: DatabaseSync) => database.exec("ALTER TABLE entries ADD COLUMN note TEXT");

describe("migration of the SQLite file", () => {
  let database: DatabaseSync;
  beforeEach(() => {
    database = new DatabaseSync(":memory:");
  });
  afterEach(() => {
    database.close();
  });
  const version = () => database.prepare("PRAGMA user_version").get()?.["user_version"];

  it("creates the tables once", () => {
    migrate(database, "f");
    expect(version()).toBe(migrations.length);
    migrate(database, "f");
    expect(version()).toBe(migrations.length);
  });

  it("migrates an older file with its entries", () => {
    migrate(database, "f", migrations.slice(0, 1));
    database.exec("INSERT INTO entries (namespace, key, value) VALUES ('slot', 'k', 'v')");
    migrate(database, "f", [...migrations.slice(0, 1), addColumn]);
    expect(version()).toBe(2);
    expect({ ...database.prepare("SELECT value, note FROM entries").get() }).toEqual({
      value: "v",
      note: null,
    });
  });

  it("changes nothing when a step fails", () => {
    migrate(database, "f", migrations.slice(0, 1));
    const broken = () => database.exec("this is not SQL");
    expect(() => migrate(database, "f", [...migrations.slice(0, 1), addColumn, broken])).toThrow(
      "syntax error",
    );
    expect(version()).toBe(1);
    expect(() => database.prepare("SELECT note FROM entries")).toThrow("no such column");
    expect(database.isTransaction).toBe(false);
  });

  it("refuses a newer file and does not change it", () => {
    migrate(database, "f", [...migrations, addColumn]);
    expect(() => migrate(database, "f")).toThrow(expect.objectContaining({ code: "store-newer" }));
    expect(version()).toBe(migrations.length + 1);
  });
});
