import { randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { Json } from "../../core/events.ts";
import { type ModelOperation, type BilledAmounts, costOf, type ModelPrice } from "../../core/gateway.ts";
import type { Log } from "../../core/telemetry.ts";
import { steadyClock } from "../../support/clock.ts";
import { createKeyedQueue } from "../../support/keyed-queue.ts";
import { createRateLimiter } from "../../support/rate-limiter.ts";
import { createRecent } from "../../support/recent.ts";
import { ApiError, clip, modelNotAllowed } from "../api-error.ts";
import { hashKey } from "../embedded-gateway.ts";
import { type Target, type Access, createCharge } from "../router.ts";
import type { UpstreamUsage } from "../upstreams/upstream-client.ts";
import { createKeyUsage, endOf, type KeyUsageTotals, type Period } from "./key-usage.ts";

const keySchema = z.object({
  id: z.string(),
  name: z.string(),
  /** The SHA-256 of the secret, in hex. The secret itself is shown once and never stored. */
  hash: z.string(),
  createdAt: z.number(),
  revokedAt: z.number().optional(),
  /** Ids, or prefixes that end in `*`. Absent for every model. */
  models: z.array(z.string()).optional(),
  budgetUsdPerDay: z.number().optional(),
  budgetUsdPerMonth: z.number().optional(),
  requestsPerMinute: z.number().optional(),
  /** The most requests in flight at the same time. Default {@link defaultConcurrentRequests}. */
  concurrentRequests: z.number().optional(),
});

/** A key with its limits, issued to one person or program. */
export type VirtualKey = z.infer<typeof keySchema>;
/** The restrictions of a key. Absent ones do not apply. */
export type KeyLimits = Pick<
  VirtualKey,
  "models" | "budgetUsdPerDay" | "budgetUsdPerMonth" | "requestsPerMinute" | "concurrentRequests"
>;

/** The keys issued with `keys create`. */
export interface KeyRing {
  /** `secret` is returned only here. */
  create(name: string, limits: KeyLimits): Promise<{ readonly key: VirtualKey; readonly secret: string }>;
  /** Returns false for an unknown key. A running gateway refuses the key from then on. */
  revoke(id: string): Promise<boolean>;
  /** Lists the keys, the oldest first, revoked ones included. */
  list(): Promise<readonly VirtualKey[]>;
  usage(id: string, period: Period): Promise<KeyUsageTotals>;
  /** Whether a key was ever issued. Revoked ones count, so that revoking the last opens nothing. */
  hasIssuedKeys(): Promise<boolean>;
  /**
   * Returns the permissions of a secret's bearer, or `undefined` for a secret that is unknown or revoked.
   * @throws ApiError 402 (budget used up), 429 (rate limited, too many in flight), both with `Retry-After`
   */
  admit(token: string): Promise<Access | undefined>;
}

/** The options of {@link createKeyRing}. */
interface KeyRingOptions {
  readonly store: KeyValue;
  readonly log: Log;
  readonly now?: () => number;
}

/** The requests of one key in flight at the same time, unless it was created with another limit. */
const defaultConcurrentRequests = 16;
const maxLimitedKeys = 10_000;
/** How long an id without a key is not looked up in the store, in milliseconds. */
const unknownForMs = 5000;

export function createKeyRing({ store, log, now = () => steadyClock.now() }: KeyRingOptions): KeyRing {
  const keyUsage = createKeyUsage(store);
  const ledger = createBudgetLedger({
    keyUsage,
    now,
    onLost: (keyId, costUsd, error) => log.error({ keyId, costUsd, error }, "recording key usage failed"),
  });
  const inFlight = new Map<string, number>();
  const limiter = createRateLimiter({ maxKeys: maxLimitedKeys, now });
  const unknownIds = createRecent(maxLimitedKeys, unknownForMs, now);

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

  /** Finds a key by its secret. The secret contains the key's id, so that no hashes need to be searched. */
  const find = async (token: string): Promise<VirtualKey | undefined> => {
    const id = /^parley_([0-9a-f]{12})_[\w-]{43}$/.exec(token)?.[1];
    if (id === undefined || unknownIds.has(id)) return undefined;
    const key = await load(id);
    if (key === undefined) unknownIds.set(id, true);
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
        // Nobody waits for this. It never throws, and the client need not wait for the store.
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

/**
 * Returns the most that a request can cost at any of its targets, in USD.
 * @throws ApiError 403 `model_without_price` when the settings have no price of a target for the operation
 */
function worstCostOf(operation: ModelOperation, targets: readonly Target[], most: BilledAmounts): number {
  let worstUsd = 0;
  for (const { publicId, model } of targets) {
    const prices = model?.prices ?? {};
    if (!isPriced(operation, prices)) throw withoutPrice(publicId);
    worstUsd = Math.max(worstUsd, costOf(prices, most) ?? 0);
  }
  return worstUsd;
}

/** Whether every amount that the operation is billed by has a price. A free model has the price 0. */
function isPriced(operation: ModelOperation, prices: ModelPrice): boolean {
  const hasTokens = prices.inputPerMillionUsd !== undefined && prices.outputPerMillionUsd !== undefined;
  if (operation === "image") return prices.perImageUsd !== undefined || hasTokens;
  if (operation === "transcription") return prices.perAudioMinuteUsd !== undefined || hasTokens;
  return hasTokens;
}

function withoutPrice(id: string): ApiError {
  const message = `The model '${clip(id)}' has no price in the gateway's settings, which a key with a budget needs.`;
  return new ApiError(403, "permission_error", message, { param: "model", code: "model_without_price" });
}

/** The budgets of a key, in USD. Absent ones do not apply. */
interface Budgets {
  readonly budgetUsdPerDay?: number | undefined;
  readonly budgetUsdPerMonth?: number | undefined;
}

/** The part of a budget that is kept for one running request. */
export interface Reservation {
  /** Frees the reservation and records what was used, if anything. It is called once and never throws. */
  settle(used: { readonly usage: UpstreamUsage; readonly costUsd: number } | undefined): Promise<void>;
}

/**
 * Tracks the spending of keys against their budgets. A request is admitted while spent and reserved together
 * are below the budget, so both together never pass it by more than one request's reserve. It is atomic only
 * within this process.
 */
interface BudgetLedger {
  /** @throws ApiError 402 `budget_exceeded` when a budget is spent */
  expectBudget(keyId: string, budgets: Budgets): Promise<void>;
  /**
   * @param mustFit the reserve itself must be within the budget, since the request may cost that much
   * @throws ApiError 402 `budget_exceeded` (spent, or less than must fit), 429 `budget_reserved` (the rest is
   *   reserved by other requests)
   */
  reserve(keyId: string, budgets: Budgets, worstUsd: number, mustFit?: boolean): Promise<Reservation>;
}

/** The options of {@link createBudgetLedger}. */
interface BudgetLedgerOptions {
  readonly keyUsage: ReturnType<typeof createKeyUsage>;
  readonly now: () => number;
  /** Is called when the usage could not be stored. It counts until the end of the process. */
  onLost(keyId: string, costUsd: number, error: unknown): void;
}

interface Open {
  reservations: number;
  reservedUsd: number;
  /** The amount that is spent, but not stored because the store failed. */
  unsavedUsd: number;
}

export function createBudgetLedger(options: BudgetLedgerOptions): BudgetLedger {
  const { keyUsage } = options;
  const queue = createKeyedQueue();
  const open = new Map<string, Open>();

  const expect = async (
    keyId: string,
    budgets: Budgets,
    isReserving: boolean,
    fittingUsd = 0,
  ): Promise<void> => {
    const { reservedUsd, unsavedUsd } = open.get(keyId) ?? { reservedUsd: 0, unsavedUsd: 0 };
    const limits = [
      ["day", budgets.budgetUsdPerDay],
      ["month", budgets.budgetUsdPerMonth],
    ] as const;
    for (const [period, budgetUsd] of limits) {
      if (budgetUsd === undefined) continue;
      const at = new Date(options.now());
      const spentUsd = (await keyUsage.read(keyId, period, at)).costUsd + unsavedUsd;
      if (spentUsd >= budgetUsd) throw exceeded(period, budgetUsd, at);
      if (isReserving && spentUsd + reservedUsd >= budgetUsd) throw reservedElsewhere(budgetUsd, period);
      if (fittingUsd > 0 && spentUsd + reservedUsd + fittingUsd > budgetUsd)
        throw doesNotFit(budgetUsd, period);
    }
  };

  const settle = async (keyId: string, worstUsd: number, used: Parameters<Reservation["settle"]>[0]) => {
    const entry = open.get(keyId);
    if (entry === undefined) return;
    try {
      if (used !== undefined) await keyUsage.add(keyId, used.usage, used.costUsd, new Date(options.now()));
    } catch (error) {
      const costUsd = used?.costUsd ?? 0;
      entry.unsavedUsd += costUsd;
      options.onLost(keyId, costUsd, error);
    }
    entry.reservations -= 1;
    // Sums of fractions leave a residue.
    entry.reservedUsd = entry.reservations === 0 ? 0 : entry.reservedUsd - worstUsd;
    if (entry.reservations === 0 && entry.unsavedUsd === 0) open.delete(keyId);
  };

  return {
    expectBudget: (keyId, budgets) => expect(keyId, budgets, false),
    reserve: (keyId, budgets, worstUsd, mustFit = false) =>
      queue.run(keyId, async () => {
        await expect(keyId, budgets, true, mustFit ? worstUsd : 0);
        const entry = open.get(keyId) ?? { reservations: 0, reservedUsd: 0, unsavedUsd: 0 };
        entry.reservations += 1;
        entry.reservedUsd += worstUsd;
        open.set(keyId, entry);
        return { settle: (used) => queue.run(keyId, () => settle(keyId, worstUsd, used)) };
      }),
  };
}

function exceeded(period: Period, budgetUsd: number, at: Date): ApiError {
  const seconds = Math.ceil((endOf(period, at).getTime() - at.getTime()) / 1000);
  const message = `This key has used up its budget of ${budgetUsd} USD a ${period}.`;
  return new ApiError(402, "insufficient_quota", message, {
    code: "budget_exceeded",
    headers: { "retry-after": String(seconds) },
  });
}

function doesNotFit(budgetUsd: number, period: Period): ApiError {
  const message = `This recording may be longer than what is left of this key's budget of ${budgetUsd} USD a ${period} pays: send it as MP3, Ogg or usual WAV.`;
  return new ApiError(402, "insufficient_quota", message, { code: "budget_exceeded" });
}

function reservedElsewhere(budgetUsd: number, period: Period): ApiError {
  const message = `The rest of this key's budget of ${budgetUsd} USD a ${period} is reserved by its running requests.`;
  return new ApiError(429, "rate_limit_error", message, {
    code: "budget_reserved",
    headers: { "retry-after": "1" },
  });
}

/** The store of keys and their usage. It holds a few small values. Contract: a failing store throws. */
export interface KeyValue {
  get(key: string): Promise<Json | undefined>;
  /** Keeps a value for `ttlMs`, or without expiry. */
  set(key: string, value: Json, ttlMs?: number): Promise<void>;
  delete(key: string): Promise<void>;
}
