import { z } from "zod";
import { ParleyError } from "../core/errors.ts";
import { priceFields } from "../wire/schemas.ts";

/** What a model is for. A model without the list is tried for every operation. */
const capabilities = ["chat", "vision", "draws-in-chat", "images", "transcription"] as const;
export type Capability = (typeof capabilities)[number];

/** A model of an upstream, as the settings describe it. */
const modelSchema = z.strictObject({
  /** The upstream's own id. */
  id: z.string().min(1),
  capabilities: z.array(z.enum(capabilities)).min(1).optional(),
  /** In tokens. */
  contextLength: z.int().positive().optional(),
  prices: z.strictObject(priceFields).optional(),
});
export type ModelConfig = z.infer<typeof modelSchema>;

const baseUrl = z
  .string()
  .refine((text) => /^https?:\/\//.test(text) && URL.canParse(text), "must be an http(s) address")
  .refine(
    (text) => !URL.canParse(text) || new URL(text).search + new URL(text).hash === "",
    "must have no query",
  )
  .transform((text) => text.replace(/(?<!\/)\/+$/, ""));

const modelName = z
  .string()
  .min(1)
  .transform((id): ModelConfig => ({ id }));

/** One OpenAI-compatible service. */
const upstreamSchema = z.strictObject({
  /** The address with its version segment, without a trailing slash. */
  baseUrl,
  apiKeyEnv: z
    .string()
    .regex(/^[A-Za-z_]\w*$/, "must be the name of an environment variable")
    .optional(),
  /** These are sent with each request, e.g. for an organisation. */
  headers: z.record(z.string(), z.string()).default({}),
  /** The models that are offered. The default is the upstream's own list. */
  models: z
    .array(z.union([modelName, modelSchema]))
    .min(1)
    .optional(),
  /** Whether image URLs are downloaded here and sent as data URIs. */
  inlineImages: z.boolean().default(false),
  /** Whether streams are requested with usage. */
  streamUsage: z.boolean().default(true),
  /** The retries of one upstream, before the first byte of its answer. */
  retries: z.int().min(0).max(5).default(1),
  /** The silence after which the upstream counts as failed, in milliseconds. */
  timeoutMs: z.int().min(1000).default(180_000),
});

const modelId = z.string().min(1);
const prefix = z
  .string()
  .regex(/^[A-Za-z0-9][\w.-]*$/, "must be letters, digits, '.', '_' or '-', without '/'");

const fileSchema = z.strictObject({
  $schema: z.string().optional(),
  sandbox: z.boolean().optional(),
  upstreams: z.record(prefix, upstreamSchema).default({}),
  aliases: z.record(modelId, modelId).default({}),
  fallbacks: z.record(modelId, z.array(modelId).min(1)).default({}),
});

type FileUpstream = z.infer<typeof upstreamSchema>;
/** The settings of an upstream, with the key that the environment has for it. */
export type UpstreamConfig = Omit<FileUpstream, "apiKeyEnv"> & { readonly apiKey?: string | undefined };

/**
 * Parses the file that `GATEWAY_CONFIG` names: JSON with comments (docs/gateway.example.jsonc). API keys are
 * read from the environment variables that it names.
 * @throws ParleyError `config` with every problem on a line of its message
 */
export function parseGatewayConfig(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
): GatewayConfig {
  let json: unknown;
  try {
    json = JSON.parse(withoutComments(text));
  } catch (cause) {
    throw toConfigError([`it is not valid JSON: ${cause instanceof Error ? cause.message : ""}`], cause);
  }
  const parsed = fileSchema.safeParse(json);
  if (!parsed.success) throw toConfigError(parsed.error.issues.flatMap((issue) => toLines(issue)));
  // Real models replace the sandbox, which decodes whatever it is sent.
  const file = {
    ...parsed.data,
    sandbox: parsed.data.sandbox ?? Object.keys(parsed.data.upstreams).length === 0,
  };
  const problems = [...findMissingKeys(file.upstreams, env), ...findDanglingIds(file)];
  if (problems.length > 0) throw toConfigError(problems);
  const upstreams = Object.fromEntries(
    Object.entries(file.upstreams).map(([name, upstream]) => [name, withKey(upstream, env)]),
  );
  return { sandbox: file.sandbox, upstreams, aliases: file.aliases, fallbacks: file.fallbacks };
}

function withKey(
  { apiKeyEnv, ...upstream }: FileUpstream,
  env: Readonly<Record<string, string | undefined>>,
): UpstreamConfig {
  return { ...upstream, ...(apiKeyEnv !== undefined && { apiKey: env[apiKeyEnv] }) };
}

function findMissingKeys(
  upstreams: Readonly<Record<string, FileUpstream>>,
  env: Readonly<Record<string, string | undefined>>,
): string[] {
  return Object.entries(upstreams).flatMap(([name, { apiKeyEnv }]) =>
    apiKeyEnv !== undefined && (env[apiKeyEnv] ?? "") === ""
      ? [`upstreams.${name}.apiKeyEnv: the environment variable ${apiKeyEnv} is not set`]
      : [],
  );
}

function findDanglingIds(file: z.infer<typeof fileSchema> & { readonly sandbox: boolean }): string[] {
  const problems: string[] = [];
  const check = (path: string, id: string, mayBeSandbox: boolean): void => {
    const name = id.split("/", 1)[0] ?? "";
    if (Object.hasOwn(file.aliases, id)) problems.push(`${path}: '${id}' is an alias; name the model itself`);
    else if (name === "sandbox" && !mayBeSandbox) problems.push(`${path}: the sandbox cannot be a fallback`);
    else if (name === "sandbox" ? !file.sandbox : !Object.hasOwn(file.upstreams, name) || !id.includes("/")) {
      problems.push(`${path}: '${id}' does not begin with the prefix of an upstream`);
    }
  };
  if (Object.hasOwn(file.upstreams, "sandbox")) problems.push("upstreams.sandbox: this prefix is reserved");
  for (const [alias, id] of Object.entries(file.aliases)) {
    check(`aliases.${alias}`, id, true);
    if (Object.hasOwn(file.upstreams, alias.split("/", 1)[0] ?? "") && alias.includes("/")) {
      problems.push(`aliases.${alias}: it begins with the prefix of an upstream`);
    }
  }
  for (const [id, chain] of Object.entries(file.fallbacks)) {
    check(`fallbacks.${id}`, file.aliases[id] ?? id, false);
    for (const [index, next] of chain.entries()) check(`fallbacks.${id}[${index}]`, next, false);
  }
  return problems;
}

function toLines(issue: z.core.$ZodIssue, at: readonly PropertyKey[] = []): string[] {
  const path = [...at, ...issue.path];
  if (issue.code === "invalid_union") {
    const branch = issue.errors.toSorted((a, b) => (b[0]?.path.length ?? 0) - (a[0]?.path.length ?? 0))[0];
    if (branch !== undefined) return branch.flatMap((nested) => toLines(nested, path));
  }
  if (issue.code === "invalid_key") {
    return issue.issues.map((nested) => `${toPath(path)}: ${nested.message}`);
  }
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => `${toPath([...path, key])}: unknown setting`);
  }
  return [`${toPath(path)}: ${issue.message}`];
}

