import { randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { Json } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Access } from "../access.ts";
import { ApiError, clip } from "../api-error.ts";
import { hashKey } from "../authorize.ts";
import { toCostUsd } from "../upstreams/spent.ts";
import type { KeyValue } from "./key-value.ts";
import { createRateLimiter } from "./rate-limiter.ts";
import { createSpending, endOf, type Period, type Use } from "./key-usage.ts";

const keySchema = z.object({
  id: z.string(),
  name: z.string(),
  /** SHA-256 of the key, in hex: the key itself is shown once and kept nowhere. */
  hash: z.string(),
  createdAt: z.number(),
  revokedAt: z.number().optional(),
  /** Ids, or beginnings that end in `*`. Absent: every model. */
  models: z.array(z.string()).optional(),
  budgetUsdPerDay: z.number().optional(),
  budgetUsdPerMonth: z.number().optional(),
  requestsPerMinute: z.number().optional(),
});

/** A key for one person or program. */
export type VirtualKey = z.infer<typeof keySchema>;
export type KeyLimits = Pick<
  VirtualKey,
  "models" | "budgetUsdPerDay" | "budgetUsdPerMonth" | "requestsPerMinute"
>;

/** The keys that were given out. */
export interface KeyRing {
  /** `secret` is shown this once. */
  create(name: string, limits: KeyLimits): Promise<{ readonly key: VirtualKey; readonly secret: string }>;
  /** False: there is no such key. A running gateway notices within five seconds. */
  revoke(id: string): Promise<boolean>;
  /** Oldest first, revoked ones included. */
  list(): Promise<readonly VirtualKey[]>;
  use(id: string, period: Period): Promise<Use>;
  /** Whether any key is in force. */
  hasKeys(): Promise<boolean>;
  /**
   * What the bearer of a token may do; `undefined`: it is no key of the ring.
   * @throws ApiError 402 (budget used up), 429 (too many requests), both with `Retry-After`
   */
  admit(token: string): Promise<Access | undefined>;
}

export interface KeyRingOptions {
  readonly store: KeyValue;
  readonly log: Log;
  readonly now?: () => number;
}

const rememberedMs = 5000;

export function createKeyRing({ store, log, now = Date.now }: KeyRingOptions): KeyRing {
  const spending = createSpending(store);
  const limiter = createRateLimiter(now);
  const remembered = new Map<string, { readonly key: VirtualKey | undefined; readonly until: number }>();

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

  /** A key's second part is its id, so that finding it needs no search through hashes. */
  const find = async (token: string): Promise<VirtualKey | undefined> => {
    const id = /^parley_([0-9a-f]{12})_[\w-]{43}$/.exec(token)?.[1];
    if (id === undefined) return undefined;
    const known = remembered.get(id);
    const key = known !== undefined && known.until > now() ? known.key : await load(id);
    if (key !== known?.key) remembered.set(id, { key, until: now() + rememberedMs });
    if (key === undefined || key.revokedAt !== undefined) return undefined;
    return timingSafeEqual(hashKey(token), Buffer.from(key.hash, "hex")) ? key : undefined;
  };

  const expectBudget = async (
    key: VirtualKey,
    period: Period,
    budgetUsd: number | undefined,
  ): Promise<void> => {
    if (budgetUsd === undefined) return;
    const at = new Date(now());
    const { costUsd } = await spending.read(key.id, period, at);
    if (costUsd < budgetUsd) return;
    const seconds = Math.ceil((endOf(period, at).getTime() - now()) / 1000);
    const message = `This key has used up its budget of ${budgetUsd} USD a ${period}.`;
    throw new ApiError(402, "insufficient_quota", message, {
      code: "budget_exceeded",
      headers: { "retry-after": String(seconds) },
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
      remembered.delete(id);
      return true;
    },
    list,
    use: (id, period) => spending.read(id, period, new Date(now())),
    hasKeys: async () => (await list()).some(({ revokedAt }) => revokedAt === undefined),
    admit: async (token) => {
      const key = await find(token);
      if (key === undefined) return undefined;
      const waitMs = limiter.take(key.id, key.requestsPerMinute);
      if (waitMs > 0) throw tooMany(key.requestsPerMinute ?? 0, waitMs);
      await expectBudget(key, "day", key.budgetUsdPerDay);
      await expectBudget(key, "month", key.budgetUsdPerMonth);
      return {
        expectModel: (model) => {
          if (!allows(key, model)) throw notAllowed(model);
        },
        sees: (model) => allows(key, model),
        onSpent: (operation, target, spent) => {
          const costUsd = toCostUsd(spent, target?.model?.prices);
          spending.add(key.id, spent, costUsd, new Date(now())).catch((error: unknown) => {
            log.error({ keyId: key.id, operation, costUsd, error }, "use of a key could not be written down");
          });
        },
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

function notAllowed(model: string): ApiError {
  return new ApiError(403, "permission_error", `This key does not allow the model '${clip(model)}'.`, {
    param: "model",
    code: "model_not_allowed",
  });
}

function tooMany(perMinute: number, waitMs: number): ApiError {
  const message = `This key allows ${perMinute} requests a minute.`;
  return new ApiError(429, "rate_limit_error", message, {
    code: "rate_limit_exceeded",
    headers: { "retry-after": String(Math.ceil(waitMs / 1000)), "retry-after-ms": String(Math.ceil(waitMs)) },
  });
}
