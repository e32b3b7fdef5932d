import { hostname } from "node:os";
import type { GatewayState } from "../gateway-watch.ts";
import type { DeliveryWaiting, Load, PlatformConnection } from "../metric-sources.ts";
import type { Readiness } from "../readiness.ts";
import type { UsageRow } from "../../core/spending.ts";
import { addUtcDays, toUtcDay } from "../../support/utc-day.ts";
import type { LoadHistory, LoadSeries, MinuteFigures, PlatformActivity } from "./load-history.ts";
import type { Problem, RecentProblems } from "./recent-problems.ts";
import { toUsageSums, type UsageSums } from "./usage-sums.ts";

/** Where the dashboard reads from. None of it holds what people wrote. */
export interface DashboardSources {
  readonly version: string;
  readonly readiness: () => Promise<Readiness>;
  readonly connections: () => readonly PlatformConnection[];
  readonly deliveryWaiting: () => readonly DeliveryWaiting[];
  readonly load: () => Load;
  readonly gateway: { readonly description: string; readonly state: () => GatewayState };
  readonly store: {
    describe(): string;
    sizeBytes(): Promise<number | undefined>;
    writes(): { readonly commits: number; readonly durableCommits: number };
  };
  /** Usage of all instances. Days are `YYYY-MM-DD`, UTC, both included. */
  readonly usage: (query: { fromDay: string; toDay: string }) => Promise<readonly UsageRow[]>;
  readonly budgets: { readonly dayUsd: number | undefined; readonly personDayUsd: number | undefined };
  /** What all have spent today, in USD. */
  readonly spentTodayUsd: () => Promise<number>;
  readonly history: LoadHistory;
  readonly problems: RecentProblems;
  /** Unix ms. */
  readonly now: () => number;
}

/** What `/admin/data` serves as JSON. What runs is of this process, usage and budgets of all instances. */
export interface DashboardData {
  readonly version: string;
  readonly node: string;
  /** Name of the machine and number of the process. */
  readonly instance: string;
  /** ISO 8601. */
  readonly startedAt: string;
  /** ISO 8601. */
  readonly time: string;
  readonly status: Readiness["status"];
  readonly parts: Readiness["parts"];
  readonly platforms: readonly DashboardPlatform[];
  readonly gateway: {
    readonly description: string;
    readonly state: GatewayState;
    readonly errors: readonly Problem[];
  };
  readonly store: {
    readonly description: string;
    readonly bytes?: number;
    readonly commits: number;
    readonly durableCommits: number;
  };
  readonly load: Load;
  readonly series: LoadSeries;
  readonly minutes: readonly MinuteFigures[];
  /** Calls that wait now for room under a platform's limits. */
  readonly deliveryWaiting: readonly DeliveryWaiting[];
  /** Requests that were not taken or were given up since the start, by reason. */
  readonly refusals: Readonly<Record<string, number>>;
  readonly budgets: {
    readonly dayUsd?: number;
    readonly personDayUsd?: number;
    /** `undefined`: the store cannot be read. */
    readonly spentTodayUsd?: number;
  };
  /** Of the last 30 days. `undefined`: the store cannot be read. */
  readonly usage?: UsageSums;
  readonly problems: readonly Problem[];
}

/** One platform that is on. */
export interface DashboardPlatform extends PlatformActivity {
  readonly id: string;
  readonly connections: readonly { readonly name: string; readonly isReady: boolean }[];
}

const usageDays = 30;
const maxGatewayErrors = 10;
/** Sums of a month are not read anew for each page that looks. */
const usageForMs = 15_000;

/** Reads what the dashboard shows. Never rejects: what cannot be read is left out, and `parts` says why. */
export function createDashboardData(sources: DashboardSources): () => Promise<DashboardData> {
  const { history, now } = sources;
  const startedAt = now();
  let known: { readonly at: number; readonly value: Promise<Figures> } | undefined;

  const readFigures = async (): Promise<Figures> => {
    const today = toUtcDay(now());
    const [rows, spentTodayUsd] = await Promise.all([
      sources.usage({ fromDay: addUtcDays(today, 1 - usageDays), toDay: today }),
      sources.spentTodayUsd(),
    ]);
    return { usage: toUsageSums(rows), spentTodayUsd };
  };
  const figures = (): Promise<Figures> => {
    if (known === undefined || now() - known.at > usageForMs)
      known = { at: now(), value: readFigures().catch(() => ({})) };
    return known.value;
  };

  return async () => {
    const [readiness, { usage, spentTodayUsd }, bytes] = await Promise.all([
      sources.readiness(),
      figures(),
      sources.store.sizeBytes(),
    ]);
    const connections = Map.groupBy(sources.connections(), ({ platform }) => platform);
    const problems = sources.problems.read();
    const { dayUsd, personDayUsd } = sources.budgets;
    const { commits, durableCommits } = sources.store.writes();
    return {
      version: sources.version,
      node: process.versions.node,
      instance: `${hostname()}/${process.pid}`,
      startedAt: new Date(startedAt).toISOString(),
      time: new Date(now()).toISOString(),
      status: readiness.status,
      parts: readiness.parts,
      platforms: [...connections].map(([id, each]) => ({
        id,
        connections: each.map(({ connection, isReady }) => ({ name: connection, isReady })),
        ...history.activity(id),
      })),
      gateway: {
        description: sources.gateway.description,
        state: sources.gateway.state(),
        errors: problems.filter(({ code = "" }) => code.startsWith("gateway-")).slice(0, maxGatewayErrors),
      },
      store: {
        description: sources.store.describe(),
        ...(bytes === undefined ? {} : { bytes }),
        commits,
        durableCommits,
      },
      load: sources.load(),
      series: history.series(),
      minutes: history.minutes(),
      deliveryWaiting: sources.deliveryWaiting(),
      refusals: history.refusals(),
      budgets: {
        ...(dayUsd === undefined ? {} : { dayUsd }),
        ...(personDayUsd === undefined ? {} : { personDayUsd }),
        ...(spentTodayUsd === undefined ? {} : { spentTodayUsd }),
      },
      ...(usage === undefined ? {} : { usage }),
      problems,
    };
  };
}

interface Figures {
  readonly usage?: UsageSums;
  readonly spentTodayUsd?: number;
}
