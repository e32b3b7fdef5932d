/** Upper bounds in seconds. */
const bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5] as const;

/** One series of a {@link LatencyHistogram}: what was counted with one operation and outcome. */
export interface LatencySeries {
  readonly labels: Readonly<Record<string, string>>;
  /** By upper bound in seconds, each including the ones below it. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
  readonly sumSeconds: number;
  readonly count: number;
}

/**
 * Counts how long operations took. Own code beside prom-client's histogram: the store is used from the start, and
 * prom-client would cost an idle bot megabytes for figures that nobody has asked for yet.
 */
export interface LatencyHistogram {
  observe(operation: string, outcome: string, seconds: number): void;
  series(): readonly LatencySeries[];
}

interface Counted {
  readonly operation: string;
  readonly outcome: string;
  readonly counts: Float64Array;
  sumSeconds: number;
  count: number;
}

/** @see {@link LatencyHistogram} */
export function createLatencyHistogram(): LatencyHistogram {
  const counted: Counted[] = [];
  return {
    observe(operation, outcome, seconds) {
      let own = counted.find((one) => one.operation === operation && one.outcome === outcome);
      if (own === undefined) {
        own = { operation, outcome, counts: new Float64Array(bounds.length), sumSeconds: 0, count: 0 };
        counted.push(own);
      }
      own.count += 1;
      own.sumSeconds += seconds;
      const index = bounds.findIndex((bound) => seconds <= bound);
      if (index !== -1) own.counts[index] = (own.counts[index] ?? 0) + 1;
    },
    series: () =>
      counted.map(({ operation, outcome, counts, sumSeconds, count }) => {
        let below = 0;
        const buckets = bounds.map((le, index) => ({ le, count: (below += counts[index] ?? 0) }));
        return { labels: { operation, outcome }, buckets, sumSeconds, count };
      }),
  };
}