function toPath(path: readonly PropertyKey[]): string {
  const text = path.reduce<string>(
    (sum, key) => (typeof key === "number" ? `${sum}[${key}]` : `${sum}.${String(key)}`),
    "",
  );
  return text === "" ? "the file" : text.replace(/^\./, "");
}

function toConfigError(problems: readonly string[], cause?: unknown): ParleyError {
  const message = `The gateway's settings are invalid:\n${problems.map((line) => `- ${line}`).join("\n")}`;
  return new ParleyError("config", message, cause === undefined ? {} : { cause });
}

/**
 * Replaces `//` and `/* *\/` comments and trailing commas by blanks, so that positions in error messages stay
 * right.
 */
export function withoutComments(text: string): string {
  const blank = (found: string): string => found.replaceAll(/[^\n]/g, " ");
  const token = /"(?:[^"\\\n]|\\.)*"?|\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)/g;
  const plain = text.replaceAll(token, (found) => (found.startsWith('"') ? found : blank(found)));
  return plain.replaceAll(/"(?:[^"\\\n]|\\.)*"?|,(?=\s*[}\]])/g, (found) => (found === "," ? " " : found));
}

/** The validated settings of the embedded gateway. */
export interface GatewayConfig {
  /** Whether the sandbox models are offered. */
  readonly sandbox: boolean;
  /** The upstreams by the prefix of their models' public ids. */
  readonly upstreams: Readonly<Record<string, UpstreamConfig>>;
  /** Additional public ids, each for another public id. */
  readonly aliases: Readonly<Record<string, string>>;
  /** The models that are tried in order when a model fails before its first byte. */
  readonly fallbacks: Readonly<Record<string, readonly string[]>>;
}

/** The settings without a file, which offer only the sandbox. */
export const defaultGatewayConfig: GatewayConfig = {
  sandbox: true,
  upstreams: {},
  aliases: {},
  fallbacks: {},
};

/** A record of `GET /v1/models`, with common additional metadata. */
export interface ModelRecord {
  readonly id: string;
  readonly object: "model";
  /** Unix seconds. */
  readonly created: number;
  readonly owned_by: string;
  readonly [field: string]: unknown;
}

/** Unix seconds. */
const releasedAt = 1_767_225_600;

const free = { prompt: "0", completion: "0", image: "0", audio_minute: "0" };

function sandboxModel(
  name: string,
  description: string,
  input: readonly string[],
  output: readonly string[],
): ModelRecord {
  return {
    id: `sandbox/${name}`,
    object: "model",
    created: releasedAt,
    owned_by: "parley-sandbox",
    name: `Parley sandbox: ${name}`,
    description,
    context_length: 131_072,
    architecture: {
      modality: `${input.join("+")}->${output.join("+")}`,
      input_modalities: input,
      output_modalities: output,
    },
    pricing: free,
  };
}

/** The models that need no upstream. They are no language models, and each says so. */
export const sandboxModels: readonly ModelRecord[] = [
  sandboxModel("chat", "Answers by rules; no language model.", ["text", "image"], ["text"]),
  sandboxModel(
    "image",
    "Draws a card with the words of the prompt, and changes pictures.",
    ["text", "image"],
    ["text", "image"],
  ),
  sandboxModel("transcribe", "Tells the length of a recording; recognises no words.", ["audio"], ["text"]),
];

/** Returns the whole model list. Aliases come first, with the metadata of the model that they stand for. */
export function mergeModels(config: GatewayConfig, upstreamModels: readonly ModelRecord[]): ModelRecord[] {
  const records = [...(config.sandbox ? sandboxModels : []), ...upstreamModels];
  const aliases = Object.entries(config.aliases).map(([alias, id]): ModelRecord => {
    const target = records.find((record) => record.id === id);
    return { created: releasedAt, owned_by: "alias", ...target, id: alias, object: "model" };
  });
  return [...aliases, ...records];
}
