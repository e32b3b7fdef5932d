import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createEncryption } from "../../../src/conversations/encryption.ts";

const newKey = () => randomBytes(32).toString("base64");

describe("encryption at rest", () => {
  it("decrypts any text and bytes, and shows nothing of them encrypted", async () => {
    const { adapter, seal, unseal } = createEncryption([newKey()]);
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme" }), fc.uint8Array(), async (text, bytes) => {
        const stored = await adapter.encrypt(text);
        expect(await adapter.decrypt(stored)).toBe(text);
        if (text.length > 8) expect(stored).not.toContain(text);
        expect(Buffer.from(unseal(seal(bytes))).equals(Buffer.from(bytes))).toBe(true);
      }),
    );
  });

  it("encrypts the same text differently each time", async () => {
    const { adapter } = createEncryption([newKey()]);
    expect(await adapter.encrypt("same")).not.toBe(await adapter.encrypt("same"));
  });

  it("reads with older keys and writes with the newest", async () => {
    const [old, recent] = [newKey(), Buffer.from(newKey(), "base64").toString("hex")];
    const stored = await createEncryption([old]).adapter.encrypt("words");
    const both = createEncryption([recent, old]);
    expect(await both.adapter.decrypt(stored)).toBe("words");
    expect(both.isCurrent(stored)).toBe(false);
    const again = await both.adapter.encrypt("words");
    expect(both.isCurrent(again)).toBe(true);
    expect(await createEncryption([recent]).adapter.decrypt(again)).toBe("words");
  });

  it("reads values stored before encryption was turned on", async () => {
    const { adapter, isCurrent } = createEncryption([newKey()]);
    expect(await adapter.decrypt('{"value":1}')).toBe('{"value":1}');
    expect(isCurrent('{"value":1}')).toBe(false);
  });

  it("names the setting when a key is missing", async () => {
    const stored = await createEncryption([newKey()]).adapter.encrypt("words");
    for (const keys of [[], [newKey()]]) {
      expect(() => createEncryption(keys).adapter.decrypt(stored)).toThrow(
        expect.objectContaining({
          code: "config",
          message: expect.stringContaining("STORE_ENCRYPTION_KEYS"),
        }),
      );
    }
  });

  it("detects every change of a stored value", () => {
    const { seal, unseal } = createEncryption([newKey()]);
    const sealed = seal(Buffer.from("do not touch"));
    for (let at = 4; at < sealed.length; at++) {
      const forged = Uint8Array.from(sealed);
      forged[at] = (forged[at] ?? 0) ^ 1;
      expect(() => unseal(forged)).toThrow(expect.objectContaining({ code: "store-corrupt" }));
    }
    expect(() => unseal(sealed.subarray(0, 20))).toThrow(expect.objectContaining({ code: "store-corrupt" }));
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
