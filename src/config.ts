import path from "node:path";
import { z } from "zod";
import { accessProblems, createAllowedModels } from "./assistant/access/access.ts";
import { dataFolderOf, defaultStoreUrl, isSharedStore, storeUrlProblem } from "./conversations/backends.ts";
import { encryptionKeysProblem } from "./conversations/encryption.ts";
import { ParleyError } from "./core/errors.ts";
import type { PlatformModule } from "./core/platform-module.ts";
import {
  hostList,
  httpUrl,
  integerFrom,
  list,
  milliseconds,
  numberFrom,
  port,
  text,
  toProblem,
  type Settings,
  type SettingValues,
} from "./core/settings.ts";
import { platformModules } from "./platforms/registry.ts";
import { findMistakes } from "./setting-mistakes.ts";
import { isDecodable } from "./support/text.ts";
import { priceFields } from "./wire/schemas.ts";

const prices = text
  .transform((value, context): unknown => {
    try {
      return JSON.parse(value) as unknown;
    } catch {
      context.addIssue({
        code: "custom",
        message: 'must be JSON, such as {"my-model":{"inputPerMillionUsd":0.1}}',
      });
      return z.NEVER;
    }
  })
  .pipe(
    z.record(
      z.string(),
      z.strictObject(priceFields, {
        error: (issue) =>
          issue.code === "unrecognized_keys"
            ? `has the unknown field ${issue.keys.join(", ")}; there are ${Object.keys(priceFields).join(", ")}`
            : undefined,
      }),
      "must be an object of models",
    ),
  );

const accessList = list.transform((terms) => [...new Set(terms)]).default([]);
/** A budget of 0 admits only free calls. */
const budget = numberFrom(0, 1_000_000).optional();

/**
 * The path of one operation at the end of a gateway's address, from `/v1` on where that is in front of it. An
 * address may end in `/chat/completions`, which says where a server without a version has its operations.
 */
