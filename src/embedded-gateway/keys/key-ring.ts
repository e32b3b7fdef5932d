import { randomBytes, timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { Json } from "../../core/events.ts";
import { costOf } from "../../core/model-price.ts";
import type { Log } from "../../core/telemetry.ts";
import { createRateLimiter } from "../../support/rate-limiter.ts";
import type { Access } from "../access.ts";
import { ApiError, modelNotAllowed } from "../api-error.ts";
import { hashKey } from "../authorize.ts";
import { createCharge } from "../charge.ts";
import { createBudgetLedger } from "./budget-ledger.ts";
import type { KeyValue } from "./key-value.ts";
import { createKeyUsage, type KeyUsageTotals, type Period } from "./key-usage.ts";
import { worstCostOf } from "./worst-cost.ts";
import { steadyClock } from "../../support/steady-clock.ts";

const keySchema = z.object({
  id: z.string(),
  name: z.string(),
  /** SHA-256 of the secret, in hex: the secret itself is shown once and never stored. */
  hash: z.string(),
  createdAt: z.number(),
  revokedAt: z.number().optional(),
  /** Ids, or prefixes that end in `*`. Absent: every model. */
  models: z.array(z.string()).optional(),
  budgetUsdPerDay: z.number().optional(),
  budgetUsdPerMonth: z.number().optional(),
  requestsPerMinute: z.number().optional(),
  /** Requests in flight at the same time. Absent: {@link defaultConcurrentRequests}. */
  concurrentRequests: z.number().optional(),
});

/** A key with its limits, issued to one person or program. */
export type VirtualKey = z.infer<typeof keySchema>;
/** Restrictions of a key. Absent ones do not apply. */
export type KeyLimits = Pick<
  VirtualKey,
  "models" | "budgetUsdPerDay" | "budgetUsdPerMonth" | "requestsPerMinute" | "concurrentRequests"
>;

/** The keys issued with `keys create`. */
export interface KeyRing {
  /** `secret` is returned only here. */
  create(name: string, limits: KeyLimits): Promise<{ readonly key: VirtualKey; readonly secret: string }>;
  /** Returns false for an unknown key. A running gateway refuses the key within five seconds. */
  revoke(id: string): Promise<boolean>;
  /** Oldest first, revoked ones included. */
  list(): Promise<readonly VirtualKey[]>;
  usage(id: string, period: Period): Promise<KeyUsageTotals>;
  /** Whether a key was ever issued. Revoked ones count: revoking the last key must not open the gateway. */
  hasIssuedKeys(): Promise<boolean>;
  /**
   * The permissions of a secret's bearer. `undefined` for a secret that is unknown or revoked.
   * @throws ApiError 402 (budget used up), 429 (rate limited, too many in flight), both with `Retry-After`
   */
  admit(token: string): Promise<Access | undefined>;
}

/** Settings of {@link createKeyRing}. */
export interface KeyRingOptions {
  readonly store: KeyValue;
  readonly log: Log;
  readonly now?: () => number;
}

/** Requests of one key in flight at the same time, unless it was created with another limit. */
const defaultConcurrentRequests = 16;
const cacheMs = 5000;
const maxCachedKeys = 10_000;

/** @see {@link KeyRing} */
export function createKeyRing({ store, log, now = () => steadyClock.now() }: KeyRingOptions): KeyRing {
  const keyUsage = createKeyUsage(store);
  const ledger = createBudgetLedger({
    keyUsage,
    now,
    onLost: (keyId, costUsd, error) => log.error({ keyId, costUsd, error }, "recording key usage failed"),
  });
  const inFlight = new Map<string, number>();
  const limiter = createRateLimiter({ maxKeys: maxCachedKeys, now });
  /** `undefined` inside: there is no such key. */
  const cache = new LRUCache<string, { readonly key: VirtualKey | undefined }>({
    max: maxCachedKeys,
    ttl: cacheMs,
    perf: { now },
  });

  const load = async (id: string): Promise<VirtualKey | undefined> => {
    const parsed = keySchema.safeParse(await store.get(`key:${id}`));
    return parsed.success ? parsed.data : undefined;
  };
  const save = (key: VirtualKey): Promise<void> => store.set(`key:${key.id}`, key as unknown as Json);
  const listIds = async (): Promise<string[]> => {
    const ids = await store.get("keys");
    return Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : [];
  };
  const list = async (): Promise<VirtualKey[]> => {
    const keys = await Promise.all((await listIds()).map((id) => load(id)));
    return keys.filter((key) => key !== undefined);
  };

  /** A secret contains the id of its key, so that no search through hashes is needed. */
  const find = async (token: string): Promise<VirtualKey | undefined> => {
    const id = /^parley_([0-9a-f]{12})_[\w-]{43}$/.exec(token)?.[1];
    if (id === undefined) return undefined;
    let cached = cache.get(id);
    if (cached === undefined) {
      cached = { key: await load(id) };
      cache.set(id, cached);
    }
    const { key } = cached;
    if (key === undefined || key.revokedAt !== undefined) return undefined;
    return timingSafeEqual(hashKey(token), Buffer.from(key.hash, "hex")) ? key : undefined;
  };

  const enter = (key: VirtualKey): (() => void) => {
    const limit = key.concurrentRequests ?? defaultConcurrentRequests;
    const running = inFlight.get(key.id) ?? 0;
    if (running >= limit) throw tooManyInFlight(limit);
    inFlight.set(key.id, running + 1);
    return () => {
      const left = (inFlight.get(key.id) ?? 1) - 1;
      if (left > 0) inFlight.set(key.id, left);
      else inFlight.delete(key.id);
    };
  };

  const reserve =
    (key: VirtualKey): Access["reserve"] =>
    async (operation, targets, worst) => {
      const hasBudget = key.budgetUsdPerDay !== undefined || key.budgetUsdPerMonth !== undefined;
      const worstUsd = hasBudget ? worstCostOf(operation, targets, worst.most) : 0;
      const reservation = await ledger.reserve(key.id, key, worstUsd, worst.mustFit);
      return createCharge(worst, (target, usage) => {
        const costUsd = usage?.costUsd ?? costOf(target?.model?.prices ?? {}, usage ?? {}) ?? 0;
        // Fire and forget: it never throws, and the client need not wait for the store.
        void reservation.settle(usage === undefined ? undefined : { usage, costUsd });
      });
    };

  return {
    create: async (name, limits) => {
      const id = randomBytes(6).toString("hex");
      const secret = `parley_${id}_${randomBytes(32).toString("base64url")}`;
      const key = { id, name, hash: hashKey(secret).toString("hex"), createdAt: now(), ...limits };
      await save(key);
      await store.set("keys", [...(await listIds()), id]);
      return { key, secret };
    },
    revoke: async (id) => {
      const key = await load(id);
      if (key === undefined) return false;
      await save({ ...key, revokedAt: key.revokedAt ?? now() });
      cache.delete(id);
      return true;
    },
    list,
    usage: (id, period) => keyUsage.read(id, period, new Date(now())),
    hasIssuedKeys: async () => (await listIds()).length > 0,
    admit: async (token) => {
      const key = await find(token);
      if (key === undefined) return undefined;
      if (key.requestsPerMinute !== undefined) {
        const waitMs = limiter.take(key.id, key.requestsPerMinute);
        if (waitMs > 0) throw rateLimited(key.requestsPerMinute, waitMs);
      }
      await ledger.expectBudget(key.id, key);
      const release = enter(key);
      return {
        keyId: key.id,
        isLimited: true,
        sees: (model) => allows(key, model),
        expectModel: (model) => {
          if (!allows(key, model)) throw modelNotAllowed(model);
        },
        allowsTarget: (requested, target, isFallback) =>
          allows(key, target) || (!isFallback && key.models?.includes(requested) === true),
        reserve: reserve(key),
        release,
      };
    },
  };
}

function allows(key: VirtualKey, model: string): boolean {
  if (key.models === undefined) return true;
  return key.models.some((allowed) =>
    allowed.endsWith("*") ? model.startsWith(allowed.slice(0, -1)) : model === allowed,
  );
}

function rateLimited(perMinute: number, waitMs: number): ApiError {
  const message = `This key allows ${perMinute} requests a minute.`;
  return new ApiError(429, "rate_limit_error", message, {
    code: "rate_limit_exceeded",
    headers: { "retry-after": String(Math.ceil(waitMs / 1000)), "retry-after-ms": String(Math.ceil(waitMs)) },
  });
}

function tooManyInFlight(limit: number): ApiError {
  const message = `This key allows ${limit} requests at the same time.`;
  return new ApiError(429, "rate_limit_error", message, {
    code: "concurrency_limit_exceeded",
    headers: { "retry-after": "1" },
  });
}
