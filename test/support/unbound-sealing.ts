import { createCipheriv, createHash, randomBytes } from "node:crypto";

/** A value as versions before 3 of the store encrypted it: not bound to its address. `key`: base64. */
export function sealUnbound(key: string, text: string): string {
  // Those versions wrote no checksums.
  const withoutChecksum = text.replace(/,"crc":"[0-9a-f]{8}"\}$/, "}");
  return `enc1:${sealUnboundBytes(key, withoutChecksum).toString("base64")}`;
}

/** The content of a blob file of those versions. */
export function sealUnboundBytes(key: string, content: string | Uint8Array): Buffer {
  const secret = Buffer.from(key, "base64");
  const id = createHash("sha256").update("parley key").update(secret).digest().subarray(0, 4);
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", secret, nonce);
  const text = Buffer.concat([cipher.update(content), cipher.final()]);
  return Buffer.concat([id, nonce, cipher.getAuthTag(), text]);
}
