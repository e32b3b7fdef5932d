import { parseArgs } from "node:util";
import { createAllowedModels } from "./assistant/access/access.ts";
import { createModelChoice } from "./assistant/turn/model-choice.ts";
import { helpOf } from "./cli-help.ts";
import { hasBudgets, readGatewayConfig, startEmbedded, toSetModels } from "./compose-gateway.ts";
import {
  type Config,
  type ConfiguredPlatform,
  findUpstreamMistakes,
  readConfig,
  secretsIn,
} from "./config.ts";
import { createStoreChecks } from "./conversations/open-store.ts";
import { right, warning, wrong, type Check, type Finding } from "./core/checks.ts";
import type { Command } from "./core/command.ts";
import { isParleyError } from "./core/errors.ts";
import type { Log } from "./core/telemetry.ts";
import {
  readEnvFile,
  type EnvFile,
  findMisspelt,
  readGatewayConfigText,
  unquotedProblem,
} from "./env-file.ts";
import { createGatewayChecks } from "./gateway/gateway-checks.ts";
import { loadCommands } from "./load-commands.ts";
import { createLog } from "./operations/log.ts";
import { settings } from "./settings.ts";
import {
  exitCodes,
  toExitCode,
  toReportJson,
  toReportText,
  runChecks,
  createPortCheck,
  type CheckSection,
} from "./operations/run-checks.ts";
import { systemClock } from "./support/clock.ts";
import { describeProxies, readProxies } from "./support/proxy.ts";

type ReadConfig = ReturnType<typeof readConfig>;

/** What the doctor inspects. */
interface DoctorInput {
  /** The settings in force, in which the environment wins over the file. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The file `.env`, if there is one. */
  readonly file: EnvFile | undefined;
  /** The variables that had quotation marks around their values. Default: none. */
  readonly unquoted?: readonly string[];
  readonly log: Log;
}

/** Creates the checks of the settings and of everything that they name. */
export async function createDoctorSections(input: DoctorInput): Promise<readonly CheckSection[]> {
  const { environment, log } = input;
  const read = readConfig(environment);
  const { config } = read;
  const loaded = await loadCommandsOrProblem();
  const platforms = await Promise.all(
    config.platforms.map(async (platform) => ({
      title: platform.module.title,
      checks: await platformChecks(platform, { read, commands: loaded.commands, log }),
    })),
  );
  return [
    { title: "Settings", checks: [settingsCheck(read, input), ...loaded.problems] },
    ...platforms,
    {
      title: "Gateway",
      checks: unlessWrong(read, ["GATEWAY_BASE_URL"], () => gatewayChecks(config, environment, log)),
    },
    {
      title: "Store",
      checks: unlessWrong(read, ["STORE_URL"], () =>
        createStoreChecks(config.STORE_URL, { encryptionKeys: config.STORE_ENCRYPTION_KEYS, log }),
      ),
    },
    {
      title: "Server",
      checks: unlessWrong(read, ["HOST", "PORT"], () => [createPortCheck(config.HOST, config.PORT)]),
    },
  ];
}

/** Values that no output may contain: secrets, and the passwords in addresses. */
export function privateIn(environment: DoctorInput["environment"]): string[] {
  const passwords = Object.keys(settings).flatMap((name) => {
    const url = environment[name]?.trim() ?? "";
    const password = URL.canParse(url) ? new URL(url).password : "";
    return password === "" ? [] : [password, decodeURIComponent(password)];
  });
  return [...secretsIn(environment), ...passwords];
}

/** The checks of one platform, or a line that says why it is off. */
async function platformChecks(
  { module, values, isOn }: ConfiguredPlatform,
  context: { readonly read: ReadConfig; readonly commands: ReadonlyMap<string, Command>; readonly log: Log },
): Promise<readonly Check[]> {
  const isMisread = Object.keys(module.settings).some((name) => context.read.wrongNames.has(name));
  // The wrong setting may be the one that would turn it on.
  if (!isOn && isMisread) return [];
  if (!isOn) {
    const line = module.startLine(values, { isOn, url: "" }).replace(/^off\s+/, "off: ");
    return [{ subject: "State", run: async () => [right("State", line)] }];
  }
  if (module.checks === undefined) return [];
  return await module.checks(values, context);
}

/** The checks of the configured gateway or of the embedded one. */
function gatewayChecks(config: Config, environment: DoctorInput["environment"], log: Log): Check[] {
  const { GATEWAY_BASE_URL: baseUrl, GATEWAY_API_KEY: apiKey, GATEWAY_CONFIG: configFile } = config;
  const setModels = toSetModels(config);
  const checksOf = (address: {
    readonly baseUrl: string;
    readonly apiKey: string | undefined;
    readonly name: string;
  }) =>
    createGatewayChecks({
      ...address,
      setModels,
      prices: config.MODEL_PRICES,
      hasBudgets: hasBudgets(config),
      log,
      choose: (client, operation, signal) =>
        createModelChoice(
          client,
          { chat: config.CHAT_MODEL, image: config.IMAGE_MODEL, transcription: config.TRANSCRIPTION_MODEL },
          createAllowedModels(config.MODELS_ALLOWED),
        ).choose(operation, undefined, signal),
    });
  if (baseUrl !== undefined) return checksOf({ baseUrl, apiKey, name: new URL(baseUrl).origin });
  if (configFile === undefined)
    return [
      {
        subject: "Address",
        run: async () => [
          warning(
            "Address",
            "no model is connected: the embedded sandbox answers by rules",
            "set GATEWAY_BASE_URL, or GATEWAY_CONFIG (docs/gateway.md)",
          ),
        ],
      },
    ];
  const embedded: Check = {
    subject: "Address",
    async run(context) {
      let started: Awaited<ReturnType<typeof startEmbedded>>;
      let mistakes: readonly string[];
      try {
        const gatewayConfig = await readGatewayConfig(configFile, environment);
        mistakes = findUpstreamMistakes(gatewayConfig.upstreams);
        started = await startEmbedded(log, gatewayConfig);
      } catch (error) {
        if (!isParleyError(error)) throw error;
        return [wrong("Configuration", error.message, "see docs/gateway.example.jsonc")];
      }
      try {
        const address = {
          baseUrl: started.url,
          apiKey: started.apiKey,
          name: `the embedded gateway with ${configFile}`,
        };
        // Its clock is that of this machine.
        const found = checksOf(address).map((check) => check.run({ ...context, noteDate() {} }));
        return [...mistakes.map((problem) => toWarning(problem)), ...(await Promise.all(found)).flat()];
      } finally {
        await started.gateway.close();
      }
    },
  };
  return [embedded];
}

