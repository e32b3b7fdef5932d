import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Clock } from "./core/clock.ts";
import { isParleyError, ParleyError } from "./core/errors.ts";
import { createAllowedModels } from "./assistant/access/access.ts";
import { createModelChoice, type ModelSettings } from "./assistant/turn/model-choice.ts";
import type { Gateway, ModelOperation, ModelPrice } from "./core/gateway.ts";
import type { Log, Meter, Tracer } from "./core/telemetry.ts";
import type { Config } from "./config.ts";
import type { createEmbeddedGateway } from "./embedded-gateway/embedded-gateway.ts";
import type { GatewayConfig } from "./embedded-gateway/gateway-config.ts";
import { createGatewayClient, createMeasuredGateway } from "./gateway/client.ts";
import { findUnpriced, unpricedRemedy } from "./gateway/unpriced.ts";
import { findMissingModel, type GatewayOutcome, toTrouble } from "./gateway/trouble.ts";
import { createGatewayWatch, type GatewayNote } from "./operations/gateway-watch.ts";
import { createDownloader } from "./media/guarded-download.ts";
import { systemClock } from "./support/clock.ts";

type EmbeddedGateway = ReturnType<typeof createEmbeddedGateway>;

/** The largest image in a gateway's answer, in bytes. */
const maxImageBytes = 20_000_000;

/** A gateway client with its settings. */
export interface OpenedGateway {
  readonly client: Gateway;
  readonly models: ModelSettings;
  /** Tells whether the gateway responds. */
  readonly watch: ReturnType<typeof createGatewayWatch>;
  /** The price of a model, as far as it is known. */
  readonly priceOf: (model: string) => ModelPrice | undefined;
  /** Names the gateway's address and kind for the start message. */
  describe(): string;
  close(): Promise<void>;
}

/** Opens the configured gateway, or the embedded one on a free loopback port with a random key. */
export async function openGateway(
  config: Config,
  log: Log,
  {
    gatewayConfig,
    tracer,
    meter,
    clock = systemClock,
  }: {
    readonly gatewayConfig: GatewayConfig | undefined;
    readonly tracer: Tracer;
    readonly meter: Meter;
    /** Default: the time of this process. */
    readonly clock?: Clock;
  },
): Promise<OpenedGateway> {
  const embedded = config.isGatewayEmbedded ? await startEmbedded(log, gatewayConfig) : undefined;
  const baseUrl = embedded?.url ?? config.GATEWAY_BASE_URL;
  if (baseUrl === undefined) throw new ParleyError("config", "GATEWAY_BASE_URL is not set");
  const apiKey = embedded?.apiKey ?? config.GATEWAY_API_KEY;
  const downloader = createDownloader({
    trusted: [
      {
        host: new URL(baseUrl).host,
        allowHttp: true,
        ...(apiKey === undefined
          ? {}
          : { authorization: `Bearer ${apiKey}`, origin: new URL(baseUrl).origin }),
      },
      ...config.IMAGE_HOSTS.map((host) => ({ host, allowHttp: true })),
    ],
    allowPublicHttps: true,
  });
  const client = createGatewayClient({
    baseUrl,
    log: log.child({ part: "gateway" }),
    timeouts: {
      connectMs: config.GATEWAY_CONNECT_TIMEOUT_MS,
      firstEventMs: config.GATEWAY_FIRST_EVENT_TIMEOUT_MS,
      idleMs: config.GATEWAY_IDLE_TIMEOUT_MS,
      totalMs: config.GATEWAY_TOTAL_TIMEOUT_MS,
    },
    fallbacks: {
      chat: config.CHAT_FALLBACK_MODELS,
      image: config.IMAGE_FALLBACK_MODELS,
      transcription: config.TRANSCRIPTION_FALLBACK_MODELS,
    },
    ...(config.MODEL_PRICES === undefined ? {} : { prices: config.MODEL_PRICES }),
    maxImageBytes,
    imageHosts: config.IMAGE_HOSTS,
    async downloadImage(url, signal, link) {
      const { bytes } = await downloader.download(url, {
        maxBytes: maxImageBytes,
        // A trusted host's redirect could lead anywhere, with text that the model wrote into the address.
        ...(link === "markdown" && { maxRedirects: 0 }),
        timeoutMs: 60_000,
        signal,
      });
      return bytes;
    },
    clock,
    onOutcome: (outcome) => watch.note(toNote(outcome, context)),
    onRetry: (operation, code, delayMs) =>
      meter({ kind: "retried", operation, code, seconds: delayMs / 1000 }),
    ...(apiKey === undefined ? {} : { apiKey }),
  });
  const context = { hasKey: apiKey !== undefined, chatModel: config.CHAT_MODEL };
  const watch = createGatewayWatch({
    clock,
    async ask(signal) {
      try {
        await client.ping(signal);
      } catch (error) {
        if (isParleyError(error)) return;
        const silent = new ParleyError("gateway-timeout", "the gateway was asked and is silent");
        watch.note(toNote({ kind: "failed", operation: "models", error: silent }, context));
      }
    },
  });
  return {
    client: createMeasuredGateway(client, { tracer, meter, clock }),
    watch,
    models: { chat: config.CHAT_MODEL, image: config.IMAGE_MODEL, transcription: config.TRANSCRIPTION_MODEL },
    priceOf: (model) => client.priceOf(model),
    describe: () =>
      embedded === undefined
        ? new URL(baseUrl).origin
        : config.GATEWAY_CONFIG === undefined
          ? "embedded sandbox: no model is connected, answers are samples (docs/gateway.md)"
          : `embedded, configured by ${config.GATEWAY_CONFIG}`,
    async close() {
      await client.close();
      await downloader.close();
      await embedded?.gateway.close();
    },
  };
}

