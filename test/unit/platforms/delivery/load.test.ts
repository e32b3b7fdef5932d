import { expect, test } from "vitest";
import { between, run, type Load, type Turn } from "./load.ts";

type Chance = () => number;

function turnAt(at: number, chance: Chance, rest: Partial<Turn>, takes = [4000, 16_000]): Turn {
  const thinksMs = between(chance, 500, 1400);
  return { at, thinksMs, takesMs: between(chance, takes[0]!, takes[1]!), channel: "C0", ...rest };
}
/** Answers of one conversation, one after another. */
const talk = (count: number, takes?: number[]) => (chance: Chance) =>
  Array.from({ length: count }, (_, index) => turnAt(index * 25_000, chance, {}, takes));
const atOnce = (count: number, takes: number[]) => (chance: Chance) =>
  Array.from({ length: count }, () => turnAt(0, chance, {}, takes));
/** Questions that come by chance, so many a second, for some seconds, in so many channels. */
const crowd =
  (perSecond: number, seconds: number, channels: number, rest: Partial<Turn> = {}) =>
  (chance: Chance) => {
    const turns: Turn[] = [];
    for (let time = 0; (time += (-Math.log(1 - chance()) * 1000) / perSecond) < seconds * 1000;)
      turns.push(turnAt(time, chance, { channel: `C${turns.length % channels}`, ...rest }));
    return turns;
  };

interface Bounds {
  readonly first: readonly [p50: number, p95: number];
  readonly final: readonly [p95: number, most: number];
  readonly stall: number;
  readonly previews: number;
  readonly refusals: number;
  /** The part of the ends that are new messages. */
  readonly replaced?: number;
}

/** What people may notice, in seconds: the figures of the simulation and a fifth. */
const loads: Readonly<Record<string, Load & { readonly bounds: Bounds }>> = {
  "one talk on Discord": {
    platform: "discord",
    turns: talk(15),
    bounds: { first: [1.4, 1.8], final: [0.4, 0.8], stall: 2, previews: 6.5, refusals: 0 },
  },
  "a talk whose edits are refused twice for a second": {
    platform: "discord",
    turns: talk(30, [9000, 12_000]),
    refusesEdits: true,
    bounds: { first: [1.4, 1.8], final: [1.6, 3.2], stall: 6.9, previews: 4.8, refusals: 60 },
  },
  "a mention a second in each of 12 rooms": {
    platform: "discord",
    turns: crowd(12, 40, 12, { opensThread: true }),
    bounds: { first: [1.5, 2.4], final: [0.4, 1], stall: 18, previews: 1.2, refusals: 0 },
  },
  "20 mentions a second in 40 channels": {
    platform: "discord",
    turns: crowd(20, 30, 40, { opensThread: true }),
    bounds: { first: [8.2, 18.3], final: [1, 2.2], stall: 18, previews: 0.6, refusals: 0 },
  },
  "ten long answers in a channel of Discord": {
    platform: "discord",
    turns: atOnce(10, [30_000, 60_000]),
    bounds: { first: [7, 8], final: [1.3, 3.4], stall: 24, previews: 4.6, refusals: 0 },
  },
  "five mentions a second, where others have half of Discord's limit": {
    platform: "discord",
    turns: crowd(5, 40, 10, { opensThread: true }),
    share: 0.5,
    bounds: { first: [3.6, 11.3], final: [1.6, 2.1], stall: 15.6, previews: 1.4, refusals: 129 },
  },
  "one answer of 90 seconds on Slack": {
    platform: "slack",
    turns: talk(1, [90_000, 90_000]),
    bounds: { first: [1.4, 1.8], final: [0.4, 0.4], stall: 5, previews: 33, refusals: 0 },
  },
  "60 turns a minute on Slack": {
    platform: "slack",
    turns: crowd(1, 300, 12),
    bounds: { first: [1.4, 1.8], final: [0.5, 1], stall: 18, previews: 0.8, refusals: 0, replaced: 0.27 },
  },
  "45 turns a minute on three instances": {
    platform: "slack",
    turns: crowd(0.75, 300, 12),
    instances: 3,
    bounds: { first: [1.4, 1.8], final: [0.4, 0.9], stall: 18, previews: 1.2, refusals: 84, replaced: 0.5 },
  },
  "20 turns a minute, where others have half of Slack's limits": {
    platform: "slack",
    turns: crowd(1 / 3, 300, 8),
    share: 0.5,
    bounds: { first: [1.4, 1.8], final: [0.4, 0.8], stall: 18, previews: 1.1, refusals: 13, replaced: 0.28 },
  },
};

for (const [name, { bounds, ...load }] of Object.entries(loads))
  test(name, async () => {
    const seen = await run(load, 2);
    const { first, final, stall, previews, refusals, replaced = 0 } = bounds;
    expect(seen.lost).toBe(0);
    expect(seen.quantile("first", 0.5)).toBeLessThan(first[0]);
    expect(seen.quantile("first", 0.95)).toBeLessThan(first[1]);
    expect(seen.quantile("final", 0.95)).toBeLessThan(final[0]);
    expect(seen.quantile("final", 1)).toBeLessThan(final[1]);
    // No refusal delays the whole text by more than the time that it names.
    if (load.refusesEdits === true) expect(seen.quantile("late", 1)).toBeLessThan(1);
    expect(seen.quantile("stall", 0.95)).toBeLessThan(stall);
    expect(seen.previews).toBeGreaterThan(previews);
    expect(seen.refusals).toBeLessThanOrEqual(refusals);
    expect(seen.replaced).toBeLessThanOrEqual(replaced);
  });
