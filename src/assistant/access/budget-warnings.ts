import { budgetNotice } from "../../core/error-messages.ts";
import type { ReplyAddress } from "../../core/events.ts";
import type { Platform } from "../../core/platform.ts";
import type { BudgetState, PassedShare, SpendingLedger } from "../../core/spending.ts";
import type { ConversationQueue, Records } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { toUsdText } from "../../core/usage-table.ts";
import { toUtcDay } from "../../support/clock.ts";
import { inLanguage, translate } from "../../words/translate.ts";
import type { Budgets, Caller } from "./budgets.ts";

/** The shares of a budget of which people are told, in percent, the highest first. */
const shares = [100, 80, 50] as const;
/** How many budgets the message to the admins lists. */
const maxListed = 30;
/** For so many milliseconds it is known what the last message to the admins has shown. */
const reportTtlMs = 3 * 24 * 60 * 60_000;
/** The key of the record, and of the queue in which one process at a time writes the message. */
const reportKey = "budget-report";

/** Tells people once in a period that a share of a budget is spent. */
export interface BudgetWarnings {
  /**
   * Tells the person of a turn about the own budgets, beside the answer and alone, and notes for the admins
   * what was passed. It never throws.
   */
  afterTurn(turn: {
    readonly caller: Caller;
    readonly platform: Pick<Platform, "tellAlone">;
    /** The address of the person's event. */
    readonly address: ReplyAddress;
  }): Promise<void>;
  /** Brings the message of the day to the admins up to date, if it is of this platform. It never throws. */
  report(platformId: string): Promise<void>;
}

interface BudgetWarningsOptions {
  readonly budgets: Pick<Budgets, "inForce">;
  readonly ledger: Pick<SpendingLedger, "tell" | "toldSince">;
  readonly records: Pick<Records, "get" | "set">;
  readonly queue: Pick<ConversationQueue, "run">;
  /** The value of `ADMIN_CHANNEL`. */
  readonly adminChannel: string | undefined;
  readonly platforms: ReadonlyMap<string, Platform>;
  /** The name of a person, place or role by its id, if it is known. */
  readonly nameOf: (id: string) => Promise<string | undefined>;
  readonly log: Log;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
}

/** The last message to the admins. */
interface Report {
  readonly day: string;
  readonly channel: string;
  readonly address: ReplyAddress;
  /** It lists what was passed after this time. The times are in Unix ms. */
  readonly since: number;
  /** What was passed until this time is shown. */
  readonly until: number;
  /** How many shares are shown. It is 0 where it is not known whether the message was posted. */
  readonly count: number;
  /** The names that it shows, by id. Another process, or this one after a restart, may not know them. */
  readonly names: Readonly<Record<string, string>>;
}

