import { createRecent } from "./recent.ts";

const maxAddresses = 10_000;
/** Failures of an address that cost it no wait: of a person who mistypes. */
const freeFailures = 3;
const baseDelayMs = 1000;
const maxDelayMs = 60_000;
/** Of an address that are remembered: from ten on, the delay does not grow. */
const maxFailures = 12;
/** After this long without a failure an address starts anew. */
const forgetMs = 15 * 60_000;
/** Failures of all addresses in a minute from which on every address has fewer free failures and longer waits. */
const busyFailures = 100;
const busyWindowMs = 60_000;
const busyFactor = 8;

/** @see {@link createLoginDelays} */
interface LoginDelays {
  /** Milliseconds until the address may try again; 0: now. */
  waitMs(address: string): number;
  /** Returns what takes this failure back, and no other: the attempt was right after all. */
  failed(address: string): () => void;
}

/** One failure, and the milliseconds that it cost. */
interface Failure {
  readonly at: number;
  readonly delayMs: number;
}

/**
 * Delays after wrong passwords: 1 s after the fourth of an address, doubled with each, at most a minute. While all
 * addresses together fail more than 100 times a minute, the first wrong password of an address costs 8 s already. An
 * address that has not failed never waits, so that others who fail cannot lock it out. What is right does not make up
 * for what was wrong: whoever guesses another's password has one of their own.
 */
export function createLoginDelays(now: () => number = () => performance.now()): LoginDelays {
  const byAddress = createRecent<readonly Failure[]>(maxAddresses);
  /** Of the account, which is one: a bucket that empties evenly. */
  let recent = 0;
  let recentAt = now();

  function recentFailures(): number {
    const at = now();
    recent = Math.max(0, recent - ((at - recentAt) / busyWindowMs) * busyFailures);
    recentAt = at;
    return recent;
  }

  return {
    waitMs(address) {
      const last = byAddress.get(address)?.at(-1);
      return last === undefined ? 0 : Math.max(0, last.at + last.delayMs - now());
    },
    failed(address) {
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
        const left = (byAddress.get(address) ?? []).filter((each) => each !== failure);
        if (left.length > 0) byAddress.set(address, left);
        else byAddress.delete(address);
      };
    },
  };
}
