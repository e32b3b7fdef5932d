import { LRUCache } from "lru-cache";

const maxMessages = 5000;
const maxChannels = 2000;

/** The ordinary messages that this process has posted: they belong to replies whose messages are known. */
export interface OwnPosts {
  add(channelId: string, messageId: string): void;
  has(messageId: string): boolean;
  /** The last one in a channel. */
  lastIn(channelId: string): string | undefined;
}

/** Remembers the last 5,000 messages. */
export function createOwnPosts(): OwnPosts {
  const messages = new LRUCache<string, true>({ max: maxMessages });
  const channels = new LRUCache<string, string>({ max: maxChannels });
  return {
    add(channelId, messageId) {
      messages.set(messageId, true);
      channels.set(channelId, messageId);
    },
    has: (messageId) => messages.has(messageId),
    lastIn: (channelId) => channels.get(channelId),
  };
}
