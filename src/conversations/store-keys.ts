import { createHash } from "node:crypto";
import type { EntryAddress } from "./backend.ts";

/** Where the entries of a conversation lie. Ids hold anything, so `/` and `%` in them are escaped. */
export const entryAt = {
  head: (conversationId: string): EntryAddress => ({ space: "head", key: escapeId(conversationId) }),
  settings: (conversationId: string): EntryAddress => ({ space: "settings", key: escapeId(conversationId) }),
  slot: (conversationId: string, position: number): EntryAddress => ({
    space: "slot",
    // Padded so that a sorted walk goes through them in order.
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
} as const;

export const indexes = {
  /** Platforms that have conversations. */
  platforms: "platforms",
  /** A platform's conversations by the time they were last spoken in. */
  conversations: (platform: string) => `conversations:${platform}`,
  /** Hashes of a conversation's blobs. */
  blobs: (conversationId: string) => `blobs:${folderOf(conversationId)}`,
  /** Keys of accepted events that are not answered yet, in order of acceptance. */
  inbox: "inbox",
} as const;

/** The first part of a conversation's id. */
export function platformOf(conversationId: string): string {
  return conversationId.split(":", 1)[0] ?? "";
}

/** A folder name that no conversation id, however odd, can lead out of. */
export function folderOf(conversationId: string): string {
  return createHash("sha256").update(conversationId).digest("hex").slice(0, 32);
}

function escapeId(id: string): string {
  return id.replaceAll("%", "%25").replaceAll("/", "%2F");
}
