import type { Json } from "../../core/events.ts";

/** What the gateway keeps of keys and their use; a few small values. A failing store throws, it never answers empty. */
export interface KeyValue {
  get(key: string): Promise<Json | undefined>;
  /** `ttlMs`: how long it is kept; for ever without. */
  set(key: string, value: Json, ttlMs?: number): Promise<void>;
  delete(key: string): Promise<void>;
}
