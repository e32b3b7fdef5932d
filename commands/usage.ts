import { invalidOption } from "../src/core/command-input.ts";
import { defineCommand, type Command } from "../src/core/command.ts";
import type { CommandServices } from "../src/core/command-services.ts";
import type { Result } from "../src/core/result.ts";
import type { UsageRow } from "../src/core/spending.ts";
import {
  toUsageCsv,
  budgetLines,
  footnotes,
  summaryTable,
  usageTable,
  createUsageGroups,
  usageDimensions,
  type UsageDimension,
  type UsageGroup,
} from "../src/core/usage.ts";
import { addUtcDays, toUtcDay } from "../src/support/clock.ts";
import { inPieces } from "../src/support/pieces.ts";
import { toBytes } from "../src/support/text-pieces.ts";
import { translate } from "../src/words/translate.ts";

/** The highest number of rows in a table, and in a file. */
const maxGroups = 15;
const maxCsvRows = 50_000;
/** Usage is kept for this many days. */
const maxDays = 400;

interface Period {
  readonly fromDay: string;
  readonly toDay: string;
}

const usage: Command = defineCommand({
  name: "usage",
  description: "What you have used and what is left of your budget",
  options: {
    by: { kind: "string", choices: usageDimensions, description: "What to break it down by" },
    period: {
      kind: "string",
      choices: ["today", "month", "last-month"],
      description: "Which days; this month if you leave it out",
    },
    from: { kind: "string", maxChars: 10, description: "First day, such as 2026-11-01" },
    to: { kind: "string", maxChars: 10, description: "Last day, such as 2026-11-30" },
    who: {
      kind: "string",
      choices: ["me", "everybody"],
      description: "For admins: whose usage; everybody's if you leave it out",
    },
    csv: { kind: "boolean", description: "As a CSV file for a spreadsheet" },
  },
  visibility: "private",
  examples: ["/usage", "/usage by:model period:last-month", "/usage from:2026-11-01 to:2026-11-15 csv:yes"],
  run: async ({ options, services }) => {
    const { by, csv = false, who } = options;
    const isDetailed = by !== undefined || csv || [options.period, options.from, options.to].some(isGiven);
    if (!isDetailed && who === undefined) {
      return await showSummary(services);
    }
    const ofEverybody = who === undefined ? services.isAdmin() : who === "everybody";
    const period = periodOf(options, toUtcDay(services.now()));
    const query = { ...period, ofEverybody };
    const dimension = by as UsageDimension | undefined;
    const whose = ofEverybody ? "everybody" : "you";
    const days = { from: period.fromDay, to: period.toDay };
    const title = `**${translate(`usage.title.${whose}`, days)}**`;
    if (csv) {
      const name = `usage-${period.fromDay}-${period.toDay}.csv`;
      return await services.usage(query, (rows) => showCsv(services, rows, { title, name }));
    }
    const grouping = dimension ?? (ofEverybody ? "person" : "day");
    return await showTable(services, await services.usage(query, toGroups(grouping)), {
      title,
      by: grouping,
    });
  },
});
export default usage;

function isGiven(value: unknown): boolean {
  return value !== undefined;
}

/** Groups rows, while others have their turns. */
const toGroups =
  (by: UsageDimension) =>
  async (rows: readonly UsageRow[]): Promise<readonly UsageGroup[]> => {
    const groups = createUsageGroups(by);
    for await (const some of inPieces(rows)) groups.add(some);
    return groups.sorted();
  };

/** Mine today and this month; for an admin everybody's too. */
async function showSummary(services: CommandServices): Promise<Result> {
  const today = toUtcDay(services.now());
  const month = { fromDay: `${today.slice(0, 7)}-01`, toDay: today };
  const parts: string[] = [];
  const own = await services.usage(month, toGroups("day"));
  parts.push(`**${translate("usage.own")}**`, summaryTable(own, today));
  let shown = own;
  if (services.isAdmin()) {
    shown = await services.usage({ ...month, ofEverybody: true }, toGroups("day"));
    parts.push(`**${translate("usage.everybody")}**`, summaryTable(shown, today));
  }
  parts.push([...footnotes(shown), ...budgetLines(await services.budgets())].join("\n"));
  if (services.isAdmin()) parts.push(translate("usage.break-down"));
  return await services.say(parts.join("\n\n"), { isStored: false });
}

async function showTable(
  services: CommandServices,
  groups: readonly UsageGroup[],
  { title, by }: { readonly title: string; readonly by: UsageDimension },
): Promise<Result> {
  if (groups.length === 0) {
    return await services.say(`${title}\n\n${translate("usage.nothing")}`, { isStored: false });
  }
  // These are the latest days, or the most expensive groups of another kind.
  const top = by === "day" ? groups.slice(-maxGroups) : groups.slice(0, maxGroups);
  const others = groups.filter((group) => !top.includes(group));
  const names =
    by === "person" || by === "channel"
      ? await services.namesOf(top.map(({ key }) => key))
      : new Map<string, string>();
  const table = usageTable({ by, top, others, names });
  return await services.say(
    [title, table, footnotes(groups).join("\n")].filter((part) => part !== "").join("\n\n"),
    {
      isStored: false,
    },
  );
}

async function showCsv(
  services: CommandServices,
  rows: readonly UsageRow[],
  { title, name }: { readonly title: string; readonly name: string },
): Promise<Result> {
  // If there are too many rows, the latest are kept.
  const kept = rows.slice(-maxCsvRows);
  const ids = new Set<string>();
  for await (const some of inPieces(kept))
    for (const { personId, channel = personId } of some) ids.add(personId).add(channel);
  const names = await services.namesOf([...ids]);
  const bytes = await toBytes(toUsageCsv(kept, names));
  const left = rows.length - kept.length;
  const note = left === 0 ? "" : ` ${translate("usage.rows.left", { count: left })}`;
  return await services.say(`${translate("usage.rows", { title, count: kept.length })}${note}`, {
    isStored: false,
    files: [
      {
        name,
        mediaType: "text/csv",
        bytes,
        altText: name,
      },
    ],
  });
}

/** @throws ParleyError `invalid-option` if days do not exist, are in the wrong order or too many */
function periodOf(
  options: {
    readonly period?: string | undefined;
    readonly from?: string | undefined;
    readonly to?: string | undefined;
  },
  today: string,
): Period {
  const { period, from, to } = options;
  if (period !== undefined && (from !== undefined || to !== undefined))
    throw invalidOption(usage, "period", translate("usage.period-or-days"));
  for (const [name, day] of Object.entries({ from, to })) {
    if (day !== undefined && !isDay(day)) throw invalidOption(usage, name, translate("usage.day"));
  }
  if (period === "today") return { fromDay: today, toDay: today };
  const firstOfMonth = `${today.slice(0, 7)}-01`;
  if (period === "last-month") {
    const toDay = addUtcDays(firstOfMonth, -1);
    return { fromDay: `${toDay.slice(0, 7)}-01`, toDay };
  }
  const toDay = to ?? today;
  const fromDay = from ?? `${toDay.slice(0, 7)}-01`;
  if (fromDay > toDay) throw invalidOption(usage, "from", translate("usage.wrong-order"));
  if (addUtcDays(fromDay, maxDays) < toDay)
    throw invalidOption(usage, "from", translate("usage.too-many-days", { max: maxDays }));
  return { fromDay, toDay };
}

function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) && addUtcDays(text, 0) === text;
}
