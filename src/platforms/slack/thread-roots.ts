/** Which message each reply's thread hangs from. */
export interface ThreadRoots {
  /** The reply of `key` has its first message at `ts`. */
  remember(key: string, ts: string): void;
  /** The root for `key`: the reply's own first message, else one that `post` makes, once. */
  open(key: string, post: () => Promise<string>): Promise<string>;
}

const kept = 2000;

/**
 * A command's reply becomes the root of the thread it opens, and a reply taken up again after a restart is known by
 * its saved address: so the same command never opens two threads.
 */
export function createThreadRoots(): ThreadRoots {
  const roots = new Map<string, Promise<string>>();

  function keep(key: string, root: Promise<string>): void {
    roots.set(key, root);
    const oldest = roots.keys().next();
    if (roots.size > kept && oldest.done !== true) roots.delete(oldest.value);
  }

  return {
    remember(key, ts) {
      if (!roots.has(key)) keep(key, Promise.resolve(ts));
    },
    async open(key, post) {
      const known = roots.get(key);
      if (known !== undefined) return await known;
      const made = post();
      keep(key, made);
      try {
        return await made;
      } catch (error) {
        roots.delete(key);
        throw error;
      }
    },
  };
}
