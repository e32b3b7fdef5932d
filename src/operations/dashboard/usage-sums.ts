import type { UsageRow } from "../../core/spending.ts";
import { groupUsage, sumUsage, type UsageGroup, type UsageSum } from "../../core/usage-report.ts";

/** Usage by each of its labels, the most calls first; days in their order. */
export interface UsageSums {
  readonly total: UsageSum;
  readonly days: readonly UsageGroup[];
  readonly models: readonly UsageGroup[];
  readonly operations: readonly UsageGroup[];
  readonly platforms: readonly UsageGroup[];
  readonly places: readonly UsageGroup[];
  readonly people: readonly UsageGroup[];
}

const maxNames = 20;

/** Sums up rows; of each label but the day at most 20 names. */
export function toUsageSums(rows: readonly UsageRow[]): UsageSums {
  const byPlatform = rows.map((row) => ({ ...row, personId: row.personId.split(":", 1)[0] ?? "" }));
  return {
    total: sumUsage(rows),
    days: groupUsage(rows, "day"),
    models: toBusiest(groupUsage(rows, "model")),
    operations: toBusiest(groupUsage(rows, "operation")),
    platforms: toBusiest(groupUsage(byPlatform, "person")),
    // What is in no place is direct messages and the page.
    places: toBusiest(groupUsage(rows, "channel").filter(({ key }) => key !== "")),
    people: toBusiest(groupUsage(rows, "person")),
  };
}

function toBusiest(groups: readonly UsageGroup[]): UsageGroup[] {
  return groups.toSorted((a, b) => b.calls - a.calls).slice(0, maxNames);
}
