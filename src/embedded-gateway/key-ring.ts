import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { Json } from "../core/events.ts";
import { type BilledAmounts, costOf, isPriced, type ModelOperation, type Usage } from "../core/gateway.ts";
import {
  type Budget,
  type BudgetPeriod,
  type BudgetScope,
  type SettledCall,
  type SpendingLedger,
  type SpentBudget,
  toKeyPerson,
  type UsageRow,
} from "../core/spending.ts";
import type { Records } from "../core/storage.ts";
import type { Log } from "../core/telemetry.ts";
import { endOfUtcDay, endOfUtcMonth, toUtcDay, toUtcMonth, systemClock } from "../support/clock.ts";
import { createRateLimiter } from "../support/rate-limiter.ts";
import { createRecent } from "../support/recent.ts";
import { createSettlement } from "../support/settle-calls.ts";
import { ApiError, clip } from "./api-error.ts";
import { type Target, type Access, createCharge } from "./router.ts";
import { parseArgs } from "node:util";
import { ParleyError } from "../core/errors.ts";

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
type VirtualKey = z.infer<typeof keySchema>;
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
  /** What a key has used in the current day or month of UTC. */
  usage(id: string, period: BudgetPeriod): Promise<KeyUsageTotals>;
  /** Whether a key was ever issued. Revoked ones count, so that revoking the last opens nothing. */
  hasIssuedKeys(): Promise<boolean>;
  /**
   * Returns the permissions of a secret's bearer, or `undefined` for a secret that is unknown or revoked.
   * @throws ApiError 402 (budget used up), 429 (rate limited, too many in flight), both with `Retry-After`
   */
  admit(token: string): Promise<Access | undefined>;
  /** Ends repetitions of what could not be counted. */
  close(): void;
}

/** The usage of a key in a day or month. */
type KeyUsageTotals = Readonly<Record<(typeof totalled)[number], number>>;
const totalled = [
  "calls",
  "promptTokens",
  "completionTokens",
  "audioSeconds",
  "images",
  "costUsd",
] as const satisfies readonly (keyof UsageRow)[];

/** What the keys need of the store: they are records, and spend through the ledger of people. */
export interface KeyStore {
  readonly records: Pick<Records, "get" | "set" | "update">;
  readonly spending: Pick<SpendingLedger, "reserve" | "settle" | "spentUsd" | "usage">;
}

interface KeyRingOptions {
  readonly store: KeyStore;
  readonly log: Log;
  readonly now?: () => number;
}

/** The requests of one key in flight at the same time, unless it was created with another limit. */
const defaultConcurrentRequests = 16;
const maxLimitedKeys = 10_000;
/** How long an id without a key is not looked up in the store, in milliseconds. */
const unknownForMs = 5000;

export function createKeyRing({ store, log, now = () => systemClock.now() }: KeyRingOptions): KeyRing {
  const { records, spending } = store;
  const settlement = createSettlement(spending, { log, now });
  const inFlight = new Map<string, number>();
  const limiter = createRateLimiter({ maxKeys: maxLimitedKeys, now });
  const unknownIds = createRecent(maxLimitedKeys, unknownForMs, now);

  const load = (id: string): Promise<VirtualKey | undefined> => loadKey(records, id);
  const save = (key: VirtualKey): Promise<void> => records.set(`key:${key.id}`, key as unknown as Json);

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

  /** @throws ApiError 402 `budget_exceeded` */
  const expectBudget = async (key: VirtualKey): Promise<void> => {
    for (const budget of budgetsOf(key)) {
      const spentUsd = await spending.spentUsd(budget.scope, now(), budget.period);
      if (spentUsd >= budget.budgetUsd) throw exceeded(budget, now());
    }
  };

  const reserve =
    (key: VirtualKey): Access["reserve"] =>
    async (operation, targets, worst) => {
      const budgets = budgetsOf(key);
      const reserveUsd = budgets.length === 0 ? 0 : worstCostOf(operation, targets, worst.most);
      const { mustFit = false } = worst;
      const result = await spending.reserve(reserveUsd, { budgets, now: now(), mustFit });
      if (!("id" in result)) throw refusal(result, now());
      return createCharge(worst, (target, usage) => {
        // Nobody waits for this. It never throws, and the client need not wait for the store.
        void settlement.settle(
          result,
          usage === undefined ? undefined : toCall(key, operation, target, usage),
        );
      });
    };

  return {
    create: async (name, limits) => {
      const id = randomBytes(6).toString("hex");
      const secret = `parley_${id}_${randomBytes(32).toString("base64url")}`;
      const key = { id, name, hash: hashKey(secret).toString("hex"), createdAt: now(), ...limits };
      await save(key);
      await records.update("keys", (ids) => [...toIds(ids), id]);
      return { key, secret };
    },
    revoke: async (id) => {
      const key = await load(id);
      if (key === undefined) return false;
      await save({ ...key, revokedAt: key.revokedAt ?? now() });
      return true;
    },
    list: () => listKeys(records),
    async usage(id, period) {
      const toDay = toUtcDay(now());
      const fromDay = period === "day" ? toDay : `${toUtcMonth(now())}-01`;
      const rows = await spending.usage({ fromDay, toDay, personId: toKeyPerson(id) });
      const sums = totalled.map((name) => [name, rows.reduce((sum, row) => sum + row[name], 0)] as const);
      return Object.fromEntries(sums) as KeyUsageTotals;
    },
    hasIssuedKeys: async () => (await listIds(records)).length > 0,
    admit: async (token) => {
      const key = await find(token);
      if (key === undefined) return undefined;
      if (key.requestsPerMinute !== undefined) {
        const waitMs = limiter.take(key.id, key.requestsPerMinute);
        if (waitMs > 0) throw rateLimited(key.requestsPerMinute, waitMs);
      }
      await expectBudget(key);
      const release = enter(key);
      return {
        keyId: key.id,
        isLimited: true,
        sees: (model) => allows(key, model),
        allowsTarget: (requested, target, isFallback) =>
          allows(key, target) || (!isFallback && key.models?.includes(requested) === true),
        reserve: reserve(key),
        release,
      };
    },
    close: () => settlement.close(),
  };
}

