import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fromStored, toStored } from "../../../../src/conversations/postgres/postgres-writer.ts";

const name = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: fc.constantFrom("\0", "\u0001", "0", "1", "d", "a") }),
  fc.string({ unit: fc.constantFrom("a", "😀", "\0"), minLength: 900, maxLength: 1100 }),
);

describe("names as Postgres stores them", () => {
  it("hold no NUL, fit its indexes, and are read as they were", () => {
    fc.assert(
      fc.property(name, (text) => {
        const { name: stored, original } = toStored(text);
        expect(stored).not.toContain("\0");
        expect(original ?? "").not.toContain("\0");
        expect(stored.isWellFormed()).toBe(true);
        expect(Buffer.byteLength(stored)).toBeLessThanOrEqual(1000);
        expect(fromStored(original ?? stored)).toBe(text);
      }),
    );
  });

  it("differ where the names differ", () => {
    fc.assert(
      fc.property(name, name, (one, other) => {
        expect(toStored(one).name === toStored(other).name).toBe(one === other);
      }),
    );
    const long = "x".repeat(16_000);
    expect(toStored(`${long}1`).name).not.toBe(toStored(`${long}2`).name);
  });

  it("are readable as they are, as far as they can be", () => {
    expect(toStored("discord:12/0000000001")).toEqual({ name: "discord:12/0000000001", original: undefined });
  });
});
