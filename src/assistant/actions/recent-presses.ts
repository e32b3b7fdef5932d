import { LRUCache } from "lru-cache";
import { isParleyError } from "../../core/errors.ts";
import type { Claims } from "../../core/storage.ts";

/** Two uses of a button by one person within so many milliseconds are a double click. */
const doubleClickMs = 1000;
const maxRemembered = 1000;

/** What {@link createRecentPresses} works with. */
export interface RecentPressesOptions {
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly claims: Claims;
  /** Whether the presses of a platform are shared out among processes. Otherwise each process gets all of them. */
  readonly areSharedOut: (platform: string) => boolean;
}

/** Tells double clicks from clicks that are meant. */
export interface RecentPresses {
  /** Notes a use. False: the same person used the same button less than a second ago. */
  isFirst(button: string, by: { readonly platform: string; readonly personId: string }): Promise<boolean>;
}

/** Remembers the last 1,000 uses in this process, and claims those whose repetition may come to another one. */
export function createRecentPresses({ now, claims, areSharedOut }: RecentPressesOptions): RecentPresses {
  const usedAt = new LRUCache<string, number>({ max: maxRemembered });
  return {
    async isFirst(button, { platform, personId }) {
      const name = `${personId} ${button}`;
      const sinceMs = now() - (usedAt.get(name) ?? Number.NEGATIVE_INFINITY);
      // A clock that was set back must not block the button.
      if (sinceMs >= 0 && sinceMs < doubleClickMs) return false;
      usedAt.set(name, now());
      // Where every process gets each press, another one's claim is for the same press.
      if (!claims.isShared || !areSharedOut(platform)) return true;
      try {
        return await claims.claim(`press ${name}`, doubleClickMs);
      } catch (error) {
        // Accepting the call says so.
        if (isParleyError(error, "store-unavailable")) return true;
        throw error;
      }
    },
  };
}