/** Returns the SHA-256 of a key. Only hashes are stored and compared. */
export function hashKey(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

type KeyRecords = Pick<KeyStore["records"], "get">;

async function loadKey(records: KeyRecords, id: string): Promise<VirtualKey | undefined> {
  const parsed = keySchema.safeParse(await records.get(`key:${id}`));
  return parsed.success ? parsed.data : undefined;
}

async function listIds(records: KeyRecords): Promise<string[]> {
  return toIds(await records.get("keys"));
}

/** @throws ParleyError `store-corrupt`. If that were no keys, the gateway would be open. */
function toIds(stored: Json | undefined): string[] {
  const parsed = z.array(z.string()).safeParse(stored ?? []);
  if (!parsed.success)
    throw new ParleyError("store-corrupt", "the list of the gateway's keys is not readable");
  return parsed.data;
}

/** Lists the keys, the oldest first, revoked ones included. */
export async function listKeys(records: KeyRecords): Promise<VirtualKey[]> {
  const keys = await Promise.all((await listIds(records)).map((id) => loadKey(records, id)));
  return keys.filter((key) => key !== undefined);
}

function scopeOf(keyId: string): BudgetScope {
  return { kind: "person", id: toKeyPerson(keyId) };
}

/** Returns the budgets of a key. Absent ones do not apply. */
function budgetsOf({ id, budgetUsdPerDay, budgetUsdPerMonth }: VirtualKey): Budget[] {
  const amounts = [
    ["day", budgetUsdPerDay],
    ["month", budgetUsdPerMonth],
  ] as const;
  return amounts.flatMap(([period, budgetUsd]) =>
    budgetUsd === undefined ? [] : [{ scope: scopeOf(id), period, budgetUsd }],
  );
}

/** Returns a call as the ledger counts it. It is charged to the key alone, without a budget too. */
function toCall(
  { id }: VirtualKey,
  operation: ModelOperation,
  target: Target | undefined,
  usage: Omit<Usage, "isEstimated">,
): SettledCall {
  const costUsd = target === undefined ? 0 : (usage.costUsd ?? costOf(target.model?.prices ?? {}, usage));
  // The ledger counts by model, so ids that only a client has named share a row.
  const model = target?.model === undefined ? `${target?.prefix ?? "sandbox"}/*` : target.publicId;
  return {
    labels: { personId: toKeyPerson(id), model, operation },
    amounts: usage,
    costUsd,
    chargedUsd: costUsd ?? 0,
    isEstimated: usage.costUsd === undefined,
    scopes: [scopeOf(id)],
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
    const prices = model?.prices;
    if (!isPriced(operation, prices)) throw withoutPrice(publicId);
    worstUsd = Math.max(worstUsd, costOf(prices, most) ?? 0);
  }
  return worstUsd;
}

function withoutPrice(id: string): ApiError {
  const message = `The model '${clip(id)}' has no price in the gateway's settings, which a key with a budget needs.`;
  return new ApiError(403, "permission_error", message, { param: "model", code: "model_without_price" });
}

/** Says why the ledger reserved nothing: 402 where the budget does not pay for it, 429 where it may later. */
function refusal({ budget, spentUsd, reservedUsd }: SpentBudget, now: number): ApiError {
  if (spentUsd >= budget.budgetUsd) return exceeded(budget, now);
  return spentUsd + reservedUsd >= budget.budgetUsd ? reservedElsewhere(budget) : doesNotFit(budget);
}

function exceeded({ period, budgetUsd }: Budget, now: number): ApiError {
  const end = period === "day" ? endOfUtcDay(toUtcDay(now)) : endOfUtcMonth(toUtcMonth(now));
  const seconds = Math.ceil((end - now) / 1000);
  const message = `This key has used up its budget of ${budgetUsd} USD a ${period}.`;
  return new ApiError(402, "insufficient_quota", message, {
    code: "budget_exceeded",
    headers: { "retry-after": String(seconds) },
  });
}

function doesNotFit({ period, budgetUsd }: Budget): ApiError {
  const message = `This recording may be longer than what is left of this key's budget of ${budgetUsd} USD a ${period} pays: send it as MP3, Ogg or usual WAV.`;
  return new ApiError(402, "insufficient_quota", message, { code: "budget_exceeded" });
}

function reservedElsewhere({ period, budgetUsd }: Budget): ApiError {
  const message = `The rest of this key's budget of ${budgetUsd} USD a ${period} is reserved by its running requests.`;
  return new ApiError(429, "rate_limit_error", message, {
    code: "budget_reserved",
    headers: { "retry-after": "1" },
  });
}

const keysUsage = `Keys of the embedded gateway:
  keys create <name> [--models <id,prefix/*,…>] [--day <USD>] [--month <USD>] [--rpm <requests a minute>]
              [--concurrent <requests at the same time>]
  keys list
  keys revoke <id>
  keys usage [<id>]`;

/**
 * Runs one of the commands above (the words after `keys`) and returns the output. Only `create` shows a
 * secret.
 * @throws ParleyError `invalid-option` with the usage in its message
 */
export async function runKeysCommand(words: readonly string[], ring: KeyRing): Promise<string> {
  const { command, subject, limits } = parse(words);
  switch (command) {
    case "create": {
      if (subject === undefined) throw usageError("The name of the key is missing.");
      const { key, secret } = await ring.create(subject, limits);
      return `${describe(key)}\n\nThe key, shown this once:\n${secret}`;
    }
    case "list": {
      const keys = await ring.list();
      return keys.length === 0 ? "There are no keys." : keys.map((key) => describe(key)).join("\n");
    }
    case "revoke": {
      if (subject === undefined) throw usageError("The id of the key is missing.");
      if (!(await ring.revoke(subject))) throw usageError(`There is no key ${subject}.`);
      return `The key ${subject} is revoked.`;
    }
    case "usage": {
      const keys = (await ring.list()).filter(({ id }) => subject === undefined || id === subject);
      if (keys.length === 0)
        throw usageError(subject === undefined ? "There are no keys." : `There is no key ${subject}.`);
      const lines = keys.map(async ({ id, name }) => {
        const [day, month] = [await ring.usage(id, "day"), await ring.usage(id, "month")];
        return `${id}  ${name}\n  today       ${toLine(day)}\n  this month  ${toLine(month)}`;
      });
      return (await Promise.all(lines)).join("\n");
    }
    default: {
      throw usageError(
        command === undefined ? "The command is missing." : `There is no command '${command}'.`,
      );
    }
  }
}

function parse(words: readonly string[]): {
  readonly command: string | undefined;
  readonly subject: string | undefined;
  readonly limits: KeyLimits;
} {
  try {
    const { values, positionals } = parseArgs({
      args: [...words],
      allowPositionals: true,
      options: {
        models: { type: "string" },
        day: { type: "string" },
        month: { type: "string" },
        rpm: { type: "string" },
        concurrent: { type: "string" },
      },
    });
    const [command, subject] = positionals;
    return {
      command,
      subject,
      limits: {
        models: values.models?.split(",").map((id) => id.trim()),
        budgetUsdPerDay: toAmount("day", values.day),
        budgetUsdPerMonth: toAmount("month", values.month),
        requestsPerMinute: toAmount("rpm", values.rpm),
        concurrentRequests: toAmount("concurrent", values.concurrent),
      },
    };
  } catch (error) {
    throw error instanceof ParleyError ? error : usageError(error instanceof Error ? error.message : "");
  }
}

function toAmount(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const amount = Number(text);
  if (!Number.isFinite(amount) || amount <= 0)
    throw usageError(`--${name} must be a number above 0, not '${text}'.`);
  return amount;
}

function describe(key: VirtualKey): string {
  const limits = [
    key.models === undefined ? "all models" : key.models.join(", "),
    ...(key.budgetUsdPerDay === undefined ? [] : [`${key.budgetUsdPerDay} USD a day`]),
    ...(key.budgetUsdPerMonth === undefined ? [] : [`${key.budgetUsdPerMonth} USD a month`]),
    ...(key.requestsPerMinute === undefined ? [] : [`${key.requestsPerMinute} requests a minute`]),
    ...(key.concurrentRequests === undefined ? [] : [`${key.concurrentRequests} at the same time`]),
  ];
  const state = key.revokedAt === undefined ? "" : "  (revoked)";
  return `${key.id}  ${key.name}  ${limits.join("; ")}${state}`;
}

function toLine(totals: KeyUsageTotals): string {
  const audio = totals.audioSeconds === 0 ? "" : `, ${Math.round(totals.audioSeconds)} s of audio`;
  const images = totals.images === 0 ? "" : `, ${totals.images} images`;
  return `${totals.costUsd.toFixed(4)} USD, ${totals.calls} requests, ${totals.promptTokens} + ${totals.completionTokens} tokens${audio}${images}`;
}

function usageError(problem: string): ParleyError {
  return new ParleyError("invalid-option", `${problem}\n\n${keysUsage}`);
}