function operationPathOf(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { pathname } = new URL(url);
  return /(?:\/v1)?\/(?:(?<!\/chat\/)completions|responses|images\/(?:generations|edits)|audio\/transcriptions)\/*$|\/v1\/models\/*$/.exec(
    pathname,
  )?.[0];
}

/** It may be written without `http://`, and with a user name and a password. */
const proxy = text
  .refine(
    (value) =>
      /^(?:https?:\/\/)?[^/]+\/?$/i.test(value) && URL.canParse(value.replace(/^(?!https?:)/i, "http://")),
    "must be the address of an HTTP proxy, such as http://proxy.example:3128",
  )
  .optional();

/** The settings that do not belong to a platform. */
const ownSettings = {
  GATEWAY_BASE_URL: {
    schema: httpUrl
      .superRefine((value, context) => {
        const path = operationPathOf(value);
        if (path === undefined) return;
        const message = `must be the server's base address: leave out ${path}, which Parley adds`;
        context.addIssue({ code: "custom", message });
      })
      .optional(),
    description: "an OpenAI-compatible server, without `/v1`; empty: the embedded gateway",
  },
  GATEWAY_API_KEY: {
    schema: text.optional(),
    description: "its key; `npm run gateway` takes several, separated by commas",
    isSecret: true,
  },
  GATEWAY_CONFIG: { schema: text.optional(), description: "configuration file of the embedded gateway" },
  GATEWAY_HOST: { schema: text.default("127.0.0.1"), description: "where `npm run gateway` serves" },
  GATEWAY_PORT: { schema: port.default(8787), description: "its port" },
  GATEWAY_CONNECT_TIMEOUT_MS: { schema: milliseconds.default(10_000), description: "to connect" },
  GATEWAY_FIRST_EVENT_TIMEOUT_MS: {
    schema: milliseconds.default(60_000),
    description: "of silence before the first words",
  },
  GATEWAY_IDLE_TIMEOUT_MS: { schema: milliseconds.default(30_000), description: "between words" },
  GATEWAY_TOTAL_TIMEOUT_MS: { schema: milliseconds.default(600_000), description: "in all" },
  GATEWAY_CONCURRENCY: {
    schema: integerFrom(1, 10_000).default(32),
    description: "gateway calls at once; further ones wait, people in turn",
  },
  GATEWAY_CONCURRENCY_PERSON: {
    schema: integerFrom(1, 10_000).default(4),
    description: "gateway calls at once for one person (the page is one person)",
  },

  CHAT_MODEL: {
    schema: text.optional(),
    description: "the default model for chat",
    shownDefault: "first able",
  },
  IMAGE_MODEL: {
    schema: text.optional(),
    description: "the default model for pictures",
    shownDefault: "first able",
  },
  TRANSCRIPTION_MODEL: {
    schema: text.optional(),
    description: "the default model for recordings",
    shownDefault: "first able",
  },
  CHAT_FALLBACK_MODELS: {
    schema: list.default([]),
    description: "tried in order when the default model does not answer",
  },
  IMAGE_FALLBACK_MODELS: { schema: list.default([]), description: "likewise" },
  TRANSCRIPTION_FALLBACK_MODELS: { schema: list.default([]), description: "likewise" },
  IMAGE_HOSTS: {
    schema: hostList,
    description: "hosts whose pictures are shown when an answer links to them; they may be private ones",
  },
  MODEL_PRICES: {
    schema: prices.optional(),
    description: "what models cost where the gateway does not say; JSON",
  },
  CHAT_MAX_TOKENS: {
    schema: integerFrom(1, 1_000_000).default(1024),
    description: "longest answer, in tokens; four times that where `/settings` asks for long ones",
  },
  CHAT_TEMPERATURE: { schema: numberFrom(0, 2).default(1), description: "0 to 2" },
  SYSTEM_PROMPT: {
    schema: text.optional(),
    description: "the system message of every conversation; stays in front of prompts of `/settings`",
    shownDefault: "built in",
  },
  MEMORY: {
    schema: z.enum(["on", "off"]).default("on"),
    description: "whether what no longer fits the model is summed up by it, once (`on`), or left out (`off`)",
  },
  ROOM_MESSAGES: {
    schema: integerFrom(0, 1000).default(100),
    description: "messages that are read of a thread into which Parley is called; 0: none",
  },
  ROOM_CHARS: {
    schema: integerFrom(1000, 1_000_000).default(24_000),
    description: "their characters in all; the newest messages are kept",
  },

  ALLOW: {
    schema: accessList,
    description:
      "who may use Parley; empty: everybody in servers and workspaces with the bot (docs/access.md)",
  },
  DENY: { schema: accessList, description: "who may not; wins over all else" },
  ADMINS: { schema: accessList, description: "who may see and change everything" },
  ADMIN_PASSWORD: {
    schema: text.min(12, "needs at least 12 characters").optional(),
    description: "opens the dashboard (`/admin`), from this machine too; without it this machine only",
    isSecret: true,
  },
  TURNS_PERSON_MINUTE: {
    schema: integerFrom(0, 100_000).default(20),
    description: "requests that a person may send in a minute; 0: no limit",
  },
  BUDGET_PERSON_DAY_USD: { schema: budget, description: "what a person may spend in a day (UTC), in USD" },
  BUDGET_PERSON_MONTH_USD: {
    schema: budget,
    description: "what a person may spend in a calendar month (UTC), in USD",
  },
  BUDGET_DAY_USD: { schema: budget, description: "what all may spend in a day together, in USD" },
  BUDGET_MONTH_USD: { schema: budget, description: "what all may spend in a month together, in USD" },
  MODELS_ALLOWED: {
    schema: list
      .refine(
        (patterns) => patterns.every((pattern) => !/\s/.test(pattern)),
        "must be model ids separated by commas",
      )
      .default([]),
    description: "models that may be used; `*` stands for any characters; empty: all",
  },

  STORE_URL: {
    schema: text
      .superRefine((value, context) => {
        const message = storeUrlProblem(value);
        if (message !== undefined) context.addIssue({ code: "custom", message });
      })
      .default(defaultStoreUrl),
    description: "a file, or the address of a server shared by several instances",
  },
  STORE_ENCRYPTION_KEYS: {
    schema: list
      .superRefine((keys, context) => {
        const message = encryptionKeysProblem(keys);
        if (message !== undefined) context.addIssue({ code: "custom", message });
      })
      .default([]),
    description: "encrypts what is kept; newest key first",
    isSecret: true,
  },
  STORE_LEASE_MS: {
    schema: integerFrom(500, 600_000).default(15_000),
    description: "several instances: one that is silent for this long is taken over",
  },
  RETENTION_DAYS: {
    schema: numberFrom(0, 36_500).default(0),
    description: "erase conversations this long after their last message; 0: never",
  },

  HOST: {
    schema: text.default("127.0.0.1"),
    description: "where the page, `/healthz`, `/readyz` and `/metrics` are served",
  },
  PORT: { schema: port.default(3000), description: "their port; 0 takes any free one" },
  HTTP_HOSTS: {
    schema: hostList,
    description: "further names in the Host header that are served, such as a scraper's",
  },
  HTTP_PROXY: {
    schema: proxy,
    description: "the proxy through which http:// addresses are reached; empty: none",
  },
  HTTPS_PROXY: {
    schema: proxy,
    description: "the same for https:// and wss://; empty: the one of `HTTP_PROXY`",
  },
  NO_PROXY: {
    schema: list.default([]),
    description: "hosts that are reached without a proxy; this machine always is",
  },
  LOG_LEVEL: {
    schema: z.enum(["debug", "info", "warn", "error", "silent"]).default("info"),
    description: "`debug`, `info`, `warn`, `error`, `silent`",
  },
  SHUTDOWN_TIMEOUT_MS: {
    schema: milliseconds.default(20_000),
    description: "how long stopping waits for running answers",
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    schema: httpUrl.optional(),
    description: "an OpenTelemetry collector that gets a trace of each turn; empty: none",
  },
  OTEL_EXPORTER_OTLP_PROTOCOL: {
    schema: z.enum(["http/protobuf", "http/json"]).default("http/protobuf"),
    description: "`http/protobuf`, `http/json`",
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    schema: list
      .refine(
        (pairs) => pairs.every((pair) => /^[\w-]+\s*=/.test(pair) && isDecodable(pair)),
        "must be name=value pairs separated by commas, values URL-encoded",
      )
      .default([]),
    description: "headers for the collector, such as a key: `name=value`, separated by commas",
    isSecret: true,
  },
  OTEL_SERVICE_NAME: { schema: text.default("parley"), description: "the service's name in traces" },
} as const satisfies Settings;

/** Every setting by its variable, with the platforms' first. Tests compare `.env.example` with it. */
export const settings: Settings = Object.assign(
  {},
  ...platformModules.map((module) => module.settings),
  ownSettings,
) as Settings;

/** A platform with its settings. */
export interface ConfiguredPlatform {
  readonly module: PlatformModule;
  readonly values: SettingValues<Settings>;
  readonly isOn: boolean;
}

/** The checked, frozen settings. Each field is the variable of the same name, as in `.env.example`. */
export interface Config extends SettingValues<typeof ownSettings> {
  readonly platforms: readonly ConfiguredPlatform[];
  /** The absolute folder for data outside of the store, such as uploads, and for the store's blobs. */
  readonly dataDir: string;
  /** True if no gateway is named, so that the embedded one runs in this process. */
  readonly isGatewayEmbedded: boolean;
  /** Values that must never be logged. */
  readonly secrets: readonly string[];
}

/** Settings that were read as far as they are right. */
interface ReadConfig {
  /** The settings, in which a wrong one counts as not set. */
  readonly config: Config;
  /** One line each with the variable, the problem and the remedy, but never with a possible secret. */
  readonly problems: readonly string[];
  /** Such lines for problems that keep only the bot from starting. */
  readonly startProblems: readonly string[];
  /** Such lines for what works and is hardly meant. */
  readonly warnings: readonly string[];
  /** Variables whose own value is wrong. */
  readonly wrongNames: ReadonlySet<string>;
}

/**
 * Reads the settings from an environment. An empty variable counts as not set.
 * @throws ParleyError `config`, whose message has a line for each problem: variable, problem and remedy
 */
export function parseConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const { config, problems } = readConfig(environment);
  if (problems.length === 0) return config;
  throw new ParleyError(
    "config",
    `${problems.length === 1 ? "One setting is" : `${problems.length} settings are`} not right:\n${problems
      .map((problem) => `  - ${problem}`)
      .join("\n")}\nSee .env.example for every setting.`,
  );
}

