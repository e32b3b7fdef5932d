import { isRunning, type Feed } from "./feed.ts";
import type { Change } from "./views.ts";

/** `isStored`: what is stored of the conversation's entry has changed; otherwise an answer has begun or ended. */
export type ListListener = (conversationId: string, change: { readonly isStored: boolean }) => void;

/** Changes of the lists of conversations, of all people, for the pages that show them. */
export interface ListChanges {
  /** Conversations whose answer is being made, by this process. */
  running(): readonly string[];
  /** The title, name or pin of a conversation has changed, or the conversation itself is new or gone. */
  touch(conversationId: string): void;
  /** Takes in a change of a conversation. */
  follow(conversationId: string, feed: Feed, change: Change): void;
  /** Calls `listener` after every change, until the returned function is called. */
  listen(listener: ListListener): () => void;
}

/** @see {@link ListChanges} */
export function createListChanges(): ListChanges {
  const running = new Set<string>();
  const listeners = new Set<ListListener>();
  const tell = (conversationId: string, isStored: boolean): void => {
    for (const listener of listeners) listener(conversationId, { isStored });
  };

  return {
    running: () => [...running],
    touch: (conversationId) => tell(conversationId, true),
    follow(conversationId, feed, { kind }) {
      // The text of an answer that grows says nothing new, and comes often.
      if (kind === "text") return;
      const isNow = feed.items().some(isRunning);
      if (isNow === running.has(conversationId)) return;
      if (isNow) running.add(conversationId);
      else running.delete(conversationId);
      tell(conversationId, false);
    },
    listen(listener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
  };
}
