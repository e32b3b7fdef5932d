import { randomUUID } from "node:crypto";
import {
  type Budget,
  type BudgetPeriod,
  type BudgetScope,
  type SettledCall,
  type SpendingLedger,
  type Spent,
  type UsageQuery,
  type UsageRow,
} from "../core/spending.ts";
import { inPieces, nextPiece } from "../support/pieces.ts";
import { addUtcDays, endOfUtcDay, endOfUtcMonth, toUtcDay } from "../support/clock.ts";
import type { IndexChange, IndexMember, ScoreLimit } from "./backend.ts";
import { readMembers } from "./conversation-index.ts";
import { type KeyValueStore, writeBatches } from "./key-value.ts";
import { createRecent } from "../support/recent.ts";
import { indexes } from "./keys.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
/** How many days usage is kept, if the retention is not shorter. */
const maxUsageDays = 400;
/** How many listings are remembered. */
const maxListed = 10_000;
const pageSize = 5000;
/** Money is counted in billionths of a USD, because whole numbers have no rounding errors. */
const nanoPerUsd = 1e9;
/** The highest credible cost of a call, in USD. Higher ones could make sums exceed the safe integers. */
const maxCallUsd = 100_000;

interface SpendingLedgerOptions {
  readonly store: KeyValueStore;
  /** How many milliseconds other data is kept. Default: for ever. */
  readonly retentionMs?: number | undefined;
  /** An unsettled reserve is released between this time and twice this time after it was made. */
  readonly reserveTtlMs: number;
}

