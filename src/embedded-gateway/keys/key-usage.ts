import type { Json } from "../../core/events.ts";
import { createKeyedQueue } from "../../support/keyed-queue.ts";
import type { UpstreamUsage } from "../upstreams/upstream-client.ts";
import type { KeyValue } from "./key-ring.ts";
import { isParleyError } from "../../core/errors.ts";

/** The usage of a key in one day or month (UTC). */
export interface KeyUsageTotals {
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly audioSeconds: number;
  readonly images: number;
  readonly costUsd: number;
}

/** A `day` is `2026-11-20`, a `month` `2026-11`. */
export type Period = "day" | "month";

const none: KeyUsageTotals = {
  requests: 0,
  promptTokens: 0,
  completionTokens: 0,
  audioSeconds: 0,
  images: 0,
  costUsd: 0,
};
const retentionMs: Readonly<Record<Period, number>> = { day: 40 * 86_400_000, month: 400 * 86_400_000 };

/** Counts usage by key. One process adds in sequence, but several may overwrite each other's counts. */
interface KeyUsage {
  read(keyId: string, period: Period, at: Date): Promise<KeyUsageTotals>;
  add(keyId: string, usage: UpstreamUsage, costUsd: number, at: Date): Promise<void>;
}

export function createKeyUsage(store: KeyValue): KeyUsage {
  const additions = createKeyedQueue();
  const read: KeyUsage["read"] = async (keyId, period, at) =>
    toTotals(await store.get(toKey(keyId, period, at)));
  return {
    read,
    add: (keyId, usage, costUsd, at) =>
      additions.run(keyId, async () => {
        for (const period of ["day", "month"] as const) {
          const totals = await read(keyId, period, at);
          const sum = {
            requests: totals.requests + 1,
            promptTokens: totals.promptTokens + (usage.promptTokens ?? 0),
            completionTokens: totals.completionTokens + (usage.completionTokens ?? 0),
            audioSeconds: totals.audioSeconds + (usage.audioSeconds ?? 0),
            images: totals.images + (usage.images ?? 0),
            costUsd: totals.costUsd + costUsd,
          };
          await store.set(toKey(keyId, period, at), sum, retentionMs[period]);
        }
      }),
  };
}

/** Returns the end of a period, when its budget is reset. */
export function endOf(period: Period, at: Date): Date {
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()];
  return new Date(
    period === "day" ? Date.UTC(year, month, at.getUTCDate() + 1) : Date.UTC(year, month + 1, 1),
  );
}

function toKey(keyId: string, period: Period, at: Date): string {
  return `use:${keyId}:${at.toISOString().slice(0, period === "day" ? 10 : 7)}`;
}

/** Reads stored totals. Values that are no amount count as 0. */
function toTotals(value: Json | undefined): KeyUsageTotals {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return none;
  const record = value as Readonly<Record<string, Json>>;
  const amount = (name: keyof KeyUsageTotals): number => {
    const stored = record[name];
    return typeof stored === "number" && Number.isFinite(stored) && stored >= 0 ? stored : 0;
  };
  return {
    requests: amount("requests"),
    promptTokens: amount("promptTokens"),
    completionTokens: amount("completionTokens"),
    audioSeconds: amount("audioSeconds"),
    images: amount("images"),
    costUsd: amount("costUsd"),
  };
}

/** Counts the issued keys in force and the revoked ones. Both are 0 while the store is unavailable. */
export async function countKeys(
  store: Pick<KeyValue, "get">,
): Promise<{ readonly active: number; readonly revoked: number }> {
  try {
    const ids = await store.get("keys");
    const known = Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : [];
    const keys = await Promise.all(known.map((id) => store.get(`key:${id}`)));
    const issued = keys.filter((key) => typeof key === "object" && key !== null);
    const revoked = issued.filter((key) => "revokedAt" in key).length;
    return { active: issued.length - revoked, revoked };
  } catch (error) {
    if (!isParleyError(error)) throw error;
    return { active: 0, revoked: 0 };
  }
}
