import type { Json } from "../../core/events.ts";
import type { Spent } from "../upstreams/spent.ts";
import type { KeyValue } from "./key-value.ts";

/** What a key has used in a day or a month (UTC). */
export interface Use {
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly audioSeconds: number;
  readonly images: number;
  readonly costUsd: number;
}

/** `day` is `2026-11-20`, `month` `2026-11`. */
export type Period = "day" | "month";

const none: Use = {
  requests: 0,
  promptTokens: 0,
  completionTokens: 0,
  audioSeconds: 0,
  images: 0,
  costUsd: 0,
};
const keptMs: Readonly<Record<Period, number>> = { day: 40 * 86_400_000, month: 400 * 86_400_000 };

/** Counts what keys use. Additions of one process never get lost; several processes may overwrite each other's. */
export interface Spending {
  read(keyId: string, period: Period, at: Date): Promise<Use>;
  add(keyId: string, spent: Spent, costUsd: number, at: Date): Promise<void>;
}

export function createSpending(store: KeyValue): Spending {
  /** Additions to one counter wait for each other: read, add, write. */
  let last: Promise<unknown> = Promise.resolve();
  const read: Spending["read"] = async (keyId, period, at) =>
    toUse(await store.get(toKey(keyId, period, at)));
  return {
    read,
    add: (keyId, spent, costUsd, at) => {
      const work = last.then(async () => {
        for (const period of ["day", "month"] as const) {
          const use = await read(keyId, period, at);
          const sum = {
            requests: use.requests + 1,
            promptTokens: use.promptTokens + (spent.promptTokens ?? 0),
            completionTokens: use.completionTokens + (spent.completionTokens ?? 0),
            audioSeconds: use.audioSeconds + (spent.audioSeconds ?? 0),
            images: use.images + (spent.images ?? 0),
            costUsd: use.costUsd + costUsd,
          };
          await store.set(toKey(keyId, period, at), sum, keptMs[period]);
        }
      });
      last = work.catch(() => undefined);
      return work;
    },
  };
}

/** When a period ends and its budget is whole again. */
export function endOf(period: Period, at: Date): Date {
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()];
  return new Date(
    period === "day" ? Date.UTC(year, month, at.getUTCDate() + 1) : Date.UTC(year, month + 1, 1),
  );
}

function toKey(keyId: string, period: Period, at: Date): string {
  return `use:${keyId}:${at.toISOString().slice(0, period === "day" ? 10 : 7)}`;
}

function toUse(value: Json | undefined): Use {
  return typeof value === "object" && value !== null
    ? { ...none, ...(value as unknown as Partial<Use>) }
    : none;
}