/** Keeps counts in sorted indexes, by kind and day, month or reserve period. @see {@link SpendingLedger} */
export function createSpendingLedger(options: SpendingLedgerOptions): SpendingLedger {
  const { store, reserveTtlMs } = options;
  const usageMs = Math.min(options.retentionMs ?? Number.POSITIVE_INFINITY, maxUsageDays * dayMs);
  const periodOf = (time: number): number => Math.floor(time / reserveTtlMs);

  // Consecutive ids change fewer pages than random ones.
  const processId = randomUUID();
  let reservations = 0;
  /**
   * What this process has listed already. A server keeps whoever lists an index waiting for everybody else
   * who does, so that all processes would count their turns one after the other.
   */
  const listed = createRecent<number>(maxListed);
  const count: KeyValueStore["count"] = async (limits, changes) => {
    const due = changes.filter((each) => !isListing(each) || (listed.get(each.member) ?? -1) < each.score);
    const passed = await store.count(limits, due);
    if (passed === undefined)
      for (const { member, score } of due.filter(isListing)) listed.set(member, score);
    return passed;
  };

  /** What is spent and reserved now. Reserves are made in the period after the current one. */
  const spentTerms = ({ scope, period }: Budget, now: number): ScoreLimit["terms"] => {
    const member = toMember(scope);
    const current = periodOf(now);
    return [
      { index: indexes.spent(periodsOf(toUtcDay(now))[period].name), member },
      // The third period covers an instance whose clock is ahead.
      ...[current, current + 1, current + 2].map((each) => ({ index: indexes.reserved(each), member })),
    ];
  };

  async function readSpent(index: string, member: string): Promise<Spent> {
    const terms = [
      { index, member },
      { index, member: toEstimated(member) },
    ];
    // Every sum exceeds this limit, so the scores are read and nothing is written.
    const passed = await store.count([{ terms, max: Number.MIN_SAFE_INTEGER }], []);
    const [spent = 0, estimated = 0] = passed?.scores ?? [];
    return { spentUsd: spent / nanoPerUsd, isEstimated: estimated > 0 };
  }

  async function countedPeople(idPrefix: string): Promise<readonly string[]> {
    const prefix = indexes.usageDaysOf(idPrefix);
    const names = await readMembers(store, indexes.countedIndexes);
    return names
      .filter((name) => name.startsWith(prefix))
      .map((name) => name.slice(indexes.usageDaysOf("").length));
  }

  async function forgetPerson(personId: string): Promise<void> {
    const daysIndex = indexes.usageDaysOf(personId);
    const page = { order: "lowest-first", max: maxUsageDays * 2 } as const;
    for (const { member: day } of await store.range(daysIndex, page)) {
      const [usage, ratings] = [indexes.usage(day), indexes.ratings(day)];
      await writeBatches(store, [
        ...(await membersOf(store, usage, personId)).map(
          (member) => ({ kind: "remove-member", index: usage, member }) as const,
        ),
        ...(await membersOf(store, ratings, personId)).map(
          (member) => ({ kind: "remove-member", index: ratings, member }) as const,
        ),
        { kind: "remove-member", index: daysIndex, member: day },
      ]);
    }
  }

  return {
    async countTurn(personId, { max, now }) {
      const minute = Math.floor(now / minuteMs);
      const pastMs = now % minuteMs;
      const passed = await count(
        [
          {
            // The second term is the part of the previous minute that is within the last 60 s.
            terms: [
              { index: indexes.turns(minute), member: personId, weight: minuteMs },
              { index: indexes.turns(minute - 1), member: personId, weight: minuteMs - pastMs },
            ],
            max: (max - 1) * minuteMs,
          },
        ],
        [
          { kind: "add-score", index: indexes.turns(minute), member: personId, score: 1 },
          keepUntil(indexes.turns(minute), (minute + 2) * minuteMs),
        ],
      );
      if (passed === undefined) return undefined;
      const [current = 0, previous = 0] = passed.scores;
      return untilRoom({ current, previous, max, pastMs });
    },

    async uncountTurn(personId, now) {
      const index = indexes.turns(Math.floor(now / minuteMs));
      const terms = [{ index, member: personId, weight: -1 }];
      // The count must not fall below 0, because the minute may have changed.
      await store.count([{ terms, max: -1 }], [{ kind: "add-score", index, member: personId, score: -1 }]);
    },

    async reserve(reserveUsd, { budgets, now }) {
      const period = periodOf(now) + 1;
      const reservation = {
        id: `${processId}/${(reservations++).toString(36)}`,
        day: toUtcDay(now),
        reservedAt: now,
      };
      const amount = Math.ceil(toNano(reserveUsd));
      // A free call is never refused and counts against no budget.
      if (amount === 0 || budgets.length === 0) return { ...reservation, reservedUsd: 0, scopes: [] };
      const scopes = uniqueScopes(budgets.map(({ scope }) => scope));
      const passed = await count(
        budgets.map((budget) => ({
          terms: spentTerms(budget, now),
          max: Math.ceil(toNano(budget.budgetUsd)) - 1,
        })),
        [
          ...toReserves(scopes, period, amount),
          keepUntil(indexes.reserved(period), (period + 2) * reserveTtlMs),
        ],
      );
      const budget = passed === undefined ? undefined : budgets[passed.position];
      if (passed === undefined || budget === undefined)
        return { ...reservation, reservedUsd: amount / nanoPerUsd, scopes };
      const [spent = 0, ...reserved] = passed.scores;
      return {
        budget,
        spentUsd: spent / nanoPerUsd,
        reservedUsd: reserved.reduce((sum, each) => sum + each, 0) / nanoPerUsd,
      };
    },

    async settle(reservation, used, now) {
      const { id, day, reservedAt } = reservation;
      const period = periodOf(reservedAt) + 1;
      const isReserved = reservation.scopes.length > 0;
      if (!isReserved && used === undefined) return;
      const settled = indexes.settled(period);
      const isLate = periodOf(now) > period + 1;
      const released = -Math.round(reservation.reservedUsd * nanoPerUsd);
      await count(
        [{ terms: [{ index: settled, member: id }], max: 0 }],
        [
          { kind: "add-member", index: settled, member: id, score: 1 },
          keepUntil(settled, (period + 2) * reserveTtlMs),
          // After its period nobody reads the reserve, and its index may be gone.
          ...(isLate ? [] : toReserves(reservation.scopes, period, released)),
          ...(used === undefined ? [] : toCharges(used, day, endOfUtcDay(day) + usageMs)),
        ],
      );
    },

    spent: (scope, now, period = "day") =>
      readSpent(indexes.spent(periodsOf(toUtcDay(now))[period].name), toMember(scope)),

    async highestSpender(now) {
      const index = indexes.spent(toUtcDay(now));
      const prefix = toMember({ kind: "person", id: "" });
      for (let after: IndexMember | undefined; ;) {
        const page = await store.range(index, { order: "highest-first", max: pageSize, after });
        const first = page.find(({ member }) => member.startsWith(prefix));
        if (first !== undefined)
          return { personId: first.member.slice(prefix.length), ...(await readSpent(index, first.member)) };
        after = page.at(-1);
        if (page.length < pageSize) return undefined;
      }
    },

    async tell(budget, percent, now) {
      const { scope, period, budgetUsd } = budget;
      const day = toUtcDay(now);
      // A budget that was changed is another one, of which people are told anew.
      const member = `${toMember(scope)} ${budgetUsd} ${period}`;
      const { name, end } = periodsOf(day)[period];
      const told = indexes.told(name);
      const passed = await count(
        [{ terms: [{ index: told, member }], max: percent - 1 }],
        [{ kind: "add-member", index: told, member, score: percent }, keepUntil(told, end + dayMs)],
      );
      return passed === undefined;
    },

    usage: (query) => readUsage(store, query),

    forgetPerson,

    countedPeople,

    async forgetPeople(idPrefix) {
      for (const personId of await countedPeople(idPrefix)) {
        await forgetPerson(personId);
        const index = indexes.usageDaysOf(personId);
        await store.write([{ kind: "remove-member", index: indexes.countedIndexes, member: index }]);
        listed.delete(index);
      }
      const names = await readMembers(store, indexes.countedIndexes);
      const ofScopes = [indexes.spent(""), indexes.reservedPrefix, indexes.told("")];
      for (const index of names) {
        const isOfScopes = ofScopes.some((name) => index.startsWith(name));
        if (!isOfScopes && !index.startsWith(indexes.turnsPrefix)) continue;
        const prefix = isOfScopes ? toMember({ kind: "person", id: idPrefix }) : idPrefix;
        const members = (await readMembers(store, index)).filter((member) =>
          [prefix, toEstimated(prefix)].some((one) => member.startsWith(one)),
        );
        await writeBatches(
          store,
          members.map((member) => ({ kind: "remove-member", index, member }) as const),
        );
      }
    },
  };
}

