import { describe, expect, it } from "vitest";
import { addChecksum, checkChecksum } from "../../../src/conversations/encryption.ts";
import { createKeyValueStore } from "../../../src/conversations/key-value.ts";
import type { Backend } from "../../../src/conversations/backend.ts";
import type { EntryAddress } from "../../../src/conversations/keys.ts";

const at = { space: "record", key: "k" } as const;
const text = '{"value":{"name":"Ann","count":12}}';

/** Makes a store that holds one value under every key. */
function storeOf(stored: string) {
  const backend = {
    read: async (addresses: readonly EntryAddress[]) => addresses.map(() => stored),
  };
  return createKeyValueStore(backend as unknown as Backend);
}

describe("the checksum of a stored value", () => {
  it("is a field that earlier versions ignore", () => {
    const stored = addChecksum(at, text);
    expect(JSON.parse(stored)).toEqual({ ...JSON.parse(text), crc: expect.stringMatching(/^[0-9a-f]{8}$/) });
    expect(checkChecksum(at, stored)).toBe(text);
  });

  it("is of its address too", () => {
    const stored = addChecksum(at, text);
    const elsewhere = [{ ...at, key: "k2" }, { ...at, space: "settings" } as const];
    for (const other of elsewhere) expect(() => checkChecksum(other, stored)).toThrow("checksum");
  });

  it("is not missed in values of earlier versions, whatever they hold", async () => {
    for (const value of ["x", { crc: "12345678" }, ',"crc":"12345678"}', ["crc", "12345678"]]) {
      expect(await storeOf(JSON.stringify({ value })).get("record", "k")).toEqual(value);
    }
  });

  it("finds every byte that is changed, also in itself", async () => {
    const stored = Buffer.from(addChecksum(at, text));
    for (let index = 0; index < stored.length; index++) {
      for (const bit of [1, 2, 4, 8, 16, 32, 64]) {
        const damaged = Buffer.from(stored);
        damaged[index] = (damaged[index] ?? 0) ^ bit;
        const outcome = await storeOf(damaged.toString())
          .get("record", "k")
          .catch((error: unknown) => error);
        expect(outcome, damaged.toString()).toMatchObject({ code: "store-corrupt" });
      }
    }
  });
});
