import { termProblems, createAccess, createAllowedModels } from "./assistant/access/access.ts";
import { createAssistant, type Assistant } from "./assistant/assistant.ts";
import { openGateway, type OpenedGateway, unpricedLine } from "./compose-gateway.ts";
import { createHistory } from "./operations/dashboard/history.ts";
import {
  createConfiguredDashboard,
  isServing,
  metricsSourcesOf,
  openConfiguredTracer,
  readReadiness,
  readVersion,
  type RunningParts,
} from "./compose-operations.ts";
import { type Config, accessTerms, type ConfiguredPlatform } from "./config.ts";
import { createSealer } from "./conversations/encryption.ts";
import type { Store, StoreOptions } from "./conversations/open-store.ts";
import type { Clock } from "./core/clock.ts";
import { isParleyError, ParleyError } from "./core/errors.ts";
import type { Gateway, GatewayOutlook } from "./core/gateway.ts";
import type { CreatedPlatform, PlatformDependencies, PlatformModule } from "./core/platform-module.ts";
import type { Archive } from "./core/storage.ts";
import type { Log } from "./core/telemetry.ts";
import { createRecentProblems, type RecentProblems } from "./operations/dashboard/recent-problems.ts";
import { startHttpServer, type HttpServer } from "./operations/http-server.ts";
import { keepConnected, type Link } from "./operations/keep-connected.ts";
import { createMeter, createMetrics } from "./operations/metrics.ts";
import { createResourceStack } from "./operations/resource-stack.ts";
import { systemClock, inTime } from "./support/clock.ts";
import { adoptedProxies, describeProxies } from "./support/proxy.ts";

/** How often turns that an outage left open are resumed, in milliseconds. */
const recoverEveryMs = 60_000;
/** How long the first request to the gateway waits for the platforms, and the start for that request. */
const maxStartWaitMs = 5000;
const dayMs = 24 * 60 * 60 * 1000;

/** Several instances recover more often, so that turns of a dead one resume soon after its leases end. */
function recoveryIntervalOf(store: Store, config: Config): number {
  return store.queue.isShared ? Math.min(15_000, Math.ceil(config.STORE_LEASE_MS / 3)) : recoverEveryMs;
}

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

