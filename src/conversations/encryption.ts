import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import type { KeyvEncryptionAdapter } from "keyv";
import { ParleyError } from "../core/errors.ts";

/** Encryption at rest: AES-256-GCM, a new nonce for every value, the key identified by its fingerprint. */
export interface Encryption {
  /** For Keyv's pipeline. Values stored before encryption was turned on are read as they are. */
  readonly adapter: KeyvEncryptionAdapter;
  /** Whether new values are encrypted. */
  readonly isOn: boolean;
  /** Whether a stored value is as it would be written now; `reencrypt` rewrites the others. */
  readonly isCurrent: (stored: string) => boolean;
  /** For blobs. @throws ParleyError `store-corrupt`, `config` (its key is not in the settings) */
  readonly seal: (bytes: Uint8Array) => Uint8Array;
  readonly unseal: (sealed: Uint8Array) => Uint8Array;
  readonly isSealedWithNewest: (sealed: Uint8Array) => boolean;
}

/** Prefix of an encrypted value; JSON never begins with it. */
const marker = "enc1:";

/** Seals bytes under a name with the keys of the store, for files that are kept outside it. */
export interface Sealer {
  /** Without keys `seal` and `open` return the bytes as they are. */
  readonly isOn: boolean;
  /** The bytes encrypted, and bound to `name`: they open under no other. 40 bytes longer. */
  readonly seal: (name: string, bytes: Uint8Array) => Uint8Array;
  /**
   * The bytes that were sealed under `name`.
   * @throws ParleyError `store-corrupt` (plain, damaged or of another name), `config` (their key is missing)
   */
  readonly open: (name: string, bytes: Uint8Array) => Uint8Array;
}

/** Begins sealed bytes. */
const sealedMagic = Buffer.from("parley2\0");

/** Fingerprint (4 bytes), nonce (12), tag (16), then the text. */
const lengths = { id: 4, nonce: 12, tag: 16 } as const;

interface Key {
  readonly id: Buffer;
  readonly secret: Buffer;
}

/**
 * Seals with the first key and opens with any: AES-256-GCM, a new nonce each time, the name as associated data.
 * @throws ParleyError `config` when a key is not 32 bytes in base64 or hex
 */
export function createSealer(keys: readonly string[] = []): Sealer {
  const ring = keys.map(parseKey);
  const [newest] = ring;
  return {
    isOn: newest !== undefined,
    seal: (name, bytes) =>
      newest === undefined
        ? bytes
        : Buffer.concat([sealedMagic, encrypt(newest, bytes, toAssociatedData(name))]),
    open(name, bytes) {
      const isSealed = toBuffer(bytes).subarray(0, sealedMagic.length).equals(sealedMagic);
      if (isSealed) return decrypt(ring, bytes.subarray(sealedMagic.length), toAssociatedData(name));
      if (newest === undefined) return bytes;
      throw new ParleyError("store-corrupt", "a value that must be encrypted is not");
    },
  };
}

/** UTF-16, since UTF-8 would encode all lone surrogates alike. */
function toAssociatedData(name: string): Buffer {
  return Buffer.from(`bytes\0${name}`, "utf16le");
}

/**
 * Writes with the first key and reads with any: to change keys, put the new one first and keep the old one until
 * everything is rewritten. Without keys nothing is encrypted, and encrypted values are refused.
 * @throws ParleyError `config` when a key is not 32 bytes in base64 or hex
 */
export function createEncryption(keys: readonly string[] = []): Encryption {
  const ring = keys.map(parseKey);
  const [newest] = ring;

  const seal = (bytes: Uint8Array): Buffer => {
    if (newest === undefined) throw new ParleyError("internal", "there is no key to encrypt with");
    return encrypt(newest, bytes);
  };
  const unseal = (sealed: Uint8Array): Buffer => decrypt(ring, sealed);
  const isSealedWithNewest = (sealed: Uint8Array) =>
    newest !== undefined && newest.id.equals(split(sealed).id);

  return {
    isOn: newest !== undefined,
    adapter: {
      encrypt: (data) => (newest === undefined ? data : marker + seal(Buffer.from(data)).toString("base64")),
      decrypt: (data) => (data.startsWith(marker) ? unseal(decode(data)).toString("utf8") : data),
    },
    isCurrent: (stored) =>
      newest === undefined
        ? !stored.startsWith(marker)
        : stored.startsWith(marker) && isSealedWithNewest(decode(stored)),
    seal,
    unseal,
    isSealedWithNewest,
  };
}

function encrypt(key: Key, bytes: Uint8Array, associatedData?: Uint8Array): Buffer {
  const nonce = randomBytes(lengths.nonce);
  const cipher = createCipheriv("aes-256-gcm", key.secret, nonce);
  if (associatedData !== undefined) cipher.setAAD(associatedData);
  const text = Buffer.concat([cipher.update(bytes), cipher.final()]);
  return Buffer.concat([key.id, nonce, cipher.getAuthTag(), text]);
}

function decrypt(ring: readonly Key[], sealed: Uint8Array, associatedData?: Uint8Array): Buffer {
  const { id, nonce, tag, text } = split(sealed);
  const key = ring.find((each) => each.id.equals(id));
  if (key === undefined) {
    throw new ParleyError(
      "config",
      "the store is encrypted with a key that is not in STORE_ENCRYPTION_KEYS: add it after the newest one",
    );
  }
  try {
    const decipher = createDecipheriv("aes-256-gcm", key.secret, nonce);
    if (associatedData !== undefined) decipher.setAAD(associatedData);
    decipher.setAuthTag(tag);
    return Buffer.concat([decipher.update(text), decipher.final()]);
  } catch (cause) {
    throw new ParleyError("store-corrupt", "an encrypted value was tampered with or damaged", { cause });
  }
}

function decode(stored: string): Buffer {
  return Buffer.from(stored.slice(marker.length), "base64");
}

function split(sealed: Uint8Array) {
  const bytes = toBuffer(sealed);
  if (bytes.length < lengths.id + lengths.nonce + lengths.tag)
    throw new ParleyError("store-corrupt", "an encrypted value is truncated");
  let at = 0;
  const take = (length: number) => bytes.subarray(at, (at += length));
  return {
    id: take(lengths.id),
    nonce: take(lengths.nonce),
    tag: take(lengths.tag),
    text: bytes.subarray(at),
  };
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function parseKey(text: string): Key {
  const secret = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, "hex") : Buffer.from(text, "base64");
  if (secret.length !== 32) {
    throw new ParleyError(
      "config",
      "a key in STORE_ENCRYPTION_KEYS is not 32 bytes in base64 or hex: make one with `openssl rand -base64 32`",
    );
  }
  return {
    secret,
    id: createHash("sha256").update("parley key").update(secret).digest().subarray(0, lengths.id),
  };
}