/** Removes counts of past periods and resolves to the number of periods. `now` is in Unix ms. */
export async function sweepCounts(store: KeyValueStore, now: number): Promise<number> {
  for (let removed = 0; ;) {
    const page = { order: "lowest-first", max: 200 } as const;
    const found = await store.range(indexes.countedIndexes, page);
    const expired = found.filter(({ score }) => score <= now);
    if (expired.length === 0) return removed;
    removed += expired.length;
    await writeBatches(
      store,
      expired.flatMap(({ member }): IndexChange[] => [
        { kind: "trim-index", index: member, maxScore: Number.MAX_SAFE_INTEGER },
        { kind: "remove-member", index: indexes.countedIndexes, member },
      ]),
    );
  }
}

function toMember(scope: BudgetScope): string {
  return scope.kind === "deployment" ? "deployment" : `${scope.kind}:${scope.id}`;
}

/** The member that has the part of a scope's spending that is estimated. */
function toEstimated(member: string): string {
  return `~${member}`;
}

function uniqueScopes(scopes: readonly BudgetScope[]): BudgetScope[] {
  return [...new Map(scopes.map((scope) => [toMember(scope), scope])).values()];
}

function toNano(usd: number): number {
  return Number.isNaN(usd) ? 0 : Math.min(Math.max(usd, 0), maxCallUsd) * nanoPerUsd;
}

/** Lists an index among the counted ones, until it may be removed. */
function keepUntil(index: string, time: number): IndexChange {
  return { kind: "add-member", index: indexes.countedIndexes, member: index, score: time };
}

function isListing(change: IndexChange): change is Extract<IndexChange, { kind: "add-member" }> {
  return change.kind === "add-member" && change.index === indexes.countedIndexes;
}

/** Adds a reserve to each scope, or with a negative amount takes it away. */
function toReserves(scopes: readonly BudgetScope[], period: number, score: number): IndexChange[] {
  const index = indexes.reserved(period);
  return scopes.map((scope) => ({ kind: "add-score", index, member: toMember(scope), score }));
}

