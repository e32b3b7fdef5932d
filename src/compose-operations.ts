import { readFile, statfs } from "node:fs/promises";
import type { Assistant } from "./assistant/assistant.ts";
import type { Config } from "./config.ts";
import { type ParleyError } from "./core/errors.ts";
import type { Store } from "./conversations/open-store.ts";
import type { GatewayTrouble } from "./core/gateway.ts";
import type { PlatformHealth } from "./core/platform.ts";
import type { CreatedPlatform, HttpHandler } from "./core/platform-module.ts";
import { noTracer, type Log, type Tracer } from "./core/telemetry.ts";
import type { OpenedGateway } from "./compose-gateway.ts";
import { createDashboard } from "./operations/dashboard/dashboard.ts";
import { createDashboardData, createNames } from "./operations/dashboard/dashboard-data.ts";
import type { History } from "./operations/dashboard/history.ts";
import type { RecentProblems } from "./operations/dashboard/recent-problems.ts";
import {
  type HttpServer,
  toReadiness,
  type PartReadiness,
  type Readiness,
} from "./operations/http-server.ts";
import type { DeliveryWaiting, Metrics, MetricsSources, PlatformConnection } from "./operations/metrics.ts";
import { createClientAddress } from "./support/http/client-address.ts";
import { systemClock } from "./support/clock.ts";

/** The parts of a running Parley that are looked at. */
export interface RunningParts {
  readonly version: string;
  readonly store: Store;
  readonly gateway: Pick<OpenedGateway, "watch" | "describe">;
  readonly platforms: readonly CreatedPlatform[];
  /** The errors that ended a platform's connection for good, by platform id. Only another setting helps. */
  readonly givenUp: ReadonlyMap<string, ParleyError>;
  readonly assistant: Assistant;
}

/** Parley's version in `package.json`. */
export async function readVersion(): Promise<string> {
  const text = await readFile(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { readonly version: string }).version;
}

/** Opens tracing if a collector is set, and loads OpenTelemetry's packages only then. */
export async function openConfiguredTracer(
  config: Config,
  version: string,
  log: Log,
): Promise<Tracer & { close(): Promise<void> }> {
  const endpoint = config.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined) return { ...noTracer, close: () => Promise.resolve() };
  const { openTracer } = await import("./operations/tracing.ts");
  return await openTracer({
    url: `${endpoint.replace(/(?<!\/)\/+$/, "")}/v1/traces`,
    protocol: config.OTEL_EXPORTER_OTLP_PROTOCOL,
    headers: Object.fromEntries(config.OTEL_EXPORTER_OTLP_HEADERS.map((pair) => splitPair(pair))),
    serviceName: config.OTEL_SERVICE_NAME,
    sampler: config.OTEL_TRACES_SAMPLER,
    share: config.OTEL_TRACES_SAMPLER_ARG,
    version,
    log: log.child({ part: "tracing" }),
  });
}

/**
 * The answer of `/readyz`. A store or platform that is not ready gives 503, because no messages would be
 * accepted. A gateway that is not ready only degrades it, because messages are still accepted and people are
 * told. So does a platform that refuses its token while others run.
 */
export async function readReadiness(parts: RunningParts): Promise<Readiness> {
  const { store, gateway, platforms, givenUp, version } = parts;
  const [problems, gatewayState] = await Promise.all([store.findProblems(), gateway.watch.state()]);
  return toReadiness(version, {
    store: {
      status: problems.length === 0 ? "ready" : "not-ready",
      ...(problems.length === 0 ? {} : { problems }),
    },
    gateway: toGatewayPart(gatewayState, gateway.watch.trouble()),
    ...Object.fromEntries(
      platforms.map(({ platform }) => [
        platform.id,
        toPlatformPart(platform.health(), givenUp.get(platform.id)),
      ]),
    ),
  });
}

function toGatewayPart(
  state: Awaited<ReturnType<OpenedGateway["watch"]["state"]>>,
  trouble: GatewayTrouble | undefined,
): PartReadiness {
  return trouble === undefined
    ? { status: "ready", state }
    : { status: "degraded", state: trouble.kind, problems: [`${trouble.text}: people are told so`] };
}

/** Whether a platform accepts messages. Some of several connections may be lost for a moment. */
export function isServing({ state, connections = [] }: PlatformHealth): boolean {
  return state === "ready" || (state === "connecting" && connections.some((one) => one.state === "ready"));
}

