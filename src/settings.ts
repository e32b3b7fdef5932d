import ipaddr from "ipaddr.js";
import { z } from "zod";
import { defaultStoreUrl, storeExposure, storeUrlProblem } from "./conversations/backends.ts";
import { encryptionKeysProblem, isGuessableKey } from "./conversations/encryption.ts";
import {
  hostList,
  httpUrl,
  integerFrom,
  list,
  milliseconds,
  numberFrom,
  port,
  sendsInTheClear,
  text,
  type Settings,
  type SettingValues,
  type SetupPart,
} from "./core/settings.ts";
import { platformModules } from "./platforms/registry.ts";
import { isLoopback } from "./support/http/client-address.ts";
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

/** Makes a check that ends a sentence with what is wrong, or finds nothing. */
const unless =
  <T>(problemOf: (value: T) => string | undefined) =>
  (value: T, context: z.core.$RefinementCtx<T>): void => {
    const message = problemOf(value);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  };

const newKey =
  "make one with `openssl rand -base64 32`, put it in front, and rewrite the store with parley copy (docs/operations.md)";

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

const gateway = {
  GATEWAY_BASE_URL: {
    schema: httpUrl
      .superRefine(
        unless((value) => {
          const path = operationPathOf(value);
          return path && `must be the server's base address: leave out ${path}, which Parley adds`;
        }),
      )
      .optional(),
    description: "an OpenAI-compatible server, without `/v1`; empty: the embedded gateway",
    note: "Without GATEWAY_CONFIG that is a labelled sandbox.",
    isAddress: true,
    warn: sendsInTheClear("GATEWAY_API_KEY"),
    question: { text: "Address", isGate: true },
  },
  GATEWAY_API_KEY: {
    schema: text.optional(),
    description: "its key; `npm run gateway` takes several, separated by commas",
    isSecret: true,
    question: { text: "Key (empty: none)" },
  },
  GATEWAY_CONFIG: {
    schema: text.optional(),
    description: "configuration file of the embedded gateway: upstreams, aliases, fallbacks",
  },
  GATEWAY_HOST: { schema: text.default("127.0.0.1"), description: "where `npm run gateway` serves" },
  GATEWAY_PORT: { schema: port.default(8787), description: "its port" },
  GATEWAY_CONNECT_TIMEOUT_MS: {
    schema: milliseconds.default(10_000),
    description: "milliseconds to connect",
  },
  GATEWAY_FIRST_EVENT_TIMEOUT_MS: {
    schema: milliseconds.default(60_000),
    description: "milliseconds of silence before the first words",
  },
  GATEWAY_IDLE_TIMEOUT_MS: {
    schema: milliseconds.default(30_000),
    description: "milliseconds between words",
  },
  GATEWAY_TOTAL_TIMEOUT_MS: { schema: milliseconds.default(600_000), description: "milliseconds in all" },
  GATEWAY_CONCURRENCY: {
    schema: integerFrom(1, 10_000).default(32),
    description: "gateway calls at once; further ones wait, people in turn",
  },
  GATEWAY_CONCURRENCY_PERSON: {
    schema: integerFrom(1, 10_000).default(4),
    description: "gateway calls at once for one person (the page is one person)",
  },
} as const satisfies Settings;

const access = {
  ALLOW: {
    schema: accessList,
    description:
      "who may use Parley; empty: everybody in servers and workspaces with the bot (docs/access.md)",
    note: "Separated by commas: discord:guild:<id>, discord:channel:<id>, discord:role:<id>, discord:user:<id>, slack:team:<id>, slack:channel:<id>, slack:user:<id>.",
  },
  DENY: { schema: accessList, description: "who may not; wins over all else" },
  ADMINS: {
    schema: accessList,
    description: "who may see and change everything",
    note: "They are allowed like those of ALLOW.",
    question: { text: "Admins" },
  },
  ADMIN_PASSWORD: {
    schema: text.min(12, "needs at least 12 characters").optional(),
    description: "opens the dashboard (`/admin`), from this machine too; without it this machine only",
    note: "At least 12 characters. Behind a proxy on this machine, set one.",
    isSecret: true,
  },
  TURNS_PERSON_MINUTE: {
    schema: integerFrom(0, 100_000).default(20),
    description: "requests that a person may send in a minute; 0: no limit",
  },
  BUDGET_PERSON_DAY_USD: {
    schema: budget,
    description: "what a person may spend in a day (UTC), in USD",
    note: "Empty: no limit, here and below.",
    question: { text: "What one person may spend in a day" },
  },
  BUDGET_PERSON_MONTH_USD: {
    schema: budget,
    description: "what a person may spend in a calendar month (UTC), in USD",
  },
  BUDGET_DAY_USD: {
    schema: budget,
    description: "what all may spend in a day together, in USD",
    question: { text: "What everybody together may spend in a day" },
  },
  BUDGET_MONTH_USD: { schema: budget, description: "what all may spend in a month together, in USD" },
  MODELS_ALLOWED: {
    schema: list
      .refine(
        (patterns) => patterns.every((pattern) => !/\s/.test(pattern)),
        "must be model ids separated by commas",
      )
      .default([]),
    description: "models that may be used, such as `openai/gpt-4.1*, whisper-1`; empty: all",
    note: "* stands for any characters.",
  },
} as const satisfies Settings;