/** Leaves a section out while its own settings are wrong, which the settings' lines already report. */
function unlessWrong({ wrongNames }: ReadConfig, names: readonly string[], checks: () => Check[]): Check[] {
  return names.some((name) => wrongNames.has(name)) ? [] : checks();
}

async function loadCommandsOrProblem(): Promise<{
  readonly commands: ReadonlyMap<string, Command>;
  readonly problems: readonly Check[];
}> {
  try {
    return { commands: await loadCommands(), problems: [] };
  } catch (error) {
    if (!isParleyError(error)) throw error;
    const findings = error.message
      .split("\n")
      .map((line) => wrong("Commands", line, "correct that file, or take it out of commands/"));
    return { commands: new Map(), problems: [{ subject: "Commands", run: async () => findings }] };
  }
}

function settingsCheck(
  { problems, startProblems, warnings }: ReadConfig,
  { file, environment, unquoted = [] }: DoctorInput,
): Check {
  return {
    subject: "Variables",
    async run() {
      const used = await readGatewayConfigText(environment["GATEWAY_CONFIG"]);
      const misspelt = findMisspelt(Object.keys(file?.values ?? {}), Object.keys(environment), used);
      const findings: Finding[] = [
        ...[...problems, ...startProblems].map((problem) => toSettingFinding(problem)),
        ...misspelt.map((one) =>
          wrong(one.name, "is not a setting and has no effect", `did you mean ${one.meant}?`),
        ),
      ];
      const count = Object.keys(settings).filter((name) => (environment[name]?.trim() ?? "") !== "").length;
      const proxies = readProxies(environment);
      const text =
        count === 0 ? "none is set: all have their defaults" : `${count} set, all known and well-formed`;
      return [
        ...(findings.length > 0 ? findings : [right("Variables", text)]),
        ...warnings.map((problem) => toWarning(problem)),
        ...(proxies === undefined ? [] : [right("Proxy", describeProxies(proxies))]),
        ...unquoted.map((name) => warning(name, unquotedProblem.text, unquotedProblem.remedy)),
        ...(file?.isOpenToOthers === true
          ? [warning(".env", "other users of this machine can read it", "chmod 600 .env")]
          : []),
      ];
    },
  };
}

/** Makes a finding of a problem, which begins with its variable. The remedy follows a colon. */
function toSettingFinding(problem: string): Finding {
  const [, name = "Variables", text = problem, remedy] =
    /^([A-Z][A-Z_\d]*)\b(?:=\S+)? (.*?)(?:: (.*))?$/s.exec(problem) ?? [];
  if (remedy !== undefined) return wrong(name, text, remedy);
  return /^(must|needs)\b/.test(text)
    ? wrong(name, "has a wrong value", `it ${text}`)
    : wrong(name, text, "correct it; .env.example explains each setting");
}

/** The same for what works and is hardly meant. */
function toWarning(problem: string): Finding {
  return { ...toSettingFinding(problem), level: "warning" };
}

/** The input and output of a shell command. */
export interface CommandIo {
  /** The environment without `.env`. */
  readonly environment: NodeJS.ProcessEnv;
  writeOut(text: string): void;
  writeError(text: string): void;
  readonly isColoured: boolean;
}

/**
 * Runs `parley doctor`, which checks the settings and everything that they name. Resolves to the exit code: 0
 * right, 1 something is wrong, 2 unknown options.
 * @throws ParleyError `config` if `.env` cannot be read
 */
export async function runDoctor(
  words: readonly string[],
  io: CommandIo & Pick<DoctorInput, "unquoted">,
): Promise<number> {
  let values: { readonly json?: boolean; readonly live?: boolean };
  try {
    ({ values } = parseArgs({
      args: [...words],
      options: { json: { type: "boolean" }, live: { type: "boolean" } },
    }));
  } catch (error) {
    io.writeError(
      `${error instanceof Error ? error.message : "Unknown option."}\n\n${helpOf("doctor") ?? ""}`,
    );
    return exitCodes.notRun;
  }
  const file = await readEnvFile(".env");
  const environment = { ...file?.values, ...io.environment };
  const secrets = privateIn(environment);
  // The findings say everything that matters, so nothing is logged.
  const log = createLog({ level: "silent", secrets, write() {} });
  const sections = await runChecks(await createDoctorSections({ ...io, environment, file, log }), {
    isLive: values.live === true,
    secrets,
    now: () => systemClock.now(),
  });
  io.writeOut(values.json === true ? toReportJson(sections) : toReportText(sections, io.isColoured));
  return toExitCode(sections);
}
