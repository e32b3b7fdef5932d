import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import { ParleyError } from "../core/errors.ts";
import type { Sealer } from "../core/platform-module.ts";
import type { EntryAddress } from "./keys.ts";

/**
 * Encryption at rest of entries and blob files. Without keys nothing is encrypted, entries have a checksum,
 * and encrypted values are refused.
 */
export interface Encryption {
  /** Whether new values are encrypted. */
  readonly isOn: boolean;
  /** Whether values that are not encrypted can be read too. It has no effect without keys. */
  readonly acceptsPlain: boolean;
  /** @throws ParleyError `store-corrupt` (damaged, moved, wrong form) or `config` (no such key) in `open` */
  readonly entries: Forms<string>;
  /** The same for bytes in a file. File names mark plain ones, which are not opened during encryption. */
  readonly files: Forms<Uint8Array>;
}

interface Forms<T> {
  readonly seal: (at: EntryAddress, value: T) => T;
  readonly open: (at: EntryAddress, stored: T) => T;
}

/** The beginning of sealed bytes. */
const magic = Buffer.from("parley2\0");

/** The beginning of encrypted entries, with which JSON never begins. */
const prefix = "enc2:";

/**
 * Seals files outside of the store with the first key and opens with any. The name is associated data, so
 * sealed bytes open under no other name. `open` throws `store-corrupt` (plain, damaged or under another name)
 * or `config` (no such key). Without keys (`isOn` false) bytes stay unchanged.
 * @throws ParleyError `config` if a key is not 32 bytes in base64 or hex
 */
export function createSealer(keys: readonly string[] = []): Sealer & { readonly isOn: boolean } {
  const ring = createKeyRing(keys);
  return {
    isOn: ring.isOn,
    seal: (name, bytes) => (ring.isOn ? sealBytes(ring, toData("bytes", name), bytes) : bytes),
    open(name, bytes) {
      if (hasMagic(bytes)) return openBytes(ring, toData("bytes", name), bytes);
      if (ring.isOn) throw notEncrypted();
      return bytes;
    },
  };
}

/**
 * Writes with the first key and reads with any.
 * @param acceptsPlain for a copy of a store of version 4 that was never encrypted completely
 * @throws ParleyError `config` if a key is not 32 bytes in base64 or hex
 */
export function createEncryption(keys: readonly string[] = [], acceptsPlain = false): Encryption {
  const ring = createKeyRing(keys);
  return {
    isOn: ring.isOn,
    acceptsPlain,
    entries: {
      seal: (at, text) =>
        ring.isOn
          ? prefix + ring.encrypt(Buffer.from(text), toEntryData(at)).toString("base64")
          : addChecksum(at, text),
      open(at, stored) {
        if (stored.startsWith(prefix))
          return ring
            .decrypt(Buffer.from(stored.slice(prefix.length), "base64"), toEntryData(at))
            .toString("utf8");
        if (ring.isOn && !acceptsPlain) throw notEncrypted();
        return checkChecksum(at, stored);
      },
    },
    files: {
      seal: (at, bytes) => (ring.isOn ? sealBytes(ring, toFileData(at), bytes) : bytes),
      open(at, stored) {
        if (hasMagic(stored)) return openBytes(ring, toFileData(at), stored);
        throw new ParleyError("store-corrupt", "a file that must be encrypted is not");
      },
    },
  };
}

function hasMagic(bytes: Uint8Array): boolean {
  return toBuffer(bytes).subarray(0, magic.length).equals(magic);
}

function sealBytes(ring: KeyRing, associatedData: Buffer, bytes: Uint8Array): Buffer {
  return Buffer.concat([magic, ring.encrypt(bytes, associatedData)]);
}

function openBytes(ring: KeyRing, associatedData: Buffer, sealed: Uint8Array): Buffer {
  return ring.decrypt(sealed.subarray(magic.length), associatedData);
}

const toEntryData = ({ space, key }: EntryAddress) => toData("entry", `${space}\0${key}`);
const toFileData = ({ space, key }: EntryAddress) => toData("file", `${space}\0${key}`);

/** The encoding is UTF-16, because UTF-8 would encode all lone surrogates alike. */
function toData(kind: "bytes" | "entry" | "file", name: string): Buffer {
  return Buffer.from(`${kind}\0${name}`, "utf16le");
}