/** Reads the settings from an environment, together with everything that is wrong with them. */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): ReadConfig {
  const values: Record<string, unknown> = {};
  const wrong = new Map<string, string>();
  for (const [name, { schema }] of Object.entries(settings)) {
    const given = environment[name]?.trim();
    const result = schema.safeParse(given === "" ? undefined : given);
    if (result.success) values[name] = result.data;
    else wrong.set(name, `${name} ${result.error.issues.map((issue) => toProblem(issue)).join(", ")}`);
  }
  const platforms = configurePlatforms(values);
  const host = typeof values["HOST"] === "string" ? values["HOST"] : "127.0.0.1";
  const storeUrl = values["STORE_URL"];
  const isStoreShared = typeof storeUrl === "string" && isSharedStore(storeUrl);
  const isStoreEncrypted = ((values["STORE_ENCRYPTION_KEYS"] ?? []) as readonly string[]).length > 0;
  const mistakes = findMistakes(values);
  const problems = [
    ...wrong.values(),
    ...platformModules.flatMap((module) => module.problems(values)),
    ...ruleProblems(values),
    ...mistakes.refused,
  ];
  const startProblems = platforms.flatMap(
    ({ module, isOn }) =>
      module.startProblems?.(values, { host, isOn, isStoreShared, isStoreEncrypted }) ?? [],
  );
  for (const name of wrong.keys()) values[name] = settings[name]?.schema.safeParse(undefined).data;
  const own = values as unknown as SettingValues<typeof ownSettings>;
  const config = Object.freeze({
    ...own,
    platforms,
    dataDir: path.resolve(dataFolderOf(own.STORE_URL)),
    isGatewayEmbedded: own.GATEWAY_BASE_URL === undefined,
    secrets: secretsOf(values),
  });
  return { config, problems, startProblems, warnings: mistakes.told, wrongNames: new Set(wrong.keys()) };
}

