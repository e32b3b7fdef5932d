import { hostname } from "node:os";
import type { SpendingLedger, Spent, UsageRow } from "../../core/spending.ts";
import { createUsageGroups, sumUsage, type UsageGroup, type UsageSum } from "../../core/usage.ts";
import { inPieces } from "../../support/pieces.ts";
import { addUtcDays, toUtcDay, inTime } from "../../support/clock.ts";
import type { GatewayState } from "../gateway-watch.ts";
import type { Readiness, PartReadiness } from "../http-server.ts";
import type { DeliveryWaiting, Load, Metrics, PlatformConnection } from "../metrics.ts";
import type { Counted, History, Minute } from "./history.ts";
import type { Problem, RecentProblems } from "./recent-problems.ts";
import type { ErrorCode } from "../../core/errors.ts";
import { translate, currentLanguage } from "../../words/translate.ts";

/** Where the dashboard reads from. These sources hold nothing that people wrote. */
interface DashboardSources {
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
  /** Returns the usage of all instances. Days are `YYYY-MM-DD`, UTC, both included. */
  readonly usage: (query: { fromDay: string; toDay: string }) => Promise<readonly UsageRow[]>;
  readonly budgets: { readonly dayUsd: number | undefined; readonly personDayUsd: number | undefined };
  /** Returns what everybody together has spent today. */
  readonly spentToday: () => Promise<Spent>;
  /** Returns who has spent most today, as budgets count it. */
  readonly highestSpender: () => ReturnType<SpendingLedger["highestSpender"]>;
  readonly metrics: Pick<Metrics, "read">;
  readonly history: Pick<History, "minutes" | "day">;
  readonly problems: RecentProblems;
  /** Returns the names of people and channels, by their ids. */
  readonly names: Names;
  /** Returns the disk that the store is on, or `undefined` where it is another machine's. */
  readonly disk: () => Promise<{ readonly usedBytes: number; readonly totalBytes: number } | undefined>;
  /** The setting `GATEWAY_CONCURRENCY`. */
  readonly maxCalls: number;
  /** Unix ms. */
  readonly now: () => number;
}

/** What `/admin/data` serves as JSON. Load is this process's, usage and budgets are all instances'. */
export interface DashboardData {
  readonly version: string;
  readonly node: string;
  /** The name of the machine and the number of the process. */
  readonly instance: string;
  /** ISO 8601. */
  readonly startedAt: string;
  /** ISO 8601. */
  readonly time: string;
  readonly status: Readiness["status"];
  /** What is wrong and what to do, worst first, in the request's language. It is empty where all is well. */
  readonly findings: readonly Finding[];
  /** How much of each limited resource is used. */
  readonly full: readonly Fullness[];
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
  /** The last hour, oldest first. */
  readonly minutes: readonly Minute[];
  /** Today (UTC), including earlier processes. */
  readonly day: Counted;
  /** Calls that wait now for room under a platform's limits. */
  readonly deliveryWaiting: readonly DeliveryWaiting[];
  readonly budgets: {
    readonly dayUsd?: number;
    readonly personDayUsd?: number;
    /** `undefined` where the store cannot be read. */
    readonly spentTodayUsd?: number;
  };
  /** The usage of the last 30 days, or `undefined` where the store cannot be read. */
  readonly usage?: UsageSums;
  /** The names of the people and channels in `usage`, by their ids, as far as they are known. */
  readonly names: Readonly<Record<string, string>>;
  readonly problems: readonly (Problem & { readonly remedy?: string })[];
}

/** One platform that is on, with what was counted since the start. */
interface DashboardPlatform {
  readonly id: string;
  /** When its last event was accepted, in Unix ms. */
  readonly lastEventAt?: number;
  readonly reconnects: number;
  /** The calls that it refused as too many. */
  readonly limited: number;
  readonly connections: readonly { readonly name: string; readonly isReady: boolean }[];
}

const usageDays = 30;
const maxGatewayErrors = 10;
/** With this many waiting, platforms refuse new turns as busy. */
const maxDeliveryWaiting = 500;
/** The sums of a month are not read anew for each page that looks. */
const usageForMs = 15_000;

const lastEvent = "parley_last_event_timestamp_seconds";
const reconnects = "parley_platform_reconnects_total";
const limited = "parley_platform_limited_total";

