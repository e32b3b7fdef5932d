import { createHash } from "node:crypto";
import { ParleyError } from "../core/errors.ts";
import { countedPrefix, type EntryAddress } from "./backend.ts";

/** Addresses of a conversation's entries. Ids may hold anything, so their `/` and `%` are escaped. */
export const entryAt = {
  head: (conversationId: string): EntryAddress => ({ space: "head", key: escapeId(conversationId) }),
  settings: (conversationId: string): EntryAddress => ({ space: "settings", key: escapeId(conversationId) }),
  summary: (conversationId: string): EntryAddress => ({ space: "summary", key: escapeId(conversationId) }),
  slot: (conversationId: string, position: number): EntryAddress => ({
    space: "slot",
    // The position is padded so that keys sort by it.
    key: `${escapeId(conversationId)}/${String(position).padStart(10, "0")}`,
  }),
  messageId: (conversationId: string, messageId: string): EntryAddress => ({
    space: "id",
    key: `${escapeId(conversationId)}/${messageId}`,
  }),
  blob: (conversationId: string, hash: string): EntryAddress => ({
    space: "blob",
    key: `${folderOf(conversationId)}/${hash}`,
  }),
  event: (key: string): EntryAddress => ({ space: "inbox", key }),
  turn: (key: string): EntryAddress => ({ space: "turn", key }),
  layer: (holder: string): EntryAddress => ({ space: "layer", key: holder }),
} as const;

/** The names of the sorted indexes. */
export const indexes = {
  /** Platforms that have or had conversations. */
  platforms: "platforms",
  /** A platform's conversations by the time of their last message. */
  conversations: (platform: string) => `conversations:${platform}`,
  /** Conversations in which an author has written. */
  conversationsOf: (authorId: string) => `conversations-of:${authorId}`,
  /** Conversations within a place: a server, workspace or channel. */
  conversationsWithin: (place: string) => `conversations-within:${place}`,
  /** A platform's pinned conversations. */
  pinned: (platform: string) => `pinned:${platform}`,
  /** Names of the three kinds of indexes above that list a conversation, from which it can be removed. */
  listings: (conversationId: string) => `listings:${conversationId}`,
  /** Hashes of a conversation's blobs. */
  blobs: (conversationId: string) => `blobs:${folderOf(conversationId)}`,
  /** Keys of open events in the order of acceptance. */
  openEvents: "inbox",
  /** Keys of a conversation's open events in the order of acceptance. */
  openEventsIn: (conversationId: string) => `open-events-in:${conversationId}`,
  /** Keys of a conversation's answered events by the time when they expire. */
  answeredEventsIn: (conversationId: string) => `answered-events-in:${conversationId}`,
  /** Keys of an author's answered events by the time when they expire. */
  answeredEventsBy: (authorId: string) => `answered-events-by:${authorId}`,
  /** Names of the two kinds of indexes above by the time when a member may expire. */
  expiringIndexes: "expiring-indexes",
  /** Turns of each person that began in a minute (Unix minutes). */
  turns: (minute: number) => `${countedPrefix}turns:${minute}`,
  turnsPrefix: `${countedPrefix}turns:`,
  /** Reserves for running calls in a period, by what is charged, in billionths of a USD. */
  reserved: (period: number) => `${countedPrefix}reserved:${period}`,
  reservedPrefix: `${countedPrefix}reserved:`,
  /** Settled reserves of a period. */
  settled: (period: number) => `${countedPrefix}settled:${period}`,
  /** Spending in a day (`YYYY-MM-DD`) or a month (`YYYY-MM`), by what is charged, in billionths of a USD. */
  spent: (period: string) => `${countedPrefix}spent:${period}`,
  /** The share in percent of each budget of a day or a month that people were told of. */
  told: (period: string) => `${countedPrefix}told:${period}`,
  /** The shares of budgets that were told on a day, by the time. */
  toldOn: (day: string) => `${countedPrefix}told-on:${day}`,
  /** Usage on a day by person, channel, model, operation and measure. */
  usage: (day: string) => `${countedPrefix}usage:${day}`,
  /** The index of a day's ratings, each with its person. */
  ratings: (day: string) => `${countedPrefix}ratings:${day}`,
  /** Days on which a person has used something, or that have an answer which the person has rated. */
  usageDaysOf: (personId: string) => `${countedPrefix}days-of:${personId}`,
  /** Names of the indexes that hold counts, by the time when they may be removed. */
  countedIndexes: "ledger",
} as const;

/** The first part of a conversation's id. */
export function platformOf(conversationId: string): string {
  return conversationId.split(":", 1)[0] ?? "";
}

/** A folder name for a conversation. It is a hash, so that no id can lead out of the parent folder. */
export function folderOf(conversationId: string): string {
  return createHash("sha256").update(conversationId).digest("hex").slice(0, 32);
}

function escapeId(id: string): string {
  return id.replaceAll("%", "%25").replaceAll("/", "%2F");
}

/**
 * Checks the version of a store. There is no migration from earlier versions, which no release has written.
 * @throws ParleyError `config` for earlier ones, `store-newer` for later ones
 */
export function expectKnownVersion(name: string, version: number, known: number): void {
  if (version < known)
    throw new ParleyError(
      "config",
      `${name} was written by a Parley from before the first release: name an empty store in STORE_URL; the Parley that wrote this one can export its conversations`,
    );
  if (version > known)
    throw new ParleyError(
      "store-newer",
      `${name} was written by a newer Parley (its version is ${version}, this one knows ${known}): update Parley, or restore an older backup`,
      { detail: { version, known } },
    );
}