/** The forms of access terms by platform. */
export const accessTerms = Object.fromEntries(
  platformModules.map((module) => [module.id, module.accessTerms]),
);

/** Problems of the access rules, and default models that MODELS_ALLOWED leaves out. */
function ruleProblems(values: Partial<SettingValues<typeof ownSettings>>): string[] {
  const { ALLOW: allow = [], DENY: deny = [], ADMINS: admins = [], MODELS_ALLOWED = [] } = values;
  const { isAllowed } = createAllowedModels(MODELS_ALLOWED);
  const models = [
    ["CHAT_MODEL", values.CHAT_MODEL],
    ["IMAGE_MODEL", values.IMAGE_MODEL],
    ["TRANSCRIPTION_MODEL", values.TRANSCRIPTION_MODEL],
    ...(values.CHAT_FALLBACK_MODELS ?? []).map((id) => ["CHAT_FALLBACK_MODELS", id] as const),
    ...(values.IMAGE_FALLBACK_MODELS ?? []).map((id) => ["IMAGE_FALLBACK_MODELS", id] as const),
    ...(values.TRANSCRIPTION_FALLBACK_MODELS ?? []).map(
      (id) => ["TRANSCRIPTION_FALLBACK_MODELS", id] as const,
    ),
  ] as const;
  return [
    ...accessProblems({ allow, deny, admins }, accessTerms),
    ...models.flatMap(([name, id]) =>
      id === undefined || isAllowed(id)
        ? []
        : [
            `${name} names ${JSON.stringify(id.slice(0, 100))}, which MODELS_ALLOWED does not list: add it there`,
          ],
    ),
  ];
}

function configurePlatforms(values: Readonly<Record<string, unknown>>): ConfiguredPlatform[] {
  const asked = platformModules.map((module) => ({ module, values, isOn: module.isOn(values) }));
  const isAnyOn = asked.some(({ isOn }) => isOn === true);
  return asked.map((platform) => ({
    ...platform,
    isOn: platform.isOn === "alone" ? !isAnyOn : platform.isOn,
  }));
}

function secretsOf(values: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(settings)
    .filter(([, { isSecret }]) => isSecret === true)
    .flatMap(([name]) => {
      const found = [values[name]].flat().filter((value) => typeof value === "string");
      // The secret is the header's value, alone and in its encoded form.
      if (name === "OTEL_EXPORTER_OTLP_HEADERS") return found.flatMap(valuesOfHeader);
      return name === "GATEWAY_API_KEY" ? found.flatMap((keys) => [keys, ...keys.split(",")]) : found;
    });
}

function valuesOfHeader(pair: string): string[] {
  const value = pair.slice(pair.indexOf("=") + 1).trim();
  return [value, decodeURIComponent(value)];
}