function toCharges(used: SettledCall, day: string, usageKeptUntil: number): IndexChange[] {
  const { costUsd, isEstimated } = used.usage;
  const score = Math.round(toNano(costUsd));
  const charged = score === 0 ? [] : uniqueScopes(used.scopes).map(toMember);
  const members = isEstimated ? [...charged, ...charged.map(toEstimated)] : charged;
  return [
    ...Object.values(periodsOf(day)).flatMap(({ name, end }): IndexChange[] => [
      ...members.map((member) => ({ kind: "add-score", index: indexes.spent(name), member, score }) as const),
      keepUntil(indexes.spent(name), end + dayMs),
    ]),
    ...toUsageChanges(used, day),
    keepUntil(indexes.usage(day), usageKeptUntil),
    ...toUsageDay(used.labels.personId, day, usageKeptUntil),
  ];
}

/** Lists a day among those of a person. */
function toUsageDay(personId: string, day: string, keptUntil: number): IndexChange[] {
  const index = indexes.usageDaysOf(personId);
  return [{ kind: "add-member", index, member: day, score: Date.parse(day) }, keepUntil(index, keptUntil)];
}

/** A day and its month, with their ends in Unix ms. */
function periodsOf(
  day: string,
): Readonly<Record<BudgetPeriod, { readonly name: string; readonly end: number }>> {
  const month = day.slice(0, 7);
  return { day: { name: day, end: endOfUtcDay(day) }, month: { name: month, end: endOfUtcMonth(month) } };
}

/** How many milliseconds until one more turn fits. The previous minute counts in part, as in `countTurn`. */
function untilRoom(turns: {
  readonly current: number;
  readonly previous: number;
  readonly max: number;
  /** How much of the current minute has passed. */
  readonly pastMs: number;
}): number {
  const { current, previous, max, pastMs } = turns;
  const room = max - 1 - current;
  const untilMs =
    room >= 0
      ? (minuteMs * (previous - room)) / previous
      : minuteMs + (minuteMs * (current - max + 1)) / current;
  return Math.max(1, Math.ceil(untilMs) - pastMs);
}

/**
 * What is counted of a day, as members of a sorted index: one for each measure of a row. Each begins with the
 * id of the person.
 */

/** How many days a query reads at most. */
const maxDays = 400;
/** How many counts of a day are read at most. */
const maxCounts = 200_000;

/** What is counted of a row. Costs are billionths of a USD, audio is milliseconds: whole numbers. */
const measures = [
  "calls",
  "promptTokens",
  "completionTokens",
  "images",
  "audioMs",
  "costNano",
  "estimatedCalls",
  "unpricedCalls",
] as const;
type Measure = (typeof measures)[number];

/** Person, channel (empty: none), model, operation, measure. */
type UsageMember = readonly [string, string, string, UsageRow["operation"], Measure];

/** The changes that add a call to its row of a day. A row is one member for each measure that is not 0. */
function toUsageChanges({ labels, usage }: SettledCall, day: string): IndexChange[] {
  const { promptTokens = 0, completionTokens = 0, images = 0, audioSeconds = 0 } = usage;
  const counts: Record<Measure, number> = {
    calls: 1,
    promptTokens,
    completionTokens,
    images,
    audioMs: audioSeconds * 1000,
    costNano: toNano(usage.costUsd),
    estimatedCalls: usage.isEstimated ? 1 : 0,
    unpricedCalls: usage.isAssumed === true ? 1 : 0,
  };
  return measures.flatMap((measure): IndexChange[] => {
    const score = toCount(counts[measure]);
    const { personId, channel = "", model, operation } = labels;
    const member = JSON.stringify([
      personId,
      channel,
      toName(model),
      operation,
      measure,
    ] satisfies UsageMember);
    return score === 0 ? [] : [{ kind: "add-score", index: indexes.usage(day), member, score }];
  });
}

/** Amounts come from the gateway, and an impossible one must not spoil a sum. */
function toCount(amount: number): number {
  return Number.isFinite(amount) ? Math.min(Math.max(0, Math.round(amount)), 1e14) : 0;
}