/** Reads what the dashboard shows. It never rejects. `parts` says why something cannot be read. */
export function createDashboardData(sources: DashboardSources): () => Promise<DashboardData> {
  const { history, metrics, now } = sources;
  const startedAt = now();
  let known: { readonly at: number; readonly value: Promise<Figures> } | undefined;

  const readFigures = async (): Promise<Figures> => {
    const today = toUtcDay(now());
    const [rows, spentToday, topSpender] = await Promise.all([
      sources.usage({ fromDay: addUtcDays(today, 1 - usageDays), toDay: today }),
      sources.spentToday(),
      sources.highestSpender(),
    ]);
    return { usage: await toUsageSums(rows), spentToday, topSpender };
  };
  const figures = (): Promise<Figures> => {
    if (known === undefined || now() - known.at > usageForMs)
      known = { at: now(), value: readFigures().catch(() => ({})) };
    return known.value;
  };

  return async () => {
    const [readiness, known, bytes, disk, minutes, day, activity] = await Promise.all([
      sources.readiness(),
      figures(),
      sources.store.sizeBytes(),
      sources.disk(),
      history.minutes(),
      history.day(),
      metrics.read([lastEvent, reconnects, limited]),
    ]);
    const activityOf = (name: string, platform: string): number =>
      sum(
        activity.flatMap((one) =>
          one.name === name && one.labels["platform"] === platform ? one.value : [],
        ),
      );
    const { usage, spentToday } = known;
    const names = await sources.names([
      ...[...(usage?.people ?? []), ...(usage?.places ?? [])].map(({ key }) => key),
      ...(known.topSpender === undefined ? [] : [known.topSpender.personId]),
    ]);
    const full = toFullness(sources, { ...known, bytes, disk, names });
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
      findings: toFindings({
        parts: readiness.parts,
        gateway: sources.gateway.state(),
        turns: sum(minutes.map(({ turns }) => turns)),
        failed: sum(minutes.map(({ failed }) => failed)),
        full,
      }),
      full,
      parts: readiness.parts,
      platforms: [...connections].map(([id, each]) => ({
        id,
        connections: each.map(({ connection, isReady }) => ({ name: connection, isReady })),
        ...(activityOf(lastEvent, id) === 0 ? {} : { lastEventAt: activityOf(lastEvent, id) * 1000 }),
        reconnects: activityOf(reconnects, id),
        limited: activityOf(limited, id),
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
      minutes,
      day,
      deliveryWaiting: sources.deliveryWaiting(),
      budgets: {
        ...(dayUsd === undefined ? {} : { dayUsd }),
        ...(personDayUsd === undefined ? {} : { personDayUsd }),
        ...(spentToday === undefined ? {} : { spentTodayUsd: spentToday.spentUsd }),
      },
      ...(usage === undefined ? {} : { usage }),
      names,
      problems: problems.map((problem) => {
        const remedy = remedyOf(problem.code);
        return remedy === undefined ? problem : { ...problem, remedy };
      }),
    };
  };
}

interface Figures {
  readonly usage?: UsageSums;
  readonly spentToday?: Spent;
  readonly topSpender?: Awaited<ReturnType<SpendingLedger["highestSpender"]>>;
}

function usedOf(spent: Spent | undefined): Pick<Fullness, "used" | "isEstimated"> {
  return { used: spent?.spentUsd ?? 0, ...(spent?.isEstimated === true ? { isEstimated: true } : {}) };
}

/** Returns how much of each limited resource is used, now and today. */
function toFullness(
  { budgets, deliveryWaiting, load, maxCalls }: DashboardSources,
  facts: Figures & {
    readonly bytes: number | undefined;
    readonly disk: Awaited<ReturnType<DashboardSources["disk"]>>;
    readonly names: Readonly<Record<string, string>>;
  },
): Fullness[] {
  const { spentToday, topSpender, bytes, disk, names } = facts;
  const { dayUsd, personDayUsd } = budgets;
  const { turns, gatewayCalls } = load();
  const waiting = Map.groupBy(deliveryWaiting(), ({ platform }) => platform);
  return [
    ...(dayUsd === undefined || spentToday === undefined
      ? []
      : [{ kind: "budget", ...usedOf(spentToday), limit: dayUsd, unit: "usd" } as const]),
    ...(personDayUsd === undefined
      ? []
      : [
          {
            kind: "person-budget",
            ...(topSpender === undefined ? {} : { name: names[topSpender.personId] ?? topSpender.personId }),
            ...usedOf(topSpender),
            limit: personDayUsd,
            unit: "usd",
          } as const,
        ]),
    ...(disk === undefined
      ? []
      : [{ kind: "disk", used: disk.usedBytes, limit: disk.totalBytes, unit: "bytes" } as const]),
    ...(bytes === undefined ? [] : [{ kind: "store", used: bytes, unit: "bytes" } as const]),
    { kind: "calls", used: gatewayCalls.running, limit: maxCalls, unit: "count" },
    { kind: "turns", used: turns.waiting, unit: "count" },
    ...[...waiting].map(
      ([name, calls]) =>
        ({
          kind: "delivery",
          name,
          used: sum(calls.map(({ count }) => count)),
          limit: maxDeliveryWaiting,
          unit: "count",
        }) as const,
    ),
  ];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Usage by each of its labels, with the most calls first. Days are in their order. */
interface UsageSums {
  readonly total: UsageSum;
  readonly days: readonly UsageGroup[];
  readonly models: readonly UsageGroup[];
  readonly operations: readonly UsageGroup[];
  readonly platforms: readonly UsageGroup[];
  readonly places: readonly UsageGroup[];
  readonly people: readonly UsageGroup[];
}

const maxNames = 20;

/** Sums up rows, with at most 20 names of each label but the day. Others have their turns meanwhile. */
export async function toUsageSums(rows: readonly UsageRow[]): Promise<UsageSums> {
  const days = createUsageGroups("day");
  const models = createUsageGroups("model");
  const operations = createUsageGroups("operation");
  const platforms = createUsageGroups("person");
  const places = createUsageGroups("channel");
  const people = createUsageGroups("person");
  for await (const some of inPieces(rows)) {
    for (const groups of [days, models, operations, places, people]) groups.add(some);
    platforms.add(some.map((row) => ({ ...row, personId: row.personId.split(":", 1)[0] ?? "" })));
  }
  const ofDays = days.sorted();
  return {
    total: sumUsage(ofDays),
    days: ofDays,
    models: toBusiest(models.sorted()),
    operations: toBusiest(operations.sorted()),
    platforms: toBusiest(platforms.sorted()),
    // Direct messages and the page are in no place.
    places: toBusiest(places.sorted().filter(({ key }) => key !== "")),
    people: toBusiest(people.sorted()),
  };
}

function toBusiest(groups: readonly UsageGroup[]): UsageGroup[] {
  return groups.toSorted((a, b) => b.calls - a.calls).slice(0, maxNames);
}

/** Something that an operator should know, in the language of the person. */
interface Finding {
  /** `wrong`: messages are not taken. `warning`: people notice it, or soon will. */
  readonly level: "warning" | "wrong";
  readonly text: string;
  /** What the operator should do. */
  readonly remedy: string;
}

/** The facts that findings are made from. */
export interface FindingFacts {
  readonly parts: Readiness["parts"];
  readonly gateway: GatewayState;
  /** The turns of the last hour. */
  readonly turns: number;
  readonly failed: number;
  readonly full: readonly Fullness[];
}

/** Something that can be used up. */
interface Fullness {
  readonly kind: "budget" | "person-budget" | "disk" | "calls" | "delivery" | "turns" | "store";
  /** Names who or what has it, where there are several. */
  readonly name?: string;
  readonly used: number;
  /** Whether a part of `used` is estimated. */
  readonly isEstimated?: true;
  /** Absent where there is no limit. */
  readonly limit?: number;
  readonly unit: "usd" | "bytes" | "count";
}

/** Fewer failures are no rate. */
const minFailed = 2;
const failedShare = 0.1;
const nearlyFull = 0.9;

/** Returns what is wrong, worst first. It is empty where all is well. */
export function toFindings({ parts, gateway, turns, failed, full }: FindingFacts): Finding[] {
  const found = Object.entries(parts).flatMap(([name, part]) => partFinding(name, part, gateway) ?? []);
  // The trouble of the gateway is why they fail.
  const isExplained = parts["gateway"]?.status === "degraded";
  if (!isExplained && failed >= minFailed && failed >= failedShare * turns)
    found.push({
      level: "warning",
      text: translate("dashboard.failing", { failed, turns }),
      remedy: translate("dashboard.failing.remedy"),
    });
  for (const { kind, used, limit, name = "" } of full) {
    if (limit === undefined || used < nearlyFull * limit) continue;
    const percent = limit === 0 ? 100 : Math.floor(Math.min(1, used / limit) * 100);
    const remedy = remedyOfFull(kind);
    if (remedy === undefined) continue;
    const text =
      kind === "delivery"
        ? translate("dashboard.nearly-full.delivery", { percent, name })
        : translate(kind === "disk" ? "dashboard.nearly-full.disk" : "dashboard.nearly-full.budget", {
            percent,
          });
    found.push({ level: "warning", text, remedy });
  }
  return found.toSorted((a, b) => Number(b.level === "wrong") - Number(a.level === "wrong"));
}

/** Returns `undefined` where it is soon free again, or concerns one person. */
function remedyOfFull(kind: Fullness["kind"]): string | undefined {
  switch (kind) {
    case "budget":
    case "disk":
    case "delivery":
      return translate(`dashboard.nearly-full.${kind}.remedy`);
    default:
      return undefined;
  }
}

function partFinding(name: string, part: PartReadiness, gateway: GatewayState): Finding | undefined {
  if (part.status === "ready") return undefined;
  const level = part.status === "not-ready" ? "wrong" : "warning";
  if (name === "store")
    return { level, text: translate("dashboard.store-down"), remedy: translate("dashboard.remedy.store") };
  if (name === "gateway") {
    const kind = gateway === "ready" || gateway === "unknown" ? "failing" : gateway;
    return {
      level,
      text: translate(`dashboard.gateway.${kind}`),
      remedy: translate(`dashboard.remedy.${gatewayRemedies[kind]}`),
    };
  }
  const isRefused = part.state === "failed";
  return {
    level,
    text: translate(isRefused ? "dashboard.platform-refused" : "dashboard.platform-down", { name }),
    remedy: translate(isRefused ? "dashboard.remedy.token" : "dashboard.remedy.platform"),
  };
}

const gatewayRemedies = {
  unreachable: "reach",
  "key-refused": "key",
  "web-page": "address",
  redirects: "address",
  "no-model": "model",
  unpaid: "pay",
  failing: "gateway",
  busy: "busy",
} as const satisfies Record<Exclude<GatewayState, "ready" | "unknown">, string>;

/** What an operator does about an error. The other errors are the person's to change. */
const remedies = {
  config: "dashboard.remedy.settings",
  busy: "dashboard.remedy.busy-here",
  "over-budget": "dashboard.remedy.budget",
  internal: "dashboard.remedy.report",
  "store-unavailable": "dashboard.remedy.store",
  "store-corrupt": "dashboard.remedy.backup",
  "store-newer": "dashboard.remedy.update",
  "gateway-unreachable": "dashboard.remedy.reach",
  "gateway-unauthorized": "dashboard.remedy.key",
  "gateway-payment": "dashboard.remedy.pay",
  "gateway-rate-limited": "dashboard.remedy.busy",
  "gateway-unknown-model": "dashboard.remedy.model",
  "gateway-bad-answer": "dashboard.remedy.address",
  "gateway-bad-request": "dashboard.remedy.gateway",
  "gateway-error": "dashboard.remedy.gateway",
  "gateway-interrupted": "dashboard.remedy.gateway",
  "gateway-empty-answer": "dashboard.remedy.gateway",
  "gateway-timeout": "dashboard.remedy.slow",
  "platform-unauthorized": "dashboard.remedy.token",
  "platform-forbidden": "dashboard.remedy.permission",
  "platform-unreachable": "dashboard.remedy.platform",
  "platform-rejected": "dashboard.remedy.report",
} as const satisfies Partial<Record<ErrorCode, string>>;

/** Returns what an operator does about a problem with this code, if known, in the person's language. */
export function remedyOf(code: string | undefined): string | undefined {
  return code !== undefined && Object.hasOwn(remedies, code)
    ? translate(remedies[code as keyof typeof remedies])
    : undefined;
}

/** Returns names of people and channels, by their ids, without those that are unknown. */
export type Names = (ids: readonly string[]) => Promise<Readonly<Record<string, string>>>;

/** How long a name is kept, in milliseconds. That nothing is known is kept too. */
const keptMs = 600_000;
/** A slow platform must not hold up the page. Its names come with the next reading. */
const maxWaitMs = 500;
const maxKept = 500;

/** Asks for unknown names, each once in ten minutes. @param nameOf must not reject */
export function createNames(
  nameOf: (id: string) => Promise<string | undefined>,
  { now }: { readonly now: () => number },
): Names {
  const known = new Map<string, { readonly at: number; name: string | undefined; asked: Promise<void> }>();

  const ask = (id: string, key: string) => {
    const entry = { at: now(), name: undefined as string | undefined, asked: Promise.resolve() };
    entry.asked = nameOf(id).then((name) => {
      entry.name = name;
    });
    known.set(key, entry);
    for (const oldest of known.keys()) {
      if (known.size <= maxKept) break;
      known.delete(oldest);
    }
    return entry;
  };

  return async (ids) => {
    const wanted = [...new Set(ids)].map((id) => {
      // The shared page is named in the language of the person.
      const key = `${currentLanguage()} ${id}`;
      const entry = known.get(key);
      return { id, entry: entry !== undefined && now() - entry.at < keptMs ? entry : ask(id, key) };
    });
    await inTime(Promise.all(wanted.map(({ entry }) => entry.asked)), maxWaitMs);
    return Object.fromEntries(
      wanted.flatMap(({ id, entry }) => (entry.name === undefined ? [] : [[id, entry.name] as const])),
    );
  };
}
