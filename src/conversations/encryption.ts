import { ParleyError } from "../core/errors.ts";
import type { Sealer } from "../core/platform-module.ts";
import type { EntryAddress } from "./backend.ts";
import { addChecksum, checkChecksum } from "./checksum.ts";
import { createKeyRing, type KeyRing, toBuffer } from "./key-ring.ts";

/**
 * How a stored value is encrypted. `bound`: to its address, as this version writes. `unbound`: as versions before
 * did, so that it could be moved to another address. `plain`: not at all.
 */
export type SealedForm = "plain" | "unbound" | "bound";

/**
 * Encryption at rest of entries and blob files. Without keys nothing is encrypted and encrypted values are refused;
 * entries have a checksum then.
 */
export interface Encryption {
  /** Whether new values are encrypted. */
  readonly isOn: boolean;
  /** Whether `plain` and `unbound` values are read too. At first they are not. Without keys it has no effect. */
  acceptsOldForms: boolean;
  /** @throws ParleyError from `open`: `store-corrupt` (damaged, moved, refused form), `config` (its key is missing) */
  readonly entries: Forms<string>;
  /** The same for bytes in a file. `plain` ones are not opened while encryption is on: their names tell them apart. */
  readonly files: Forms<Uint8Array>;
}

interface Forms<T> {
  readonly seal: (at: EntryAddress, value: T) => T;
  readonly open: (at: EntryAddress, stored: T) => T;
  readonly formOf: (stored: T) => SealedForm;
  /** Whether a stored value is as it would be written now; `reencrypt` rewrites the others. */
  readonly isCurrent: (stored: T) => boolean;
}

/** Begins sealed bytes. */
const magic = Buffer.from("parley2\0");

/** Prefixes of encrypted entries; JSON never begins with them. */
const prefixes = { unbound: "enc1:", bound: "enc2:" } as const;

/**
 * Seals files outside the store with the first key and opens with any. The name is associated data: sealed bytes open
 * under no other. `open` throws `store-corrupt` (plain, damaged or of another name) or `config` (their key is
 * missing). Without keys (`isOn` false) bytes stay as they are.
 * @throws ParleyError `config` when a key is not 32 bytes in base64 or hex
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
 * Writes with the first key and reads with any: to change keys, put the new one first and keep the old one until
 * everything is rewritten.
 * @throws ParleyError `config` when a key is not 32 bytes in base64 or hex
 */
export function createEncryption(keys: readonly string[] = []): Encryption {
  const ring = createKeyRing(keys);
  const refuseUnlessAccepted = (form: SealedForm) => {
    if (form === "bound" || !ring.isOn || encryption.acceptsOldForms) return;
    throw form === "plain"
      ? notEncrypted()
      : new ParleyError("store-corrupt", "a value is encrypted in a form that this store no longer has");
  };
  const encryption: Encryption = {
    isOn: ring.isOn,
    acceptsOldForms: false,
    entries: {
      seal: (at, text) =>
        ring.isOn
          ? prefixes.bound + ring.encrypt(Buffer.from(text), toEntryData(at)).toString("base64")
          : addChecksum(at, text),
      open(at, stored) {
        const form = entryFormOf(stored);
        refuseUnlessAccepted(form);
        if (form === "plain") return checkChecksum(at, stored);
        const data = form === "bound" ? toEntryData(at) : undefined;
        return ring.decrypt(decodeEntry(stored), data).toString("utf8");
      },
      formOf: entryFormOf,
      isCurrent(stored) {
        const form = entryFormOf(stored);
        return ring.isOn ? form === "bound" && ring.isWithNewest(decodeEntry(stored)) : form === "plain";
      },
    },
    files: {
      seal: (at, bytes) => (ring.isOn ? sealBytes(ring, toFileData(at), bytes) : bytes),
      open(at, stored) {
        const form = fileFormOf(stored);
        refuseUnlessAccepted(form);
        return form === "bound" ? openBytes(ring, toFileData(at), stored) : ring.decrypt(stored, undefined);
      },
      formOf: fileFormOf,
      isCurrent: (stored) =>
        fileFormOf(stored) === "bound" && ring.isWithNewest(stored.subarray(magic.length)),
    },
  };
  return encryption;
}

function entryFormOf(stored: string): SealedForm {
  if (stored.startsWith(prefixes.bound)) return "bound";
  return stored.startsWith(prefixes.unbound) ? "unbound" : "plain";
}

/** Files of earlier versions begin with a key's fingerprint. */
function fileFormOf(stored: Uint8Array): SealedForm {
  return hasMagic(stored) ? "bound" : "unbound";
}

/** Both prefixes have the same length. */
function decodeEntry(stored: string): Buffer {
  return Buffer.from(stored.slice(prefixes.bound.length), "base64");
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

/** UTF-16, since UTF-8 would encode all lone surrogates alike. */
function toData(kind: "bytes" | "entry" | "file", name: string): Buffer {
  return Buffer.from(`${kind}\0${name}`, "utf16le");
}

function notEncrypted(): ParleyError {
  return new ParleyError("store-corrupt", "a value that must be encrypted is not");
}
