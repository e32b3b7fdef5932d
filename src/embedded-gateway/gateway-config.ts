import { z } from "zod";
import { ParleyError } from "../core/errors.ts";
import { withoutComments } from "./json-comments.ts";
import type { Capability, GatewayConfig, UpstreamConfig } from "./settings.ts";

const capabilities = [
  "chat",
  "vision",
  "draws-in-chat",
  "images",
  "transcription",
] as const satisfies Capability[];

const usd = z.number().nonnegative();

const pricesSchema = z.strictObject({
  inputPerMillionUsd: usd.optional(),
  outputPerMillionUsd: usd.optional(),
  perAudioMinuteUsd: usd.optional(),
  perImageUsd: usd.optional(),
});

const modelSchema = z.strictObject({
  id: z.string().min(1),
  capabilities: z.array(z.enum(capabilities)).min(1).optional(),
  contextLength: z.int().positive().optional(),
  prices: pricesSchema.optional(),
});

const baseUrl = z
  .string()
  .refine((text) => /^https?:\/\//.test(text) && URL.canParse(text), "must be an http(s) address")
  .refine(
    (text) => !URL.canParse(text) || new URL(text).search + new URL(text).hash === "",
    "must have no query",
  )
  .transform((text) => text.replace(/(?<!\/)\/+$/, ""));

const upstreamSchema = z.strictObject({
  baseUrl,
  apiKeyEnv: z
    .string()
    .regex(/^[A-Za-z_]\w*$/, "must be the name of an environment variable")
    .optional(),
  headers: z.record(z.string(), z.string()).default({}),
  models: z
    .array(
      z.union([
        z
          .string()
          .min(1)
          .transform((id) => ({ id })),
        modelSchema,
      ]),
    )
    .min(1)
    .optional(),
  inlineImages: z.boolean().default(false),
  streamUsage: z.boolean().default(true),
  retries: z.int().min(0).max(5).default(1),
  timeoutMs: z.int().min(1000).default(300_000),
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

/**
 * Parses the file that `GATEWAY_CONFIG` names: JSON with comments (docs/gateway.example.jsonc). API keys are read from
 * the environment variables that it names.
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
  { apiKeyEnv, models, ...upstream }: FileUpstream,
  env: Readonly<Record<string, string | undefined>>,
): UpstreamConfig {
  const apiKey = apiKeyEnv === undefined ? undefined : env[apiKeyEnv];
  return {
    ...upstream,
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(models === undefined ? {} : { models }),
  };
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
