import { LRUCache } from "lru-cache";

/** Root messages of the threads that commands open. */
export interface ThreadRoots {
  /** Records that the reply with this key has its first message at `ts`; later calls change nothing. */
  remember(key: string, ts: string): void;
  /**
   * The root for `key`: the reply's first message, otherwise the one that `post` creates. Concurrent calls share
   * one `post`; a failed one is called again next time.
   */
  open(key: string, post: () => Promise<string>): Promise<string>;
}

const maxRoots = 2000;

/**
 * Keeps the roots of the last 2,000 replies, so that the same command never opens two threads. A reply resumed after
 * a restart calls `remember` again with its saved address.
 */
export function createThreadRoots(): ThreadRoots {
  const roots = new LRUCache<string, Promise<string>>({ max: maxRoots });
  return {
    remember(key, ts) {
      if (!roots.has(key)) roots.set(key, Promise.resolve(ts));
    },
    async open(key, post) {
      const known = roots.get(key);
      if (known !== undefined) return await known;
      const posted = post();
      roots.set(key, posted);
      try {
        return await posted;
      } catch (error) {
        roots.delete(key);
        throw error;
      }
    },
  };
}
