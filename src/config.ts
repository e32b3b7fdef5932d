import path from "node:path";
import { z } from "zod";
import { dataFolderOf, defaultStoreUrl, storeUrlProblem } from "./conversations/backends.ts";
import { ParleyError } from "./core/errors.ts";

const text = z.string().trim();
const port = z.coerce.number().int().min(0).max(65_535);
const milliseconds = z.coerce.number().int().min(1).max(86_400_000);
const list = text.transform((value) =>
  value
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== ""),
);
const httpUrl = text.refine(
  (value) =>
    URL.canParse(value) && /^https?:$/.test(new URL(value).protocol) && new URL(value).username === "",
  "must be an http:// or https:// address without a user name",
);

const usd = z.number().min(0).optional();
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
      z.strictObject({
        inputPerMillionUsd: usd,
        outputPerMillionUsd: usd,
        perAudioMinuteUsd: usd,
        perImageUsd: usd,
      }),
      "must be an object of models",
    ),
  );

/**
 * Every setting: its variable, its check and its default. `.env.example` is compared with it by a test.
 * An empty variable counts as not set.
 */
export const settings = {
  DISCORD_TOKEN: text.optional(),
  DISCORD_API_URL: httpUrl.optional(),
  SLACK_BOT_TOKEN: text.startsWith("xoxb-", "must be the bot token, which starts with xoxb-").optional(),
  SLACK_APP_TOKEN: text
    .startsWith("xapp-", "must be the app-level token, which starts with xapp-")
    .optional(),
  SLACK_SIGNING_SECRET: text.optional(),
  SLACK_API_URL: httpUrl.optional(),
  SLACK_COMMAND_PREFIX: text.regex(/^[a-z0-9_-]{0,16}$/, "is at most 16 of a-z, 0-9, - and _").default(""),

  GATEWAY_BASE_URL: httpUrl.optional(),
  GATEWAY_API_KEY: text.optional(),
  GATEWAY_CONFIG: text.optional(),
  GATEWAY_HOST: text.default("127.0.0.1"),
  GATEWAY_PORT: port.default(8787),
  GATEWAY_CONNECT_TIMEOUT_MS: milliseconds.default(10_000),
  GATEWAY_FIRST_EVENT_TIMEOUT_MS: milliseconds.default(60_000),
  GATEWAY_IDLE_TIMEOUT_MS: milliseconds.default(30_000),
  GATEWAY_TOTAL_TIMEOUT_MS: milliseconds.default(600_000),

  CHAT_MODEL: text.optional(),
  IMAGE_MODEL: text.optional(),
  TRANSCRIPTION_MODEL: text.optional(),
  CHAT_FALLBACK_MODELS: list.default([]),
  IMAGE_FALLBACK_MODELS: list.default([]),
  TRANSCRIPTION_FALLBACK_MODELS: list.default([]),
  MODEL_PRICES: prices.optional(),
  CHAT_MAX_TOKENS: z.coerce.number().int().min(1).max(1_000_000).default(1024),
  CHAT_TEMPERATURE: z.coerce.number().min(0).max(2).default(1),
  SYSTEM_PROMPT: text.optional(),

  STORE_URL: text
    .superRefine((value, context) => {
      const message = storeUrlProblem(value);
      if (message !== undefined) context.addIssue({ code: "custom", message });
    })
    .default(defaultStoreUrl),
  STORE_ENCRYPTION_KEYS: list.default([]),
  STORE_LEASE_MS: z.coerce.number().int().min(500).max(600_000).default(15_000),
  RETENTION_DAYS: z.coerce.number().min(0).max(36_500).default(0),

  HOST: text.default("127.0.0.1"),
  PORT: port.default(3000),
  PAGE: z.enum(["auto", "on", "off"]).default("auto"),
  PAGE_HOSTS: list.default([]),
  PAGE_PASSWORD: text.min(8, "needs at least 8 characters").optional(),

  LOG_LEVEL: z.enum(["debug", "info", "warn", "error", "silent"]).default("info"),
  SHUTDOWN_TIMEOUT_MS: milliseconds.default(20_000),
} as const;

type Settings = { readonly [K in keyof typeof settings]: z.output<(typeof settings)[K]> };

/** The checked settings, frozen. Each field is the variable of the same name; see `.env.example`. */
export interface Config extends Settings {
  /** Absolute folder for what is not in the store: uploads of the page, and the store's own blobs. */
  readonly dataDir: string;
  readonly isDiscordOn: boolean;
  readonly isSlackOn: boolean;
  readonly isPageOn: boolean;
  /** True when no gateway is named, so that the embedded one runs in this process. */
  readonly isGatewayEmbedded: boolean;
}

/**
 * Reads the settings out of an environment.
 * @throws ParleyError `config`, its message a line a problem: the variable, what is wrong and how to mend it
 */
export function parseConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, schema] of Object.entries(settings)) {
    const given = environment[name]?.trim();
    const result = schema.safeParse(given === "" ? undefined : given);
    if (result.success) values[name] = result.data;
    else problems.push(`${name} ${result.error.issues.map((issue) => toWords(issue)).join(", ")}`);
  }
  const config = values as unknown as Settings;
  problems.push(...problemsAcross(config));
  if (problems.length > 0) {
    throw new ParleyError(
      "config",
      `${problems.length === 1 ? "One setting is" : `${problems.length} settings are`} not right:\n${problems
        .map((problem) => `  - ${problem}`)
        .join("\n")}\nSee .env.example for every setting.`,
    );
  }
  const isDiscordOn = config.DISCORD_TOKEN !== undefined;
  const isSlackOn = config.SLACK_BOT_TOKEN !== undefined;
  return Object.freeze({
    ...config,
    dataDir: path.resolve(dataFolderOf(config.STORE_URL)),
    isDiscordOn,
    isSlackOn,
    isPageOn: config.PAGE === "on" || (config.PAGE === "auto" && !isDiscordOn && !isSlackOn),
    isGatewayEmbedded: config.GATEWAY_BASE_URL === undefined,
  });
}

function toWords(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.expected === "number" ? "must be a number" : `must be ${issue.expected}`;
    case "too_small":
      return issue.origin === "string" ? issue.message : `must be at least ${issue.minimum}`;
    case "too_big":
      return `must be at most ${issue.maximum}`;
    case "unrecognized_keys":
      return `has the unknown field ${issue.keys.join(", ")}; there are inputPerMillionUsd, outputPerMillionUsd, perAudioMinuteUsd, perImageUsd`;
    case "invalid_value":
      return `must be one of ${issue.values.join(", ")}`;
    default:
      return issue.message;
  }
}

function problemsAcross(config: Partial<Settings>): string[] {
  const problems: string[] = [];
  if (config.SLACK_BOT_TOKEN !== undefined && config.SLACK_APP_TOKEN === undefined) {
    problems.push(
      "SLACK_APP_TOKEN is needed with SLACK_BOT_TOKEN: make an app-level token with connections:write (docs/slack.md)",
    );
  }
  if (config.SLACK_BOT_TOKEN === undefined && config.SLACK_APP_TOKEN !== undefined) {
    problems.push(
      "SLACK_BOT_TOKEN is needed with SLACK_APP_TOKEN: copy it from OAuth & Permissions (docs/slack.md)",
    );
  }
  return problems;
}