/** The rows of a query. @see {@link SpendingLedger.usage} */
async function readUsage(
  store: KeyValueStore,
  { fromDay, toDay, personId }: UsageQuery,
): Promise<readonly UsageRow[]> {
  const days =
    personId === undefined ? daysBetween(fromDay, toDay) : await daysOf(store, personId, { fromDay, toDay });
  const rows: UsageRow[] = [];
  // The counts of one day are in memory at a time.
  for (const day of days) for await (const some of readDay(store, day, personId)) rows.push(...some);
  return rows;
}

/** The members of a day's index that hold what is counted of a person: each begins with whose it is. */
async function membersOf(store: KeyValueStore, index: string, personId: string): Promise<readonly string[]> {
  const members: string[] = [];
  for await (const some of readCounts(store, index))
    members.push(
      ...some.map(({ member }) => member).filter((member) => member.startsWith(startOf(personId))),
    );
  return members;
}

/** How a member begins that holds what is counted of a person. */
const startOf = (personId: string): string => `[${JSON.stringify(personId)},`;

function daysBetween(fromDay: string, toDay: string): string[] {
  const days: string[] = [];
  for (let day = toDay; day >= fromDay && days.length < maxDays; day = addUtcDays(day, -1)) days.unshift(day);
  return days;
}

async function daysOf(
  store: KeyValueStore,
  personId: string,
  { fromDay, toDay }: { readonly fromDay: string; readonly toDay: string },
): Promise<string[]> {
  const page = { order: "highest-first", max: maxDays * 2 } as const;
  const days = await store.range(indexes.usageDaysOf(personId), page);
  return days
    .map(({ member }) => member)
    .filter((day) => day >= fromDay && day <= toDay)
    .toReversed();
}

/**
 * Reads the counts of a day in pieces, the lowest first. Counts only rise, so none is left out, and one that
 * rises meanwhile may come again.
 */
async function* readCounts(store: KeyValueStore, index: string): AsyncGenerator<readonly IndexMember[]> {
  let after: IndexMember | undefined;
  for (let read = 0; read < maxCounts; read += pageSize) {
    await nextPiece();
    const page = await store.range(index, { order: "lowest-first", max: pageSize, after });
    yield* inPieces(page);
    if (page.length < pageSize) return;
    after = page.at(-1);
  }
}

interface CountedRow {
  readonly labels: UsageMember;
  readonly counts: Partial<Record<Measure, number>>;
}

/** The rows of a day in pieces: those of a person, or of everybody. */
async function* readDay(
  store: KeyValueStore,
  day: string,
  personId: string | undefined,
): AsyncGenerator<readonly UsageRow[]> {
  const rows = new Map<string, CountedRow>();
  for await (const some of readCounts(store, indexes.usage(day))) {
    for (const { member, score } of some) {
      if (personId !== undefined && !member.startsWith(startOf(personId))) continue;
      const labels = toLabels(member);
      if (labels === undefined) continue;
      const key = JSON.stringify(labels.slice(0, 4));
      const row = rows.get(key) ?? { labels, counts: {} };
      row.counts[labels[4]] = score;
      rows.set(key, row);
    }
  }
  for await (const some of inPieces([...rows.values()])) yield some.map((row) => toRow(day, row));
}

function toRow(day: string, { labels: [personId, channel, model, operation], counts }: CountedRow): UsageRow {
  return {
    day,
    personId,
    ...(channel === "" ? {} : { channel }),
    model,
    operation,
    calls: counts.calls ?? 0,
    promptTokens: counts.promptTokens ?? 0,
    completionTokens: counts.completionTokens ?? 0,
    images: counts.images ?? 0,
    audioSeconds: (counts.audioMs ?? 0) / 1000,
    costUsd: (counts.costNano ?? 0) / 1e9,
    estimatedCalls: counts.estimatedCalls ?? 0,
    unpricedCalls: counts.unpricedCalls ?? 0,
  };
}

/** Models may be called anything, and their names are parts of names in the store. */
function toName(model: string): string {
  return model.slice(0, 100);
}

function toLabels(member: string): UsageMember | undefined {
  const parsed: unknown = JSON.parse(member);
  return Array.isArray(parsed) && parsed.length === 5 ? (parsed as unknown as UsageMember) : undefined;
}
