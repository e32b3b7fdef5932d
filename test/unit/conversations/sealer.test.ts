import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createSealer } from "../../../src/conversations/encryption.ts";
import { isParleyError } from "../../../src/core/errors.ts";

const newKey = () => randomBytes(32).toString("base64");
const corrupt = expect.objectContaining({ code: "store-corrupt" });
const config = expect.objectContaining({ code: "config" });

// Attack: Changed, cut, random sealed bytes; other names; plain bytes.
describe("a sealer of bytes", () => {
  it("opens what it sealed under the same name only", () => {
    const { isOn, seal, open } = createSealer([newKey()]);
    expect(isOn).toBe(true);
    const name = fc.string({ unit: "binary" });
    fc.assert(
      fc.property(name, name, fc.uint8Array(), (one, other, bytes) => {
        const sealed = seal(one, bytes);
        expect(Buffer.from(open(one, sealed)).equals(bytes)).toBe(true);
        if (one !== other) expect(() => open(other, sealed)).toThrow(corrupt);
      }),
    );
  });

  it.each([
    ["\ud800", "\udfff"],
    ["a\0b", "a"],
    ["e\u0301", "\u00e9"],
    ["__proto__", ""],
  ])("tells the name %j from %j", (one, other) => {
    const { seal, open } = createSealer([newKey()]);
    expect(() => open(other, seal(one, Buffer.from("x")))).toThrow(corrupt);
  });

  it("refuses plain bytes with a key, and takes them as they are without one", () => {
    const plain = Buffer.from("plain");
    expect(() => createSealer([newKey()]).open("name", plain)).toThrow(corrupt);
    const off = createSealer();
    expect(off.isOn).toBe(false);
    expect(off.open("name", off.seal("name", plain))).toBe(plain);
  });

  it("opens with older keys, and names the setting when the key is missing", () => {
    const [old, recent] = [newKey(), newKey()];
    const sealed = createSealer([old]).seal("name", Buffer.from("words"));
    expect(Buffer.from(createSealer([recent, old]).open("name", sealed)).toString()).toBe("words");
    for (const keys of [[], [recent]]) expect(() => createSealer(keys).open("name", sealed)).toThrow(config);
  });

  it("never opens changed or random bytes", () => {
    const { seal, open } = createSealer([newKey()]);
    const sealed = seal("name", Buffer.from("do not touch"));
    const change = fc.record({ at: fc.nat(sealed.length - 1), xor: fc.integer({ min: 1, max: 255 }) });
    const changed = change.map(({ at, xor }) => sealed.with(at, (sealed[at] ?? 0) ^ xor));
    const cut = fc.nat(sealed.length - 1).map((length) => sealed.subarray(0, length));
    fc.assert(
      fc.property(fc.oneof(changed, cut, fc.uint8Array()), (bytes) => {
        let error: unknown;
        try {
          open("name", bytes);
        } catch (thrown) {
          error = thrown;
        }
        expect(isParleyError(error, "store-corrupt") || isParleyError(error, "config")).toBe(true);
      }),
      { numRuns: 150 },
    );
  });
});