function toPlatformPart(health: PlatformHealth, givenUp: ParleyError | undefined): PartReadiness {
  const { state, detail } = health;
  // A restart would not help and would only interrupt the other parts.
  if (givenUp !== undefined) return { status: "degraded", state, problems: [givenUp.message] };
  if (state !== "ready" && isServing(health))
    return { status: "degraded", state, ...(detail === undefined ? {} : { problems: [detail] }) };
  if (state === "ready")
    return { status: "ready", state, ...(detail === undefined ? {} : { warnings: [detail] }) };
  return { status: "not-ready", state, ...(detail === undefined ? {} : { problems: [detail] }) };
}

/** The sources that `/metrics` reads on each request. */
export function metricsSourcesOf(
  parts: RunningParts & { readonly server: Pick<HttpServer, "connections"> },
): MetricsSources {
  const { store, version, platforms, assistant, server } = parts;
  return {
    version,
    countWrites: () => store.writes(),
    storeBytes: () => store.sizeBytes(),
    deliveryWaiting: () => platforms.flatMap((platform) => waitingCalls(platform)),
    connections: () => platforms.flatMap((platform) => connectionsOf(platform)),
    async partsReady() {
      const readiness = await readReadiness(parts);
      return Object.fromEntries(
        Object.entries(readiness.parts).map(([part, { status }]) => [part, status === "ready"]),
      );
    },
    httpConnections: () => server.connections(),
    load: () => assistant.load(),
  };
}

/** The disk of a store that is a file. */
async function diskOf({ STORE_URL, dataDir }: Config) {
  if (!STORE_URL.startsWith("sqlite:")) return undefined;
  try {
    const { blocks, bfree, bavail, bsize } = await statfs(dataDir);
    // Space that is reserved for the system is neither used nor free.
    const usedBytes = (blocks - bfree) * bsize;
    return { usedBytes, totalBytes: usedBytes + bavail * bsize };
  } catch {
    // Not every file system reports its size.
    return undefined;
  }
}

/** Creates the dashboard at `/admin`. */
export function createConfiguredDashboard(
  config: Config,
  parts: RunningParts,
  of: {
    readonly log: Log;
    readonly metrics: Metrics;
    readonly history: History;
    readonly problems: RecentProblems;
  },
): HttpHandler {
  const { store, gateway, version, platforms, assistant } = parts;
  const { PAGE_TRUSTED_PROXIES: proxies = [] } = Object.assign(
    {},
    ...config.platforms.map(({ values }) => values),
  ) as { readonly PAGE_TRUSTED_PROXIES?: readonly string[] };
  return createDashboard({
    password: config.ADMIN_PASSWORD,
    addressOf: createClientAddress(proxies),
    log: of.log,
    read: createDashboardData({
      ...of,
      version,
      readiness: () => readReadiness(parts),
      connections: () => platforms.flatMap((platform) => connectionsOf(platform)),
      deliveryWaiting: () => platforms.flatMap((platform) => waitingCalls(platform)),
      load: () => assistant.load(),
      gateway: { description: gateway.describe(), state: () => gateway.watch.known() },
      store,
      usage: (query) => store.spending.usage(query),
      spentToday: () => store.spending.spent({ kind: "deployment" }, systemClock.now()),
      highestSpender: () => store.spending.highestSpender(systemClock.now()),
      budgets: { dayUsd: config.BUDGET_DAY_USD, personDayUsd: config.BUDGET_PERSON_DAY_USD },
      names: createNames(
        async (id) => platforms.find(({ platform }) => id.startsWith(`${platform.id}:`))?.platform.nameOf(id),
        { now: () => systemClock.now() },
      ),
      disk: () => diskOf(config),
      maxCalls: config.GATEWAY_CONCURRENCY,
      now: () => systemClock.now(),
    }),
  });
}

function waitingCalls({ platform }: CreatedPlatform): DeliveryWaiting[] {
  return (platform.delivery?.waiting() ?? []).map((waiting) => ({ platform: platform.id, ...waiting }));
}

function connectionsOf({ platform }: CreatedPlatform): PlatformConnection[] {
  const { state, connections = [{ name: "all", state }] } = platform.health();
  return connections.map((connection) => ({
    platform: platform.id,
    connection: connection.name,
    isReady: connection.state === "ready",
  }));
}

function splitPair(pair: string): readonly [string, string] {
  const mark = pair.indexOf("=");
  return [pair.slice(0, mark).trim(), decodeURIComponent(pair.slice(mark + 1).trim())];
}
