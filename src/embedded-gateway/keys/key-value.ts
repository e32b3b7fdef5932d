import type { Json } from "../../core/events.ts";

/** The store of keys and their usage. It holds a few small values. Contract: a failing store throws. */
export interface KeyValue {
  get(key: string): Promise<Json | undefined>;
  /** Kept for `ttlMs`, or without expiry. */
  set(key: string, value: Json, ttlMs?: number): Promise<void>;
  delete(key: string): Promise<void>;
}
