import { LRUCache } from "lru-cache";
import type { InteractionToken } from "./api.ts";

/** A click's token is valid for 15 minutes. It is not used in the last half minute. */
const usableMs = 14.5 * 60 * 1000;
const maxEntries = 500;

/**
 * Tokens of clicks on the buttons of replies, by message. A message that only one person sees can be edited with
 * them after the token that it was posted with has expired.
 */
export interface FreshTokens {
  add(messageId: string, token: InteractionToken): void;
  /** `undefined`: nobody clicked, or the token has expired. */
  of(messageId: string): InteractionToken | undefined;
}

/** @see {@link FreshTokens} */
export function createFreshTokens(now: () => number): FreshTokens {
  const tokens = new LRUCache<string, InteractionToken & { readonly expiresAt: number }>({ max: maxEntries });
  return {
    add(messageId, { applicationId, token }) {
      tokens.set(messageId, { applicationId, token, expiresAt: now() + usableMs });
    },
    of(messageId) {
      const found = tokens.get(messageId);
      return found !== undefined && found.expiresAt > now() ? found : undefined;
    },
  };
}