function notEncrypted(): ParleyError {
  return new ParleyError("store-corrupt", "a value that must be encrypted is not");
}

/**
 * A stored value without encryption has a checksum over its address and text, as a second field of its JSON.
 * @see docs/decisions/lost-and-damaged-data.md
 */
const suffix = /^,"crc":"([0-9a-f]{8})"\}$/;
const suffixChars = 18;

/** Adds the checksum. `text` is the JSON of an object with at least one field. */
export function addChecksum(at: EntryAddress, text: string): string {
  return `${text.slice(0, -1)},"crc":"${checksumOf(at, text)}"}`;
}

/**
 * Removes the checksum, or returns a text without one unchanged.
 * @throws ParleyError `store-corrupt` if the text was changed or stored under another address
 */
export function checkChecksum(at: EntryAddress, stored: string): string {
  const checksum = suffix.exec(stored.slice(-suffixChars))?.[1];
  if (checksum === undefined) return stored;
  const text = `${stored.slice(0, -suffixChars)}}`;
  if (checksum === checksumOf(at, text)) return text;
  throw new ParleyError("store-corrupt", "a stored value does not match its checksum", {
    detail: { space: at.space },
  });
}

function checksumOf({ space, key }: EntryAddress, text: string): string {
  return crc32(`${space}\0${key}\0${text}`).toString(16).padStart(8, "0");
}

/** AES-256-GCM with several keys. Each value has a new nonce, and the fingerprint identifies its key. */
interface KeyRing {
  /** Whether there is a key. */
  readonly isOn: boolean;
  /** Encrypts with the newest key to fingerprint (4 bytes), nonce (12), tag (16) and text. */
  readonly encrypt: (bytes: Uint8Array, associatedData: Uint8Array) => Buffer;
  /**
   * Decrypts with any key.
   * @throws ParleyError `store-corrupt` (damaged, or other associated data), `config` (no such key)
   */
  readonly decrypt: (sealed: Uint8Array, associatedData: Uint8Array) => Buffer;
}

const lengths = { id: 4, nonce: 12, tag: 16 } as const;

interface Key {
  readonly id: Buffer;
  readonly secret: Buffer;
}

/**
 * Encrypts with the first key and decrypts with any.
 * @throws ParleyError `config` if a key is not 32 bytes in base64 or hex
 */
function createKeyRing(keys: readonly string[] = []): KeyRing {
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
          newest === undefined
            ? "the store is encrypted, and there is no key in STORE_ENCRYPTION_KEYS: set it to the store's keys"
            : "the store is encrypted with a key that is not in STORE_ENCRYPTION_KEYS: add it after the newest one, separated by a comma",
        );
      }
      try {
        const decipher = createDecipheriv("aes-256-gcm", key.secret, nonce, { authTagLength: lengths.tag });
        decipher.setAAD(associatedData);
        decipher.setAuthTag(tag);
        return Buffer.concat([decipher.update(text), decipher.final()]);
      } catch (cause) {
        throw new ParleyError("store-corrupt", "an encrypted value was tampered with, moved or damaged", {
          cause,
        });
      }
    },
  };
}

/** Ends "STORE_ENCRYPTION_KEYS …" if the form of a key is wrong. It never quotes a key. */
export function encryptionKeysProblem(keys: readonly string[]): string | undefined {
  const at = keys.findIndex((key) => toSecret(key) === undefined);
  if (at === -1) return undefined;
  const which = keys.length === 1 ? "is not" : `has a key (number ${at + 1}) that is not`;
  return `${which} ${keyForm}`;
}

/** Whether a key of the right form was hardly made by chance: zeros, one byte, a pattern, counted bytes. */
export function isGuessableKey(key: string): "zeros" | boolean {
  const bytes = [...(toSecret(key) ?? [])];
  if (bytes.every((byte) => byte === 0)) return "zeros";
  // About 30 of 32 drawn bytes differ, and as many of the steps between them. Chance never leaves 16.
  const steps = bytes.slice(1).map((byte, at) => (byte - bytes[at]! + 256) % 256);
  return Math.min(new Set(bytes).size, new Set(steps).size) <= 16;
}

/** The same memory as a Buffer. */
function toBuffer(bytes: Uint8Array): Buffer {
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
