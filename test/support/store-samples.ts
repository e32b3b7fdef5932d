import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "../../src/core/events.ts";
import type { StoredMessage } from "../../src/core/storage.ts";

/** Makes a user message by Ann. */
export function messageOf(id: string, text = `words of ${id}`): StoredMessage {
  return {
    id,
    role: "user",
    turnKey: id,
    author: { id: "test:ann", name: "Ann" },
    parts: [{ kind: "text", text }],
    createdAt: Date.now(),
    estimatedTokens: Math.ceil(Buffer.byteLength(text) / 4),
  };
}

/** Makes a message event by Ann. */
export function eventOf(key: string, conversationId = "test:inbox"): IncomingMessage {
  return {
    kind: "message",
    key,
    platform: "test",
    conversationId,
    author: { id: "test:ann", name: "Ann" },
    sentAt: Date.now(),
    address: { channel: "c1" },
    text: `text of ${key}`,
    attachments: [],
  };
}

/** Returns an id that no other test uses. */
export const freshId = (): string => `test:${randomUUID()}`;