interface ComposeOptions {
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
  const resources = createResourceStack(log);
  const { promise: dataLost, resolve: onDataLost } = Promise.withResolvers<void>();
  try {
    const version = await readVersion();
    // The tracer is closed last, because stopping is traced too.
    const tracer = await resources.add("tracer", openConfiguredTracer(config, version, log), (opened) =>
      opened.close(),
    );
    const metrics = createMetrics(
      () => metricsSourcesOf(parts),
      () => clock.now(),
    );
    const meter = createMeter(metrics.take, log);
    // Everything slow runs in parallel: the store's first fsync, the gateway's socket, the SDKs' modules.
    const [store, gateway, loaded] = await Promise.all([
      // Only the metrics count what the store does.
      resources.add("store", openStore(config, log, { meter: metrics.take, clock, onDataLost }), (opened) =>
        opened.close(),
      ),
      resources.add("gateway", openGateway(config, log, { gatewayConfig, tracer, meter, clock }), (opened) =>
        opened.close(),
      ),
      loadPlatforms(config),
    ]);
    let server: HttpServer | undefined;
    const givenUp = new Map<string, ParleyError>();
    const parts: RunningParts = {
      version,
      store,
      gateway,
      platforms: () => platforms,
      givenUp: () => givenUp,
      assistant: () => assistant,
      server: () => server,
    };
    const history = createHistory({ metrics, records: store.records, clock, log });
    await resources.add("history", Promise.resolve(history), (opened) => opened.close());
    const access = createAccess({
      rules: { allow: config.ALLOW, deny: config.DENY, admins: config.ADMINS },
      ownPlatforms: new Set(config.platforms.flatMap(({ module }) => (isOwn(module) ? [module.id] : []))),
    });
    const platforms = createPlatforms(loaded, config, {
      commands,
      log,
      meter,
      outlook: toOutlook(gateway.watch),
      claims: store.claims,
      records: store.records,
      clock,
    });
    const assistant = createAssistant({
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
      commands,
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
      log,
      meter,
      tracer,
      clock,
    });
    for (const { platform } of platforms) assistant.addPlatform(platform);
    const listening = await resources.add(
      "server",
      startHttpServer({
        host: config.HOST,
        port: config.PORT,
        allowedHosts: [...config.HTTP_HOSTS, ...platforms.flatMap(({ allowedHosts }) => allowedHosts ?? [])],
        signedPaths: platforms.flatMap(({ signedPaths }) => signedPaths ?? []),
        metrics,
        clock,
        log,
        readiness: () => readReadiness(parts),
        handlers: [
          createConfiguredDashboard(config, parts, { metrics, history, problems, log }),
          ...platforms.flatMap(({ handler }) => handler ?? []),
        ],
      }),
      (opened) => opened.close(),
    );
    server = listening;
    const links = platforms.map(({ platform }) =>
      keepConnected(platform, {
        assistant,
        history: assistant.history,
        log,
        clock,
        meter,
        onConnected: () => recover(assistant, platform, log),
      }),
    );
    const connected = whenConnected(links, (index, error) => {
      const id = platforms[index]?.platform.id ?? "";
      givenUp.set(id, error);
      log.error({ platform: id, err: error }, "platform given up; the other parts run without it");
    });
    const stopRecovering = clock.every(recoveryIntervalOf(store, config), () => {
      for (const { platform } of platforms) {
        if (isServing(platform.health())) void recover(assistant, platform, log);
      }
    });
    // The list serves completion and capability questions, and a slow gateway must not delay the start. It
    // follows the platforms' first requests, but does not wait for a platform that is down.
    const linked = Promise.allSettled([connected]);
    const patience = { clock, keepsAlive: false };
    const stopTelling = gateway.watch.onChange((trouble) => {
      if (trouble === undefined) log.info({}, "the gateway answers again");
      else
        log.warn(
          { code: trouble.error.code },
          `the gateway ${trouble.text}: \`npm run doctor\` says what to do`,
        );
    });
    const stopWatching = gateway.watch.watch();
    const advice: string[] = [];
    const asked = inTime(linked, maxStartWaitMs, patience).then(async () => {
      await warmUp(gateway.client, log);
      const line = await unpricedLine(config, gateway);
      if (line !== undefined) advice.push(`Price    ${line}`);
    });
    return {
      url: listening.url,
      lines: toLines(config, { store, gateway, server: listening, access }),
      assistant,
      connected,
      checked: inTime(asked, maxStartWaitMs, patience),
      dataLost,
      troubles: () => toTroubleLines(config, gateway, givenUp),
      advice: () => advice,
      async stop() {
        for (const end of [stopRecovering, stopWatching, stopTelling]) end();
        // This comes first, so that the services deliver new events to another instance or later.
        await Promise.allSettled(links.map((link) => link.pause()));
        const broken = await assistant.stop({ deadlineMs: config.SHUTDOWN_TIMEOUT_MS });
        if (broken > 0)
          log.warn({ turns: broken }, "turns aborted at the shutdown deadline; the next start resumes them");
        await Promise.allSettled(links.map((link) => link.stop()));
        await resources.closeAll();
      },
    };
  } catch (error) {
    await resources.closeAll();
    throw error;
  }
}

const identity = "You are Parley, an assistant in a team's chat.";
/** The part of the prompt that a `system-prompt` of `/settings` replaces. */
const defaultStyle =
  "Answer in the language you are asked in, plainly and to the point. Use Markdown where it helps.";

/** A platform that is on and imported, but not created yet. */
interface LoadedPlatform extends ConfiguredPlatform {
  readonly create: Awaited<ReturnType<PlatformModule["load"]>>["create"];
}

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

async function recover(assistant: Assistant, { id }: CreatedPlatform["platform"], log: Log): Promise<void> {
  try {
    await assistant.recover(id);
  } catch (error) {
    log.warn({ platform: id, err: error }, "listing open turns failed; retried soon");
  }
}

/**
 * Waits for all connections. A platform that refuses to connect for good, because of a wrong token, is given
 * up if another one is connected or still trying. If none is left, the start fails with the errors of all.
 */
async function whenConnected(
  links: readonly Link[],
  giveUp: (index: number, error: ParleyError) => void,
): Promise<void> {
  const refusals: ParleyError[] = [];
  const connecting = links.map(async ({ connected }, index) => {
    try {
      await connected;
    } catch (error) {
      if (!isParleyError(error)) throw error;
      refusals.push(error);
      if (refusals.length === 1 && links.length === 1) throw error;
      if (refusals.length === links.length)
        throw new ParleyError(error.code, refusals.map(({ message }) => message).join("\n"), {
          cause: error,
        });
      giveUp(index, error);
    }
  });
  await Promise.all(connecting);
}

async function warmUp(gateway: Gateway, log: Log): Promise<void> {
  try {
    await gateway.listModels(AbortSignal.timeout(30_000));
  } catch (error) {
    // The watch reports what this shows about the gateway.
    log.debug(
      { err: error, code: isParleyError(error) ? error.code : undefined },
      "the gateway did not list its models",
    );
  }
}

