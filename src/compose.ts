import { termProblems, createAccess, createAllowedModels } from "./assistant/access/access.ts";
import { createAssistant, type Assistant } from "./assistant/assistant.ts";
import { openGateway, type OpenedGateway } from "./compose-gateway.ts";
import {
  createConfiguredDashboard,
  metricsSourcesOf,
  openConfiguredTracer,
  readReadiness,
  readVersion,
} from "./compose-operations.ts";
import {
  part,
  type ComposeOptions,
  type LoadedPlatform,
  type PartOptions,
  type Parts,
} from "./compose-parts.ts";
import { toRunning } from "./compose-running.ts";
import { openConfiguredStore, withPlatformFiles } from "./compose-store.ts";
import { type Config, accessTerms } from "./config.ts";
import { createSealer } from "./conversations/encryption.ts";
import type { GatewayOutlook } from "./core/gateway.ts";
import type { CreatedPlatform, PlatformDependencies, PlatformModule } from "./core/platform-module.ts";
import { createHistory } from "./operations/dashboard/history.ts";
import { createRecentProblems } from "./operations/dashboard/recent-problems.ts";
import { startHttpServer } from "./operations/http-server.ts";
import { createMeter, createMetrics } from "./operations/metrics.ts";
import { openParts, type Part } from "./operations/open-parts.ts";
import { toStartLines, toTroubleLines } from "./start-lines.ts";
import { systemClock } from "./support/clock.ts";

/** A running Parley. */
export interface Parley {
  /** The address of the page, health and metrics. */
  readonly url: string;
  /** One line for the terminal on each part that is on or off, with the reason. */
  readonly lines: readonly string[];
  readonly assistant: Assistant;
  /**
   * Resolves when every platform that is on has connected, or was given up while another is left. Rejects
   * with the error of each if none is left.
   */
  readonly connected: Promise<void>;
  /** Resolves when it is known whether the gateway answers, or after a few seconds. It never rejects. */
  readonly checked: Promise<unknown>;
  /** Resolves when the store was emptied or replaced: stop then, and start anew with what is there. */
  readonly dataLost: Promise<void>;
  /** One line for the terminal on each part that does not work although the rest runs. */
  troubles(): readonly string[];
  /** One line for the terminal on each thing that an admin should set, as far as it is known. */
  advice(): readonly string[];
  /** Drains active turns within SHUTDOWN_TIMEOUT_MS, keeps the rest resumable, and closes everything. */
  stop(): Promise<void>;
}

/**
 * Builds Parley from its settings and starts it.
 * @throws ParleyError `config`, `platform-unauthorized` (a wrong token), `store-…` (it cannot be opened)
 */
export async function startParley(
  config: Config,
  {
    commands,
    log,
    gatewayConfig,
    openStore = openConfiguredStore,
    problems = createRecentProblems(),
    clock = systemClock,
  }: ComposeOptions,
): Promise<Parley> {
  const { promise: dataLost, resolve: onDataLost } = Promise.withResolvers<void>();
  const opened: Partial<Parts> = {};
  const close = await openParts(
    toParts({ config, commands, log, gatewayConfig, openStore, problems, clock, onDataLost }, opened),
    opened,
    log,
  );
  const { assistant, gateway, givenUp, links, readied } = opened as Parts;
  return {
    url: (opened as Parts).server.url,
    lines: toStartLines(config, opened as Parts),
    assistant,
    connected: links.connected,
    checked: readied.checked,
    dataLost,
    troubles: () => toTroubleLines(config, gateway, givenUp),
    advice: () => readied.advice,
    stop: close,
  };
}

/** Every part with what it needs. The order in which they open and close follows. */
function toParts(options: PartOptions, opened: Partial<Parts>): Part<Parts>[] {
  return [...toServices(options, opened), ...toRooms(options), ...toRunning(options)];
}

