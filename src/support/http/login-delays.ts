import { createHash, timingSafeEqual } from "node:crypto";
import { createRecent } from "../recent.ts";

const maxAddresses = 10_000;
/** How many failures of an address cause no wait, for people who mistype. */
const freeFailures = 3;
const baseDelayMs = 1000;
const maxDelayMs = 60_000;
/** How many failures of an address are remembered. The delay does not grow after ten of them. */
const maxFailures = 12;
/** After this time without a failure, an address starts anew. */
const forgetMs = 15 * 60_000;
/** At this many failures a minute over all addresses, each one has fewer free ones and waits longer. */
const busyFailures = 100;
const busyWindowMs = 60_000;
const busyFactor = 8;

/** What came of an attempt to log in. */
type Attempt<T> =
  | { readonly kind: "right"; readonly value: T }
  | { readonly kind: "wrong" }
  | { readonly kind: "limited"; readonly retryAfterMs: number };

/** A failure with the delay in milliseconds that it caused. */
interface Failure {
  readonly at: number;
  readonly delayMs: number;
}

/**
 * Delays logins after wrong passwords. An address waits 1 s after its fourth failure, and twice as long after
 * each further one, up to a minute. While all addresses together fail more than 100 times a minute, its first
 * failure already costs 8 s. An address without failures never waits, so nobody else can lock it out. A right
 * password does not cancel earlier failures, because an attacker may have an account too.
 */
export function createLoginDelays(now: () => number = () => performance.now()) {
  const byAddress = createRecent<readonly Failure[]>(maxAddresses);
  /** Failures for the one account of this page, as a bucket that empties evenly. */
  let recent = 0;
  let recentAt = now();

  function recentFailures(): number {
    const at = now();
    recent = Math.max(0, recent - ((at - recentAt) / busyWindowMs) * busyFailures);
    recentAt = at;
    return recent;
  }

  /** Returns how many milliseconds the address must wait, where 0 means not at all. */
  function waitMs(address: string): number {
    const last = byAddress.get(address)?.at(-1);
    return last === undefined ? 0 : Math.max(0, last.at + last.delayMs - now());
  }

  /** Records a failure. The result takes back this one only, because the attempt was not wrong. */
  function failed(address: string): () => void {
    const at = now();
    const isBusy = recentFailures() >= busyFailures;
    recent = Math.min(recent + 1, 2 * busyFailures);
    const known = byAddress.get(address) ?? [];
    const counting = at - (known.at(-1)?.at ?? at) > forgetMs ? [] : known;
    const failures = counting.length + 1;
    const counted = isBusy ? failures : failures - freeFailures;
    const factor = isBusy ? busyFactor : 1;
    const delayMs = counted < 1 ? 0 : Math.min(maxDelayMs, baseDelayMs * factor * 2 ** (counted - 1));
    const failure = { at, delayMs };
    byAddress.set(address, [...counting, failure].slice(-maxFailures));
    return () => {
      recent = Math.max(0, recent - 1);
      const left = (byAddress.get(address) ?? []).filter((each) => each !== failure);
      if (left.length > 0) byAddress.set(address, left);
      else byAddress.delete(address);
    };
  }

  return {
    waitMs,
    failed,
    /**
     * Looks at a password, unless the address must wait. `check` resolves to `undefined` where it is wrong.
     * An attempt counts as failed until it is known to be right, so that many at once are delayed too. Where
     * `check` throws, nobody knows, and the attempt does not count.
     * @throws what `check` throws
     */
    async attempt<T>(
      address: string,
      check: () => Promise<T | undefined> | T | undefined,
    ): Promise<Attempt<T>> {
      const retryAfterMs = waitMs(address);
      if (retryAfterMs > 0) return { kind: "limited", retryAfterMs };
      const takeBack = failed(address);
      try {
        const value = await check();
        if (value === undefined) return { kind: "wrong" };
        takeBack();
        return { kind: "right", value };
      } catch (error) {
        takeBack();
        throw error;
      }
    },
  };
}

/** Whether two secrets are the same. Hashes have the same length, so the comparison takes constant time. */
export function isSameSecret(given: string, secret: string): boolean {
  return timingSafeEqual(digest(given), digest(secret));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}