/** The parts that do not work, with the names of the start lines. */
function toTroubleLines(
  config: Config,
  gateway: OpenedGateway,
  givenUp: ReadonlyMap<string, ParleyError>,
): string[] {
  const trouble = gateway.watch.trouble();
  return [
    ...config.platforms.flatMap(({ module }) => {
      const error = givenUp.get(module.id);
      return error === undefined ? [] : [`${module.title.padEnd(8)} ${error.message}`];
    }),
    ...(trouble === undefined ? [] : [`Gateway  ${gateway.describe()} ${trouble.text}`]),
  ];
}

/** The lines that an admin reads in the terminal after `npm start`. */
function toLines(
  config: Config,
  parts: {
    readonly store: Store;
    readonly gateway: OpenedGateway;
    readonly server: HttpServer;
    readonly access: ReturnType<typeof createAccess>;
  },
): string[] {
  const { url } = parts.server;
  const warning = spendingWarning(config);
  const proxies = adoptedProxies();
  return [
    ...config.platforms.map(
      ({ module, values, isOn }) => `${module.title.padEnd(8)} ${module.startLine(values, { isOn, url })}`,
    ),
    `Access   ${parts.access.describe()}`,
    `Limits   ${describeLimits(config)}`,
    ...(warning === undefined ? [] : [`Warning  ${warning}`]),
    `Gateway  ${parts.gateway.describe()}`,
    ...(proxies === undefined ? [] : [`Proxy    ${describeProxies(proxies)}`]),
    `Store    ${parts.store.describe()}`,
    `Health   ${parts.server.url}/readyz, /healthz, /metrics`,
  ];
}

/** Extra time for what comes before and after a gateway call. */
const reserveMarginMs = 5 * 60_000;

/** Opens the store in the settings. `exclusive: false` opens it while a bot uses it. */
export async function openConfiguredStore(
  config: Config,
  log: Log,
  options: Pick<StoreOptions, "exclusive" | "meter" | "clock" | "onDataLost">,
): Promise<Store> {
  const { openStore } = await import("./conversations/open-store.ts");
  return await openStore(config.STORE_URL, {
    log: log.child({ part: "store" }),
    encryptionKeys: config.STORE_ENCRYPTION_KEYS,
    retentionDays: config.RETENTION_DAYS,
    leaseMs: config.STORE_LEASE_MS,
    // A call ends within its total timeout.
    reserveTtlMs: config.GATEWAY_TOTAL_TIMEOUT_MS + reserveMarginMs,
    ...options,
  });
}

/**
 * An archive that also erases platforms' files. It erases files first, so that an interrupted deletion still
 * finds messages and is repeated.
 */
export function withPlatformFiles(archive: Archive, platforms: readonly CreatedPlatform[]): Archive {
  const erasures = platforms.flatMap(({ erasure }) => erasure ?? []);
  return {
    ...archive,
    async forgetAuthor(conversationId, authorId) {
      for (const erasure of erasures) await erasure.forgetAuthor(conversationId, authorId);
      return await archive.forgetAuthor(conversationId, authorId);
    },
    async deleteConversation(conversationId) {
      for (const erasure of erasures) await erasure.deleteConversation(conversationId);
      return await archive.deleteConversation(conversationId);
    },
  };
}

/** Describes in one line for the start message what limits use and spending. */
export function describeLimits(config: Config): string {
  const { TURNS_PERSON_MINUTE: turns, BUDGET_PERSON_DAY_USD: person, BUDGET_DAY_USD: all } = config;
  return [
    turns === 0
      ? "any number of requests"
      : `${turns} ${turns === 1 ? "request" : "requests"} a minute and person`,
    ...(person === undefined ? [] : [`$${person} a day and person`]),
    ...(all === undefined ? [] : [`$${all} a day in all`]),
    ...(config.MODELS_ALLOWED.length === 0 ? [] : [`models ${config.MODELS_ALLOWED.join(", ")}`]),
  ].join("; ");
}

/** A warning if nothing limits spending. The sandbox needs none, because it costs nothing. */
export function spendingWarning(config: Config): string | undefined {
  const isSandbox = config.isGatewayEmbedded && config.GATEWAY_CONFIG === undefined;
  const { ALLOW, BUDGET_PERSON_DAY_USD: person, BUDGET_DAY_USD: all } = config;
  if (isSandbox || ALLOW.length > 0 || person !== undefined || all !== undefined) return undefined;
  return "nothing limits spending: set ALLOW, BUDGET_PERSON_DAY_USD or BUDGET_DAY_USD (docs/access.md)";
}
