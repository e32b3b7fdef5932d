import type { InteractionToken } from "./api.ts";

/** A click's token works for 15 minutes; it is not used in the last half minute. */
const usableMs = 14.5 * 60 * 1000;
const most = 500;

/**
 * Tokens of clicks on a reply's own buttons. With one of them a message that only its reader sees can be edited
 * again after the token it was made with has run out.
 */
export interface FreshTokens {
  add(messageId: string, token: InteractionToken): void;
  of(messageId: string): InteractionToken | undefined;
}

export function createFreshTokens(now: () => number): FreshTokens {
  const tokens = new Map<string, InteractionToken & { readonly expiresAt: number }>();
  return {
    add(messageId, { applicationId, token }) {
      tokens.delete(messageId);
      tokens.set(messageId, { applicationId, token, expiresAt: now() + usableMs });
      const [oldest] = tokens.keys();
      if (tokens.size > most && oldest !== undefined) tokens.delete(oldest);
    },
    of(messageId) {
      const found = tokens.get(messageId);
      return found !== undefined && found.expiresAt > now() ? found : undefined;
    },
  };
}