/** What others use. All that is slow opens at once: the store's first fsync, sockets, the SDKs' modules. */
function toServices(
  { config, log, gatewayConfig, openStore, clock, onDataLost }: PartOptions,
  opened: Partial<Parts>,
): Part<Parts>[] {
  return [
    part({ name: "version", needs: [], open: () => readVersion() }),
    // It is closed after all that is traced, as stopping is.
    part({
      name: "tracer",
      needs: ["version"],
      open: ({ version }) => openConfiguredTracer(config, version, log),
      close: (tracer) => tracer.close(),
    }),
    part({
      name: "metrics",
      needs: [],
      open: () =>
        createMetrics(
          () => (opened.links === undefined ? {} : metricsSourcesOf(opened as Parts)),
          () => clock.now(),
        ),
    }),
    part({ name: "meter", needs: ["metrics"], open: ({ metrics }) => createMeter(metrics.take, log) }),
    part({
      name: "store",
      needs: ["metrics"],
      open: ({ metrics }) => openStore(config, log, { meter: metrics.take, clock, onDataLost }),
      close: (store) => store.close(),
    }),
    part({
      name: "gateway",
      needs: ["tracer", "meter"],
      open: ({ tracer, meter }) =>
        openGateway(config, log, { gatewayConfig: gatewayConfig, tracer, meter, clock }),
      close: (gateway) => gateway.close(),
    }),
    part({ name: "modules", needs: [], open: () => loadPlatforms(config) }),
    part({
      name: "access",
      needs: [],
      open: () =>
        createAccess({
          rules: { allow: config.ALLOW, deny: config.DENY, admins: config.ADMINS },
          ownPlatforms: new Set(config.platforms.flatMap(({ module }) => (isOwn(module) ? [module.id] : []))),
        }),
    }),
    part({
      name: "history",
      needs: ["metrics", "store"],
      open: ({ metrics, store }) => createHistory({ metrics, records: store.records, clock, log }),
      close: (history) => history.close(),
    }),
  ];
}

/** The rooms of the house, which are created and do nothing yet. */
function toRooms({ config, commands, log, problems, clock }: PartOptions): Part<Parts>[] {
  return [
    part({
      name: "platforms",
      needs: ["modules", "meter", "gateway", "store"],
      open: ({ modules, meter, gateway, store: { claims, records } }) =>
        createPlatforms(modules, config, {
          commands,
          log,
          meter,
          outlook: toOutlook(gateway.watch),
          claims,
          records,
          clock,
        }),
    }),
    part({
      name: "assistant",
      needs: ["gateway", "store", "platforms", "access", "meter", "tracer"],
      open: ({ platforms, ...of }) => {
        const assistant = createAssistant({
          ...toAssistantOptions(config, of, platforms),
          commands,
          log,
          clock,
        });
        for (const { platform } of platforms) assistant.addPlatform(platform);
        return assistant;
      },
    }),
    part({ name: "givenUp", needs: [], open: () => new Map() }),
    part({
      name: "server",
      needs: ["version", "store", "gateway", "givenUp", "assistant", "platforms", "metrics", "history"],
      open: ({ metrics, history, ...parts }) =>
        startHttpServer({
          host: config.HOST,
          port: config.PORT,
          allowedHosts: [
            ...config.HTTP_HOSTS,
            ...parts.platforms.flatMap(({ allowedHosts }) => allowedHosts ?? []),
          ],
          signedPaths: parts.platforms.flatMap(({ signedPaths }) => signedPaths ?? []),
          metrics,
          clock,
          log,
          readiness: () => readReadiness(parts),
          handlers: [
            createConfiguredDashboard(config, parts, { metrics, history, problems, log }),
            ...parts.platforms.flatMap(({ handler }) => handler ?? []),
          ],
        }),
      close: (server) => server.close(),
    }),
  ];
}

