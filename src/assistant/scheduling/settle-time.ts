const minMs = 150;
const maxMs = 1500;
const factor = 4;
/** So much longer than the quickest, in milliseconds, an acceptance is slow: instances may have tried at different times. */
const slowMs = 500;
/** How many acceptances are compared. */
const windowSize = 100;

/**
 * How long a message waits, once accepted, for earlier ones that other processes are accepting. What makes one acceptance
 * slow (a busy machine, a slow store, lookups) makes others slower still: it waits a multiple of the time by which its own
 * took longer than the quickest of late. That is compared, and not taken as it is, since the platform's clock may differ.
 */
export interface SettleTime {
  /**
   * @param tookMs from its sending to its acceptance
   * @param isInOrder each process receives all messages in their order: only a slow acceptance changes that
   * @returns milliseconds, from 150 to 1500; 0 for one in order that was not slow
   */
  after(tookMs: number, isInOrder?: boolean): number;
}

/** @see {@link SettleTime} */
export function createSettleTime(): SettleTime {
  const recent: number[] = [];
  return {
    after(tookMs, isInOrder = false) {
      recent.push(tookMs);
      if (recent.length > windowSize) recent.shift();
      const longerMs = tookMs - Math.min(...recent);
      if (isInOrder && longerMs < slowMs) return 0;
      return Math.min(maxMs, Math.max(minMs, factor * longerMs));
    },
  };
}
