import { noUsage } from "../core/usage-report.ts";
import { createHash } from "node:crypto";
import {
  isKeyPerson,
  type RatingLabels,
  type SettledCall,
  type UsageQuery,
  type UsageRow,
} from "../core/spending.ts";
import type { Rating } from "../core/storage.ts";
import { addUtcDays } from "../support/clock.ts";
import type { IndexChange } from "./backend.ts";
import { type KeyValueStore, indexes } from "./key-value.ts";

/**
 * What is counted of a day, as members of two sorted indexes: usage, one member for each measure of a row,
 * and ratings, one member for each person and answer. Each member begins with the id of the person.
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
export function toUsageChanges({ labels, ...used }: SettledCall, day: string): IndexChange[] {
  const { promptTokens = 0, completionTokens = 0, images = 0, audioSeconds = 0 } = used.amounts;
  const counts: Record<Measure, number> = {
    calls: 1,
    promptTokens,
    completionTokens,
    images,
    audioMs: audioSeconds * 1000,
    costNano: (used.costUsd ?? 0) * 1e9,
    estimatedCalls: used.isEstimated ? 1 : 0,
    unpricedCalls: used.costUsd === undefined ? 1 : 0,
  };
  return measures.flatMap((measure): IndexChange[] => {
    const score = toCount(counts[measure]);
    const { personId, channel = "", model, operation } = labels;
    const member = JSON.stringify([personId, channel, model, operation, measure] satisfies UsageMember);
    return score === 0 ? [] : [{ kind: "add-score", index: indexes.usage(day), member, score }];
  });
}

/** Amounts come from the gateway, and an impossible one must not spoil a sum. */
function toCount(amount: number): number {
  return Number.isFinite(amount) ? Math.min(Math.max(0, Math.round(amount)), 1e14) : 0;
}

/** The rows of a query. @see {@link SpendingLedger.usage} */
export async function readUsage(
  store: KeyValueStore,
  { fromDay, toDay, personId }: UsageQuery,
): Promise<readonly UsageRow[]> {
  const days =
    personId === undefined ? daysBetween(fromDay, toDay) : await daysOf(store, personId, { fromDay, toDay });
  const rows = await Promise.all(days.map((day) => readDay(store, day)));
  return rows
    .flat()
    .filter((row) => (personId === undefined ? !isKeyPerson(row.personId) : row.personId === personId));
}

/** The members of a day's index that hold a person's usage or ratings: each begins with whose it is. */
export async function membersOf(
  store: KeyValueStore,
  index: string,
  personId: string,
): Promise<readonly string[]> {
  const counts = await readCounts(store, index);
  return counts
    .map(({ member }) => member)
    .filter((member) => (JSON.parse(member) as readonly unknown[])[0] === personId);
}

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
  const page = { order: "highest-first", offset: 0, max: maxDays * 2 } as const;
  const days = await store.readIndex(indexes.usageDaysOf(personId), page);
  return days.map(({ member }) => member).filter((day) => day >= fromDay && day <= toDay);
}

/** Everything is read in one page, because rising counts would move between pages. */
function readCounts(store: KeyValueStore, index: string) {
  return store.readIndex(index, { order: "lowest-first", offset: 0, max: maxCounts });
}

async function readDay(store: KeyValueStore, day: string): Promise<UsageRow[]> {
  const rows = new Map<string, { labels: UsageMember; counts: Partial<Record<Measure, number>> }>();
  const [usage, ratings] = await Promise.all([
    readCounts(store, indexes.usage(day)),
    readCounts(store, indexes.ratings(day)),
  ]);
  for (const { member, score } of usage) {
    const labels = toLabels(member);
    if (labels === undefined) continue;
    const key = JSON.stringify(labels.slice(0, 4));
    const row = rows.get(key) ?? { labels, counts: {} };
    row.counts[labels[4]] = score;
    rows.set(key, row);
  }
  const used = [...rows.values()].map(({ labels: [personId, channel, model, operation], counts }) => ({
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
    goodRatings: 0,
    badRatings: 0,
  }));
  return [
    ...used,
    ...toRatedRows(
      day,
      ratings.map(({ member }) => member),
    ),
  ];
}

/** Person, channel (empty: none), model, operation, command (empty: none), answer, rating. */
type RatingMember = readonly [string, string, string, UsageRow["operation"], string, string, Rating];

/** Makes the member that counts a person's rating of an answer. A hash names the answer. */
export function toRatingMember(labels: RatingLabels, rating: Rating): string {
  const { personId, channel = "", model, operation, command = "" } = labels;
  const answer = createHash("sha256").update(labels.answer).digest("base64url").slice(0, 16);
  return JSON.stringify([
    personId,
    channel,
    model,
    operation,
    command,
    answer,
    rating,
  ] satisfies RatingMember);
}

/** The ratings of a day, summed up by all but the answer. */
function toRatedRows(day: string, members: readonly string[]): UsageRow[] {
  const all = members.map((member) => JSON.parse(member) as RatingMember);
  return [...Map.groupBy(all, (member) => JSON.stringify(member.slice(0, 5))).values()].map((same) => {
    const [personId, channel, model, operation, command] = same[0]!;
    const goodRatings = same.filter(([, , , , , , rating]) => rating === "good").length;
    return {
      day,
      personId,
      ...(channel === "" ? {} : { channel }),
      model,
      operation,
      ...(command === "" ? {} : { command }),
      ...noUsage,
      goodRatings,
      badRatings: same.length - goodRatings,
    };
  });
}

function toLabels(member: string): UsageMember | undefined {
  const parsed: unknown = JSON.parse(member);
  return Array.isArray(parsed) && parsed.length === 5 ? (parsed as unknown as UsageMember) : undefined;
}
