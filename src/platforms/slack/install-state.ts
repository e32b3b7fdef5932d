import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import type { Claims, Records } from "../../core/storage.ts";
import { systemClock } from "../../support/clock.ts";

/** Proofs that an installation was begun here: each is accepted once, within ten minutes, by any instance. */
export interface InstallStates {
  create(): string;
  /** Whether it is one that has not been used. @throws ParleyError `store-unavailable` */
  use(state: string): Promise<boolean>;
}

/** How long a person may take to approve the app. */
export const stateLifeMs = 10 * 60_000;

/**
 * Signed states: a page that anybody may open stores nothing. What is stored is which of them were used.
 * @param secret the same for all instances
 */
export function createInstallStates(
  secret: string,
  {
    records,
    claims,
    clock = systemClock,
  }: { readonly records: Records; readonly claims: Claims; readonly clock?: Clock },
): InstallStates {
  /** A store for one process grants every claim. */
  const using = new Set<string>();
  const sign = (text: string): Buffer =>
    createHmac("sha256", secret).update(`parley install ${text}`).digest();

  function idOf(state: string): string | undefined {
    const [, text, id, expiresAt, signature] = /^(([\w-]{22})\.(\d{13}))\.([\w-]{43})$/.exec(state) ?? [];
    if (text === undefined || id === undefined || signature === undefined) return undefined;
    const isSigned = timingSafeEqual(Buffer.from(signature, "base64url"), sign(text));
    return isSigned && Number(expiresAt) > clock.now() ? id : undefined;
  }

  return {
    create() {
      const text = `${randomBytes(16).toString("base64url")}.${clock.now() + stateLifeMs}`;
      return `${text}.${sign(text).toString("base64url")}`;
    },
    async use(state) {
      const id = idOf(state);
      if (id === undefined || using.has(id)) return false;
      using.add(id);
      try {
        const key = `slack state ${id}`;
        if ((await records.get(key)) !== undefined) return false;
        if (!(await claims.claim(key, stateLifeMs))) return false;
        await records.set(key, true, stateLifeMs);
        return true;
      } finally {
        using.delete(id);
      }
    },
  };
}