const models = {
  CHAT_MODEL: {
    schema: text.optional(),
    description: "the default model for chat",
    note: "An id as the gateway lists it (/models). Empty: the first of the list that can do it.",
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
    note: "Separated by commas. The reply says so.",
  },
  IMAGE_FALLBACK_MODELS: { schema: list.default([]), description: "the same for pictures" },
  TRANSCRIPTION_FALLBACK_MODELS: { schema: list.default([]), description: "the same for recordings" },
  IMAGE_HOSTS: {
    schema: hostList.refine(
      (hosts) => !hosts.some(isMetadataHost),
      "lists a service that gives this machine's cloud keys to whoever asks it: leave it out",
    ),
    description: "hosts whose pictures are shown when an answer links to them; they may be private ones",
    note: "Separated by commas. Other links stay text: to open one tells its host whatever the model was made to write into the address. A drawn picture at a private host, or by http, is downloaded only from a host that is listed here.",
  },
  MODEL_PRICES: {
    schema: prices.optional(),
    description: "what models cost where the gateway does not say; JSON",
    note: 'In USD by model id; an id ending in * stands for all that begin so. {"my-model":{"inputPerMillionUsd":0.1,"outputPerMillionUsd":0.4},"whisper*":{"perAudioMinuteUsd":0.003}}',
  },
  CHAT_MAX_TOKENS: {
    schema: integerFrom(1, 1_000_000).default(1024),
    description: "longest answer, in tokens; four times that where `/settings` asks for long ones",
  },
  CHAT_TEMPERATURE: {
    schema: numberFrom(0, 2).default(1),
    description: "how freely answers are written: 0 to 2",
  },
  SYSTEM_PROMPT: {
    schema: text.optional(),
    description: "the system message of every conversation; stays in front of prompts of `/settings`",
    note: "Empty: a short built-in text.",
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
} as const satisfies Settings;

const store = {
  STORE_URL: {
    schema: text.superRefine(unless(storeUrlProblem)).default(defaultStoreUrl),
    description: "a file, or the address of a server shared by several instances",
    note: "sqlite:<file>, redis://[user:password@]host:port/db, rediss://… (TLS), or postgres://user:password@host:5432/database[?schema=parley&sslmode=verify-full&pool_max=10]. Without a line of its own, as here, a container and the systemd unit keep the place that is theirs.",
    isOfPlace: true,
    warn: (url) => (typeof url === "string" ? storeExposure(url) : undefined),
    question: { text: "Store" },
  },
  STORE_ENCRYPTION_KEYS: {
    schema: list
      .superRefine(unless(encryptionKeysProblem))
      .superRefine(
        unless(([newest]) =>
          newest !== undefined && isGuessableKey(newest) === "zeros"
            ? `begins with a key of zeros, which everybody knows: ${newKey}`
            : undefined,
        ),
      )
      .default([]),
    description: "encrypts what is kept: base64 of 32 bytes each, separated by commas, newest first",
    note: "Make one with openssl rand -base64 32, or let npm run setup do it.",
    isSecret: true,
    warn: (keys) =>
      Array.isArray(keys) && keys.length > 0 && isGuessableKey(String(keys[0])) === true
        ? `begins with a key that was not made by chance: ${newKey}`
        : undefined,
  },
  STORE_LEASE_MS: {
    schema: integerFrom(500, 600_000).default(15_000),
    description: "several instances on one store: one that is silent for this long is taken over",
  },
  RETENTION_DAYS: {
    schema: numberFrom(0, 36_500).default(0),
    description: "erase conversations this long after their last message; 0: never",
  },
} as const satisfies Settings;

const traces = {
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    schema: httpUrl.optional(),
    description:
      "an OpenTelemetry collector (`http://localhost:4318`) that gets a trace of each turn; empty: none",
    note: "It is without what people wrote. OTEL_RESOURCE_ATTRIBUTES and further OTEL_EXPORTER_OTLP_… variables of OpenTelemetry's library work too.",
    warn: sendsInTheClear("OTEL_EXPORTER_OTLP_HEADERS"),
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
    isSecret: "pairs",
  },
  OTEL_TRACES_SAMPLER: {
    schema: z
      .enum([
        "always_on",
        "always_off",
        "traceidratio",
        "parentbased_always_on",
        "parentbased_always_off",
        "parentbased_traceidratio",
      ])
      .default("parentbased_always_on"),
    description: "which traces are sent: OpenTelemetry's name, such as `parentbased_traceidratio`",
  },
  OTEL_TRACES_SAMPLER_ARG: {
    schema: numberFrom(0, 1).default(1),
    description: "the share of traces that `…traceidratio` sends: 0.1 is a tenth",
  },
  OTEL_SERVICE_NAME: { schema: text.default("parley"), description: "the service's name in traces" },
} as const satisfies Settings;

