import type { createAccess } from "./assistant/access/access.ts";
import type { openGateway, OpenedGateway } from "./compose-gateway.ts";
import type { openConfiguredTracer, RunningParts } from "./compose-operations.ts";
import type { openConfiguredStore } from "./compose-store.ts";
import type { Config, ConfiguredPlatform } from "./config.ts";
import type { Clock } from "./core/clock.ts";
import type { ParleyError } from "./core/errors.ts";
import type { PlatformDependencies, PlatformModule } from "./core/platform-module.ts";
import type { Log, Meter } from "./core/telemetry.ts";
import type { History } from "./operations/dashboard/history.ts";
import type { RecentProblems } from "./operations/dashboard/recent-problems.ts";
import type { HttpServer } from "./operations/http-server.ts";
import type { Metrics } from "./operations/metrics.ts";
import { definePartsOf } from "./operations/open-parts.ts";

/** The parts of a running Parley. */
export interface Parts extends RunningParts {
  readonly tracer: Awaited<ReturnType<typeof openConfiguredTracer>>;
  readonly metrics: Metrics;
  readonly meter: Meter;
  readonly gateway: OpenedGateway;
  readonly modules: readonly LoadedPlatform[];
  readonly history: History;
  readonly access: ReturnType<typeof createAccess>;
  readonly givenUp: Map<string, ParleyError>;
  readonly server: HttpServer;
  readonly links: { readonly connected: Promise<void>; stop(): Promise<void> };
  /** Ends the rounds that take up open turns. */
  readonly recovery: () => void;
  /** Ends the watch over the gateway. */
  readonly watch: () => void;
  readonly readied: { readonly checked: Promise<unknown>; readonly advice: readonly string[] };
}

/** Declares a part. */
export const part = definePartsOf<Parts>();

/** A platform that is on and imported, but not created yet. */
export interface LoadedPlatform extends ConfiguredPlatform {
  readonly create: Awaited<ReturnType<PlatformModule["load"]>>["create"];
}

export interface ComposeOptions {
  /** Opens the store, by default the one in the settings. */
  readonly openStore?: typeof openConfiguredStore;
  readonly commands: PlatformDependencies["commands"];
  readonly log: Log;
  /** The settings of the embedded gateway. Without them only its sandbox runs. */
  readonly gatewayConfig?: Parameters<typeof openGateway>[2]["gatewayConfig"];
  /** The latest log entries for the dashboard. Default: none. */
  readonly problems?: RecentProblems;
  /** Default: the time of this process. */
  readonly clock?: Clock;
}

/** What the parts are made from. */
export type PartOptions = Required<Omit<ComposeOptions, "gatewayConfig">> &
  Pick<ComposeOptions, "gatewayConfig"> & { readonly config: Config; readonly onDataLost: () => void };
