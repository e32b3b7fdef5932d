import { createHash } from "node:crypto";
import { ParleyError } from "../core/errors.ts";
import type { Sealer } from "../core/platform-module.ts";
import { createEncryption } from "./encryption.ts";

/**
 * Seals files outside the store under the store's keys. The digest of the name is encrypted with the bytes.
 * @throws ParleyError `config` when a key is not 32 bytes in base64 or hex
 */
export function createSealer(keys: readonly string[]): Sealer {
  const encryption = createEncryption(keys);
  if (!encryption.isOn) return { seal: (_name, bytes) => bytes, open: (_name, bytes) => bytes };
  return {
    seal: (name, bytes) => encryption.seal(Buffer.concat([digestOf(name), bytes])),
    open(name, sealed) {
      const bytes = encryption.unseal(sealed);
      const digest = digestOf(name);
      if (!digest.equals(bytes.subarray(0, digest.length)))
        throw new ParleyError("store-corrupt", "a sealed file was moved to another name");
      return bytes.subarray(digest.length);
    },
  };
}

function digestOf(name: string): Buffer {
  return createHash("sha256").update(name).digest();
}