const server = {
  HOST: {
    schema: text.default("127.0.0.1"),
    description: "where the page, `/healthz`, `/readyz` and `/metrics` are served",
    note: "It is 0.0.0.0 in a container, where the page needs PAGE_PASSWORD, or PAGE_LOGIN=accounts.",
    isOfPlace: true,
    question: {
      text: "Do other machines reach it, or does it run in a container?",
      when: (_, isPageOn) => isPageOn,
      yes: { value: "0.0.0.0", is: (host) => host !== "" && !isLoopback(host) },
    },
  },
  PORT: { schema: port.default(3000), description: "their port; 0 takes any free one" },
  HTTP_HOSTS: {
    schema: hostList,
    description:
      "further Host headers that are served, such as a scraper's `parley:3000`, separated by commas",
  },
  HTTP_PROXY: {
    schema: proxy,
    description: "the proxy through which http:// addresses are reached; empty: none",
    note: "Through it Parley reaches the gateway, Discord, Slack and files.",
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
    description: "how long stopping waits for running answers, in milliseconds",
  },
} as const satisfies Settings;

/** What the settings that do not belong to a platform are read as. */
export type OwnValues = SettingValues<
  typeof gateway & typeof access & typeof models & typeof store & typeof traces & typeof server
>;

/** Settings under one heading, with the part of setup that asks for some of them. */
interface Section {
  readonly heading: string;
  /** The page of `docs` that says more. */
  readonly doc: string;
  readonly settings: Settings;
  readonly setup?: SetupPart;
}

/** Every setting, in the order of `.env.example`, docs/settings-reference.md and setup. */
export const sections: readonly Section[] = [
  ...platformModules.map(({ title: heading, settings: of, setup }) => ({
    heading,
    doc: `${heading.toLowerCase()}.md`,
    settings: of,
    ...(setup === undefined ? {} : { setup }),
  })),
  {
    heading: "Gateway",
    doc: "gateway.md",
    settings: gateway,
    setup: {
      intro: `The address of any OpenAI-compatible server, without /v1. Empty: the embedded sandbox,
which answers by rules (docs/gateway.md).`,
      asks: ["GATEWAY_BASE_URL", "GATEWAY_API_KEY"],
    },
  },
  {
    heading: "People and budgets",
    doc: "access.md",
    settings: access,
    setup: {
      intro: `Admins may see and change everything: discord:user:<id>, slack:user:<id>, web:user:<name>, separated by commas.
A budget is for a day, in USD (docs/access.md). Empty: none.`,
      checkedBy: "Settings",
      asks: ["ADMINS", "BUDGET_DAY_USD", "BUDGET_PERSON_DAY_USD"],
    },
  },
  { heading: "Models and answers", doc: "gateway.md", settings: models },
  {
    heading: "Store",
    doc: "operations.md",
    settings: store,
    setup: {
      intro:
        "A file, or a server shared by several instances: redis://user:password@host:6379/0 or postgres://user:password@host:5432/database.",
      asks: ["STORE_URL"],
    },
  },
  { heading: "Traces", doc: "operations.md", settings: traces },
  { heading: "Process", doc: "operations.md", settings: server },
];

/** Every setting by its variable, with the platforms' first. */
export const settings: Settings = Object.assign(
  {},
  ...sections.map((section) => section.settings),
) as Settings;

const metadataHosts: ReadonlySet<string> = new Set([
  "metadata",
  "metadata.google.internal",
  "metadata.azure.internal",
  "instance-data",
  "instance-data.ec2.internal",
  "fd00:ec2::254",
  "fd20:ce::254",
  "100.100.100.200",
  "192.0.0.192",
  "168.63.129.16",
]);

/** Whether a host is where a cloud's machine reads its own keys. All link-local addresses count. */
function isMetadataHost(entry: string): boolean {
  const host = new URL(`http://${entry}`).hostname.replaceAll(/^\[|\]$/g, "").replace(/\.$/, "");
  if (!ipaddr.isValid(host)) return metadataHosts.has(host);
  const address = ipaddr.process(host);
  return address.range() === "linkLocal" || metadataHosts.has(address.toString());
}