/** Creates {@link BudgetWarnings}. */
export function createBudgetWarnings(options: BudgetWarningsOptions): BudgetWarnings {
  const { budgets, ledger, records, queue, adminChannel, platforms, nameOf, log, now } = options;
  const adminPlatform = adminChannel?.slice(0, adminChannel.indexOf(":"));

  async function writeReport(channel: string, platform: Platform): Promise<void> {
    const day = toUtcDay(now());
    const last = (await records.get(reportKey)) as unknown as Report | undefined;
    const today = last?.day === day && last.channel === channel ? last : undefined;
    const since = today?.since ?? last?.until ?? 0;
    const told = (await ledger.toldSince(day)).filter(({ at }) => at > since);
    if (told.length === (today?.count ?? 0)) return;
    const address = today?.address ?? platform.channelAddress?.(channel, day);
    if (address === undefined) return;
    const passed = highestOf(told);
    const ids = passed
      .slice(0, maxListed)
      .flatMap(({ scope }) => (scope.kind === "deployment" ? [] : [scope.id]));
    const found = await Promise.all(ids.map(async (id) => [id, await nameOf(id)] as const));
    const names = {
      ...today?.names,
      ...Object.fromEntries(found.filter((entry): entry is [string, string] => entry[1] !== undefined)),
    };
    let report: Report = { day, channel, address, since, until: since, count: 0, names };
    const save = async (change: Partial<Report>): Promise<void> => {
      report = { ...report, ...change };
      await records.set(reportKey, { ...report }, reportTtlMs);
    };
    // If the process dies now, the next one looks for the message before it posts it.
    await save({});
    // Nobody has said which language those who read the channel speak.
    const text = inLanguage("en", () => toReport(day, passed, names));
    const reply = platform.openReply(address, {
      isResumed: today !== undefined,
      isCalm: true,
      isEndOnly: true,
      saveAddress: (grown) => save({ address: grown }),
    });
    await reply.show();
    reply.write({ text, isWhole: true });
    await reply.finish();
    await save({ count: told.length, until: Math.max(...told.map(({ at }) => at)) });
  }

  async function report(): Promise<void> {
    const platform = adminPlatform === undefined ? undefined : platforms.get(adminPlatform);
    if (adminChannel === undefined || platform === undefined) return;
    try {
      await queue.run(reportKey, () => writeReport(adminChannel, platform));
    } catch (error) {
      log.warn({ err: error }, "the admins were not told about budgets; tried again soon");
    }
  }

  return {
    async afterTurn({ caller, platform, address }) {
      try {
        const passed: (readonly [BudgetState, number])[] = [];
        for (const state of await budgets.inForce(caller)) {
          // What others have spent is for admins.
          if (state.scope.kind !== "person" && adminChannel === undefined) continue;
          const percent = passedShare(state);
          if (percent !== undefined && (await ledger.tell(state, percent, now())))
            passed.push([state, percent]);
        }
        const notices = passed
          .filter(([{ scope }]) => scope.kind === "person")
          .map(([state, percent]) => budgetNotice(state, percent, now()));
        if (passed.length > 0) void report();
        if (notices.length > 0) await platform.tellAlone(address, caller.personId, notices.join("\n"));
      } catch (error) {
        log.warn({ err: error }, "a person was not told about a budget");
      }
    },
    report: async (platformId) => (platformId === adminPlatform ? report() : undefined),
  };
}

/** The highest share that is spent. A budget of which nothing was spent has none. */
function passedShare({ spentUsd, budgetUsd }: BudgetState): number | undefined {
  if (spentUsd <= 0) return undefined;
  // A billionth is the smallest amount, so that no rounding error may hide a share.
  return shares.find((percent) => spentUsd + 1e-9 >= (budgetUsd * percent) / 100);
}

/** The highest share of each budget that was passed, the highest of all first. */
function highestOf(told: readonly PassedShare[]): PassedShare[] {
  const highest = new Map<string, PassedShare>();
  for (const one of told.toSorted((a, b) => a.percent - b.percent))
    highest.set(JSON.stringify([one.scope, one.period, one.budgetUsd]), one);
  return [...highest.values()].sort((a, b) => b.percent - a.percent || a.at - b.at);
}

function toReport(day: string, passed: readonly PassedShare[], names: Report["names"]): string {
  const lines = passed.slice(0, maxListed).map(({ scope, period, budgetUsd, percent }) => {
    const values = { percent, budget: toUsdText(budgetUsd), name: nameOfScope(scope, names) };
    return `- ${translate(`budget.report.${period}`, values)}`;
  });
  const left = passed.length - lines.length;
  if (left > 0) lines.push(`- ${translate("budget.report.more", { count: left })}`);
  return [translate("budget.report", { day }), lines.join("\n")].join("\n\n");
}

function nameOfScope(scope: PassedShare["scope"], names: Report["names"]): string {
  if (scope.kind === "deployment") return translate("budget.report.everybody");
  const name = names[scope.id] ?? scope.id;
  return scope.kind === "role" ? translate("budget.report.role", { name }) : name;
}
