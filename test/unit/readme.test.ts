import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { settings } from "../../src/config.ts";

describe("README.md", () => {
  it("has every setting in its table, and no other", async () => {
    const readme = await readFile("README.md", "utf8");
    const table = readme.slice(readme.indexOf("## Settings"), readme.indexOf("## Work on it"));
    const named = table
      .split("\n")
      .filter((line) => line.startsWith("| `"))
      .flatMap((line) => Array.from(line.split("|")[1]!.matchAll(/`([A-Z_]+)`/g), ([, name]) => name!));
    expect(named.sort()).toEqual(Object.keys(settings).sort());
  });
});