/** Whether the settings have a budget, for a day or a month. */
export function hasBudgets(config: Config): boolean {
  const { BUDGET_PERSON_DAY_USD, BUDGET_PERSON_MONTH_USD, BUDGET_DAY_USD, BUDGET_MONTH_USD } = config;
  return [BUDGET_PERSON_DAY_USD, BUDGET_PERSON_MONTH_USD, BUDGET_DAY_USD, BUDGET_MONTH_USD].some(
    (budget) => budget !== undefined,
  );
}

/** The models of the settings, with the variables that name them. */
export function toSetModels(config: Config): { variable: string; operation: ModelOperation; id: string }[] {
  const of = (operation: ModelOperation, variable: string, ids: readonly (string | undefined)[]) =>
    ids.flatMap((id) => (id === undefined ? [] : [{ variable, operation, id }]));
  return [
    ...of("chat", "CHAT_MODEL", [config.CHAT_MODEL]),
    ...of("image", "IMAGE_MODEL", [config.IMAGE_MODEL]),
    ...of("transcription", "TRANSCRIPTION_MODEL", [config.TRANSCRIPTION_MODEL]),
    ...of("chat", "CHAT_FALLBACK_MODELS", config.CHAT_FALLBACK_MODELS),
    ...of("image", "IMAGE_FALLBACK_MODELS", config.IMAGE_FALLBACK_MODELS),
    ...of("transcription", "TRANSCRIPTION_FALLBACK_MODELS", config.TRANSCRIPTION_FALLBACK_MODELS),
  ];
}

/** Says in one line for the start message that budgets count models at a high price, since none is known. */
export async function unpricedLine(
  config: Config,
  { client, models, priceOf, watch }: Pick<OpenedGateway, "client" | "models" | "priceOf" | "watch">,
): Promise<string | undefined> {
  if (!hasBudgets(config) || watch.trouble() !== undefined) return undefined;
  const choice = createModelChoice(client, models, createAllowedModels(config.MODELS_ALLOWED));
  const chosen = await Promise.all(
    (["chat", "image", "transcription"] as const).map(async (operation) => {
      try {
        return [{ operation, id: await choice.choose(operation, undefined, new AbortController().signal) }];
      } catch (error) {
        if (!isParleyError(error)) throw error;
        return [];
      }
    }),
  );
  const unpriced = findUnpriced([...chosen.flat(), ...toSetModels(config)], priceOf, config.MODEL_PRICES);
  return unpriced === undefined
    ? undefined
    : `${unpriced.names}: no price is known, so budgets count a high one; ${unpricedRemedy(unpriced)}`;
}

/** Reduces the outcome of a call to what concerns more than this call. */
function toNote(outcome: GatewayOutcome, context: Parameters<typeof toTrouble>[1]): GatewayNote {
  switch (outcome.kind) {
    case "answered":
      return outcome;
    case "listed":
      return { kind: "listed", missing: findMissingModel(outcome.models, context) };
    case "failed":
      return { kind: "failed", isList: outcome.operation === "models", trouble: toTrouble(outcome, context) };
  }
}

/** Creates the embedded gateway alone, for `npm run gateway`. */
export async function createConfiguredGateway(
  where: {
    readonly host: string;
    readonly port: number;
    readonly apiKeys: readonly string[];
  },
  log: Log,
  gatewayConfig: GatewayConfig | undefined,
): Promise<EmbeddedGateway> {
  const { createEmbeddedGateway } = await import("./embedded-gateway/embedded-gateway.ts");
  return createEmbeddedGateway({
    ...where,
    log: log.child({ part: "embedded-gateway" }),
    ...(gatewayConfig === undefined ? {} : { config: gatewayConfig }),
  });
}

/** Starts the embedded gateway on a free loopback port with a random key. */
export async function startEmbedded(
  log: Log,
  gatewayConfig: GatewayConfig | undefined,
): Promise<{ url: string; apiKey: string; gateway: EmbeddedGateway }> {
  const apiKey = randomBytes(24).toString("base64url");
  const gateway = await createConfiguredGateway(
    { host: "127.0.0.1", port: 0, apiKeys: [apiKey] },
    log,
    gatewayConfig,
  );
  const { url } = await gateway.listen();
  return { url, apiKey, gateway };
}

/**
 * Reads the embedded gateway's settings from the file in GATEWAY_CONFIG. API keys of upstreams come from
 * `environment`.
 * @throws ParleyError `config` if the file is unreadable or invalid
 */
export async function readGatewayConfig(
  file: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<GatewayConfig> {
  const { parseGatewayConfig } = await import("./embedded-gateway/gateway-config.ts");
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new ParleyError("config", `GATEWAY_CONFIG names ${file}, which cannot be read`, { cause: error });
  }
  return parseGatewayConfig(text, environment);
}
