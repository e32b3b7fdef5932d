import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { ParleyError } from "../core/errors.ts";

/** AES-256-GCM with several keys: a new nonce for every value, the key identified by its fingerprint. */
export interface KeyRing {
  /** Whether there is a key. */
  readonly isOn: boolean;
  /** With the newest key: fingerprint (4 bytes), nonce (12), tag (16), then the text. */
  readonly encrypt: (bytes: Uint8Array, associatedData: Uint8Array) => Buffer;
  /**
   * With any key. `associatedData` undefined: as earlier versions encrypted, with none.
   * @throws ParleyError `store-corrupt` (damaged, or other associated data), `config` (its key is missing)
   */
  readonly decrypt: (sealed: Uint8Array, associatedData: Uint8Array | undefined) => Buffer;
  /** @throws ParleyError `store-corrupt` (truncated) */
  readonly isWithNewest: (sealed: Uint8Array) => boolean;
}

const lengths = { id: 4, nonce: 12, tag: 16 } as const;

interface Key {
  readonly id: Buffer;
  readonly secret: Buffer;
}

/**
 * Encrypts with the first key and decrypts with any.
 * @throws ParleyError `config` when a key is not 32 bytes in base64 or hex
 */
export function createKeyRing(keys: readonly string[] = []): KeyRing {
  const ring = keys.map(parseKey);
  const [newest] = ring;
  return {
    isOn: newest !== undefined,
    encrypt(bytes, associatedData) {
      if (newest === undefined) throw new ParleyError("internal", "there is no key to encrypt with");
      const nonce = randomBytes(lengths.nonce);
      const cipher = createCipheriv("aes-256-gcm", newest.secret, nonce);
      cipher.setAAD(associatedData);
      const text = Buffer.concat([cipher.update(bytes), cipher.final()]);
      return Buffer.concat([newest.id, nonce, cipher.getAuthTag(), text]);
    },
    decrypt(sealed, associatedData) {
      const { id, nonce, tag, text } = split(sealed);
      const key = ring.find((each) => each.id.equals(id));
      if (key === undefined) {
        throw new ParleyError(
          "config",
          "the store is encrypted with a key that is not in STORE_ENCRYPTION_KEYS: add it after the newest one",
        );
      }
      try {
        const decipher = createDecipheriv("aes-256-gcm", key.secret, nonce, { authTagLength: lengths.tag });
        if (associatedData !== undefined) decipher.setAAD(associatedData);
        decipher.setAuthTag(tag);
        return Buffer.concat([decipher.update(text), decipher.final()]);
      } catch (cause) {
        throw new ParleyError("store-corrupt", "an encrypted value was tampered with, moved or damaged", {
          cause,
        });
      }
    },
    isWithNewest: (sealed) => newest?.id.equals(split(sealed).id) === true,
  };
}

/** What is wrong with the form of keys, as the end of "STORE_ENCRYPTION_KEYS …"; `undefined`: nothing. Never quotes one. */
export function encryptionKeysProblem(keys: readonly string[]): string | undefined {
  const at = keys.findIndex((key) => toSecret(key) === undefined);
  if (at === -1) return undefined;
  const which = keys.length === 1 ? "is not" : `has a key (number ${at + 1}) that is not`;
  return `${which} ${keyForm}`;
}

/** The same memory as a Buffer. */
export function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
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

const keyForm = "32 bytes in base64 or hex: make a key with `openssl rand -base64 32`";

function toSecret(text: string): Buffer | undefined {
  const secret = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, "hex") : Buffer.from(text, "base64");
  return secret.length === 32 ? secret : undefined;
}

function parseKey(text: string): Key {
  const secret = toSecret(text);
  if (secret === undefined)
    throw new ParleyError("config", `a key in STORE_ENCRYPTION_KEYS is not ${keyForm}`);
  return {
    secret,
    id: createHash("sha256").update("parley key").update(secret).digest().subarray(0, lengths.id),
  };
}