/** What the assistant works with, by the settings. */
function toAssistantOptions(
  config: Config,
  { store, gateway, access, meter, tracer }: Pick<Parts, "store" | "gateway" | "access" | "meter" | "tracer">,
  platforms: readonly CreatedPlatform[],
): Omit<Parameters<typeof createAssistant>[0], "commands" | "log" | "clock"> {
  return {
    gateway: gateway.client,
    conversations: store.conversations,
    lists: store.lists,
    archive: withPlatformFiles(
      { ...store.erasure, exportConversation: (id) => store.exportConversation(id) },
      platforms,
    ),
    inbox: store.inbox,
    restored: store.restored,
    settings: store.settings,
    accessProblems: (terms) => termProblems(terms, accessTerms),
    queue: store.queue,
    access,
    spending: {
      ledger: store.spending,
      turnsPersonMinute: config.TURNS_PERSON_MINUTE,
      personDayUsd: config.BUDGET_PERSON_DAY_USD,
      personMonthUsd: config.BUDGET_PERSON_MONTH_USD,
      dayUsd: config.BUDGET_DAY_USD,
      monthUsd: config.BUDGET_MONTH_USD,
    },
    models: gateway.models,
    allowedModels: createAllowedModels(config.MODELS_ALLOWED),
    help: {
      allowedModels: config.MODELS_ALLOWED,
      admins: config.ADMINS,
      retentionDays: config.RETENTION_DAYS > 0 ? config.RETENTION_DAYS : undefined,
    },
    chat: {
      maxTokens: config.CHAT_MAX_TOKENS,
      temperature: config.CHAT_TEMPERATURE,
      systemPrompt: config.SYSTEM_PROMPT ?? `${identity} ${defaultStyle}`,
      identity: config.SYSTEM_PROMPT ?? identity,
    },
    hasMemory: config.MEMORY === "on",
    room: { maxMessages: config.ROOM_MESSAGES, maxChars: config.ROOM_CHARS },
    limits: {
      calls: config.GATEWAY_CONCURRENCY,
      callsPerPerson: config.GATEWAY_CONCURRENCY_PERSON,
    },
    meter,
    tracer,
  };
}

const identity = "You are Parley, an assistant in a team's chat.";
/** The part of the prompt that a `system-prompt` of `/settings` replaces. */
const defaultStyle =
  "Answer in the language you are asked in, plainly and to the point. Use Markdown where it helps.";

const dayMs = 24 * 60 * 60 * 1000;

/** Imports only the platforms that are on, because an SDK costs start time and memory. */
async function loadPlatforms(config: Config): Promise<LoadedPlatform[]> {
  const on = config.platforms.filter(({ isOn }) => isOn);
  return Promise.all(on.map(async (platform) => ({ ...platform, ...(await platform.module.load()) })));
}

function createPlatforms(
  loaded: readonly LoadedPlatform[],
  config: Config,
  {
    outlook,
    ...shared
  }: Pick<PlatformDependencies, "commands" | "log" | "meter" | "claims" | "records" | "clock"> & {
    readonly outlook: GatewayOutlook;
  },
): CreatedPlatform[] {
  const gateway = {
    outlook,
    name: config.GATEWAY_BASE_URL ?? "embedded gateway",
    isSandbox: config.isGatewayEmbedded && config.GATEWAY_CONFIG === undefined,
  };
  const sealer = createSealer(config.STORE_ENCRYPTION_KEYS);
  return loaded.map(({ module, values, create }) =>
    create(values, {
      ...shared,
      log: shared.log.child({ platform: module.id }),
      dataDir: config.dataDir,
      sealer,
      retentionMs: config.RETENTION_DAYS > 0 ? config.RETENTION_DAYS * dayMs : undefined,
      host: config.HOST,
      gateway,
    }),
  );
}

/** Translates the gateway's state for pages. */
function toOutlook(watch: OpenedGateway["watch"]): GatewayOutlook {
  return {
    trouble: () => watch.trouble()?.error,
    onChange: (listener) => watch.onChange(() => listener()),
    look: () => void watch.state(),
  };
}

/** Whether only the operator reaches a platform, because access rules cannot list anybody there. */
function isOwn({ accessTerms, isOperatorsOwn }: PlatformModule): boolean {
  return isOperatorsOwn === true || Object.keys(accessTerms).length === 0;
}
