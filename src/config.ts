import path from "node:path";
import { accessProblems, createAllowedModels } from "./assistant/access/access.ts";
import { dataFolderOf, isSharedStore } from "./conversations/backends.ts";
import { ParleyError } from "./core/errors.ts";
import type { PlatformModule } from "./core/platform-module.ts";
import { publicHostInTheClear, toProblem, type Settings, type SettingValues } from "./core/settings.ts";
import { platformModules } from "./platforms/registry.ts";
import { settings, type OwnValues } from "./settings.ts";
import { isDecodable } from "./support/text.ts";

/** A platform with its settings. */
export interface ConfiguredPlatform {
  readonly module: PlatformModule;
  readonly values: SettingValues<Settings>;
  readonly isOn: boolean;
}

/** The checked, frozen settings. Each field is the variable of the same name, as in `.env.example`. */
export interface Config extends OwnValues {
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
  const warnings = Object.entries(settings).flatMap(([name, { warn }]) => {
    const found = warn?.(values[name], values);
    return found === undefined ? [] : [`${name} ${found}`];
  });
  const problems = [
    ...wrong.values(),
    ...platformModules.flatMap((module) => module.problems(values)),
    ...ruleProblems(values),
  ];
  const startProblems = platforms.flatMap(
    ({ module, isOn }) =>
      module.startProblems?.(values, { host, isOn, isStoreShared, isStoreEncrypted }) ?? [],
  );
  for (const name of wrong.keys()) values[name] = settings[name]?.schema.safeParse(undefined).data;
  const own = values as unknown as OwnValues;
  const config = Object.freeze({
    ...own,
    platforms,
    dataDir: path.resolve(dataFolderOf(own.STORE_URL)),
    isGatewayEmbedded: own.GATEWAY_BASE_URL === undefined,
    secrets: secretsIn(environment),
  });
  return { config, problems, startProblems, warnings, wrongNames: new Set(wrong.keys()) };
}

/** The forms of access terms by platform. */
export const accessTerms = Object.fromEntries(
  platformModules.map((module) => [module.id, module.accessTerms]),
);

const modelSettings = [
  "CHAT_MODEL",
  "IMAGE_MODEL",
  "TRANSCRIPTION_MODEL",
  "CHAT_FALLBACK_MODELS",
  "IMAGE_FALLBACK_MODELS",
  "TRANSCRIPTION_FALLBACK_MODELS",
] as const;

/** Problems of the access rules, and default models that MODELS_ALLOWED leaves out. */
function ruleProblems(values: Partial<OwnValues>): string[] {
  const { ALLOW: allow = [], DENY: deny = [], ADMINS: admins = [], MODELS_ALLOWED = [] } = values;
  const { isAllowed } = createAllowedModels(MODELS_ALLOWED);
  const models = modelSettings.flatMap((name) =>
    [values[name] ?? []].flat().map((id) => [name, id] as const),
  );
  return [
    ...accessProblems({ allow, deny, admins }, accessTerms),
    ...models.flatMap(([name, id]) =>
      isAllowed(id)
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

/** Values that no output may contain: those of secret settings, as they are written and as they are sent. */
export function secretsIn(environment: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(settings).flatMap(([name, { isSecret }]) => {
    const given = isSecret === undefined ? "" : (environment[name]?.trim() ?? "");
    const parts = given.split(",").map((part) => part.trim());
    const found = isSecret === "pairs" ? parts.flatMap(valuesOfPair) : [given, ...parts];
    return [...new Set(found)].filter((one) => one !== "");
  });
}

function valuesOfPair(pair: string): string[] {
  const value = pair.slice(pair.indexOf("=") + 1).trim();
  return [value, isDecodable(value) ? decodeURIComponent(value) : ""];
}

/** Finds keys of the services in the file that GATEWAY_CONFIG names which would go unencrypted. */
export function findUpstreamMistakes(
  upstreams: Readonly<Record<string, { readonly baseUrl: string; readonly apiKey?: string | undefined }>>,
): string[] {
  return Object.entries(upstreams).flatMap(([name, { baseUrl, apiKey }]) => {
    const host = apiKey === undefined ? undefined : publicHostInTheClear(baseUrl);
    return host === undefined
      ? []
      : [`GATEWAY_CONFIG has ${name}, whose key goes unencrypted to ${host}: write https:// in its baseUrl`];
  });
}
