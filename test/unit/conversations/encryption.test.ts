import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createEncryption } from "../../../src/conversations/encryption.ts";

const newKey = () => randomBytes(32).toString("base64");
const at = { space: "slot", key: "web:1/0000000000" } as const;
const corrupt = expect.objectContaining({ code: "store-corrupt" });

describe("encryption at rest", () => {
  it("decrypts any text and bytes, and shows nothing of them encrypted", () => {
    const { entries, files } = createEncryption([newKey()]);
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.uint8Array(), (text, bytes) => {
        const stored = entries.seal(at, text);
        expect(entries.open(at, stored)).toBe(text);
        if (text.length > 8) expect(stored).not.toContain(text);
        expect(Buffer.from(files.open(at, files.seal(at, bytes))).equals(Buffer.from(bytes))).toBe(true);
      }),
    );
  });

  it("encrypts the same text differently each time", () => {
    const { entries } = createEncryption([newKey()]);
    expect(entries.seal(at, "same")).not.toBe(entries.seal(at, "same"));
  });

  it("reads with older keys and writes with the newest", () => {
    const [old, recent] = [newKey(), Buffer.from(newKey(), "base64").toString("hex")];
    const stored = createEncryption([old]).entries.seal(at, "words");
    const both = createEncryption([recent, old]).entries;
    expect(both.open(at, stored)).toBe("words");
    const again = both.seal(at, "words");
    expect(createEncryption([recent]).entries.open(at, again)).toBe("words");
  });

  it("binds entries and files to space and key, and apart from each other", () => {
    const { entries, files } = createEncryption([newKey()]);
    const stored = entries.seal(at, "words");
    const sealed = files.seal(at, Buffer.from("words"));
    for (const other of [
      { ...at, key: "web:1/0000000001" },
      { ...at, space: "settings" as const },
    ]) {
      expect(() => entries.open(other, stored)).toThrow(corrupt);
      expect(() => files.open(other, sealed)).toThrow(corrupt);
    }
    const fileAsEntry = `enc2:${Buffer.from(sealed).subarray(8).toString("base64")}`;
    expect(() => entries.open(at, fileAsEntry)).toThrow(corrupt);
  });

  it("reads plain entries only while they are accepted, and plain files never", () => {
    const { entries, files } = createEncryption([newKey()]);
    expect(() => entries.open(at, '{"value":1}')).toThrow(corrupt);
    const accepting = createEncryption([newKey()], true);
    expect(accepting.entries.open(at, '{"value":1}')).toBe('{"value":1}');
    expect(() => files.open(at, Buffer.from("words"))).toThrow(corrupt);
  });

  it("names the setting when a key is missing", () => {
    const stored = createEncryption([newKey()]).entries.seal(at, "words");
    for (const keys of [[], [newKey()]]) {
      expect(() => createEncryption(keys).entries.open(at, stored)).toThrow(
        expect.objectContaining({
          code: "config",
          message: expect.stringContaining("STORE_ENCRYPTION_KEYS"),
        }),
      );
    }
  });

  it("detects every change of a stored value", () => {
    const { files } = createEncryption([newKey()]);
    const sealed = files.seal(at, Buffer.from("do not touch"));
    const afterKeyId = 12;
    for (let position = afterKeyId; position < sealed.length; position++) {
      const forged = Uint8Array.from(sealed);
      forged[position] = (forged[position] ?? 0) ^ 1;
      expect(() => files.open(at, forged)).toThrow(corrupt);
    }
    expect(() => files.open(at, sealed.subarray(0, 20))).toThrow(corrupt);
  });

  it.each(["", "short", randomBytes(16).toString("base64"), randomBytes(33).toString("hex")])(
    "refuses the key %j with a word on how to make one, and without showing it",
    (key) => {
      let message = "";
      try {
        createEncryption([key]);
      } catch (error) {
        expect(error).toMatchObject({ code: "config" });
        message = String(error);
      }
      expect(message).toContain("openssl rand");
      if (key !== "") expect(message).not.toContain(key);
    },
  );
});
