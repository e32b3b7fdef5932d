import { LRUCache } from "lru-cache";

const maxAddresses = 10_000;
/** Failures of an address that cost it no wait: of a person who mistypes. */
const freeFailures = 3;
const baseDelayMs = 1000;
const maxDelayMs = 60_000;
/** After this long without a failure an address starts anew. */
const forgetMs = 15 * 60_000;
/** Failures of all addresses in a minute from which on every address has fewer free failures and longer waits. */
const busyFailures = 100;
const busyWindowMs = 60_000;
const busyFactor = 8;

/** @see {@link createLoginDelays} */
export interface LoginDelays {
  /** Milliseconds until the address may try again; 0: now. */
  waitMs(address: string): number;
  failed(address: string): void;
  succeeded(address: string): void;
}

/**
 * Delays after wrong passwords: 1 s after the fourth of an address, doubled with each, at most a minute. While all
 * addresses together fail more than 100 times a minute, the first wrong password of an address costs 8 s already. An
 * address that has not failed never waits, so that others who fail cannot lock it out.
 */
export function createLoginDelays(now: () => number = () => performance.now()): LoginDelays {
  const byAddress = new LRUCache<
    string,
    { readonly failures: number; readonly nextAt: number; readonly at: number }
  >({
    // Sized rather than counted: `max` would preallocate.
    maxSize: maxAddresses,
    sizeCalculation: () => 1,
  });
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
    waitMs: (address) => Math.max(0, (byAddress.get(address)?.nextAt ?? 0) - now()),
    failed(address) {
      const at = now();
      const isBusy = recentFailures() >= busyFailures;
      recent = Math.min(recent + 1, 2 * busyFailures);
      const known = byAddress.get(address);
      const failures = known === undefined || at - known.at > forgetMs ? 1 : known.failures + 1;
      const counted = isBusy ? failures : failures - freeFailures;
      const factor = isBusy ? busyFactor : 1;
      const delayMs = counted < 1 ? 0 : Math.min(maxDelayMs, baseDelayMs * factor * 2 ** (counted - 1));
      byAddress.set(address, { failures, nextAt: at + delayMs, at });
    },
    succeeded(address) {
      byAddress.delete(address);
    },
  };
}
