import { basename, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { findHelp, toUsage } from "./cli-help.ts";
import { isParleyError, ParleyError } from "./core/errors.ts";
import type { Log } from "./core/telemetry.ts";
import type { startParley } from "./compose.ts";
import { openConfiguredStore } from "./compose-store.ts";
import type { GatewayConfig } from "./embedded-gateway/gateway-config.ts";
import { findUpstreamMistakes, parseConfig, readConfig, type Config } from "./config.ts";
import {
  readEnvFile,
  type EnvFile,
  findMisspelt,
  readGatewayConfigText,
  unquotedProblem,
  unquoteEnvironment,
  toMisspeltProblem,
} from "./env-file.ts";
import { loadCommands } from "./load-commands.ts";
import { toExampleFile, toSettingsTables } from "./setting-texts.ts";
import { platformModules } from "./platforms/registry.ts";
import { installLastResort, createLog, toReadableLine } from "./operations/log.ts";
import { createRecentProblems } from "./operations/dashboard/recent-problems.ts";
import { releaseYoungGeneration } from "./operations/young-generation.ts";

/**
 * Runs one of the program's few commands and resolves to the exit code at its end. Problems of settings,
 * tokens and store are printed as plain lines on standard error, without a stack.
 */
export async function run(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const writeLogLine = toLogWriter(environment);
  let log = createLog({ level: "error", secrets: [], write: writeLogLine });
  // It is installed in every mode, before the settings are read, and uses their log when there is one.
  installLastResort({
    log: () => log,
    // eslint-disable-next-line unicorn/no-process-exit -- an exception leaves unknown state behind
    exit: (code) => process.exit(code),
  });
  try {
    // Help and installation must not fail because of a line in .env, so they come first.
    const help = findHelp(args);
    if (help !== undefined) {
      writeOut(help);
      return 0;
    }
    if (args[0] === "warm-up") {
      await warmUp();
      return 0;
    }
    const unquoted = unquoteEnvironment(environment);
    // Both commands report themselves what is wrong with the settings.
    if (args[0] === "doctor" || args[0] === "setup")
      return await runWithoutSettings(args, environment, unquoted);
    // Variables of the environment win over the file.
    const file = await readEnvFile(".env");
    for (const [name, value] of Object.entries(file?.values ?? {})) environment[name] ??= value;
    const config = parseConfig(environment);
    await goThroughProxies(environment);
    const misspelt = await findMisspeltSettings(file, environment);
    const gatewayConfig = await loadGatewayConfig(config, environment);
    const warnings = [
      ...unquoted.map((name) => `${name} ${unquotedProblem.text}: ${unquotedProblem.remedy}`),
      ...readConfig(environment).warnings,
      ...findUpstreamMistakes(gatewayConfig?.upstreams ?? {}),
    ];
    const secrets = [...config.secrets, ...upstreamKeysOf(gatewayConfig)];
    const problems = createRecentProblems();
    log = createLog({
      level: config.LOG_LEVEL,
      secrets,
      write(line) {
        problems.take(line);
        writeLogLine(line);
      },
    });
    switch (args[0]) {
      case undefined:
        for (const problem of [...warnings, ...misspelt]) log.warn({}, problem);
        expectNone(readConfig(environment).startProblems);
        return await serveBot(config, { gatewayConfig, log, problems });
      case "gateway":
        for (const problem of warnings) log.warn({}, problem);
        return await serveGateway(config, gatewayConfig, log);
      case "settings":
        writeOut(args[1] === "--env" ? toExampleFile() : `${toSettingsTables()}\n`);
        return 0;
      case "account":
        return await manageAccounts(config, args.slice(1), log);
      case "backup":
        return await backUp(config, log, args[1]);
      case "copy":
        return await copy(config, log, args.slice(1));
      case "--check-config": {
        expectNone([...misspelt, ...readConfig(environment).startProblems]);
        const commands = await loadCommands();
        for (const problem of warnings) writeError(`${problem}\n`);
        writeOut(`The settings are right; ${commands.size} commands.\n`);
        return 0;
      }
      default:
        return await runPlatformTool(config, args[0]);
    }
  } catch (error) {
    if (!isParleyError(error)) throw error;
    writeError(`${error.message}\n`);
    exitSoon();
    return 1;
  }
}

/** Runs a command that works without valid settings. Exit code 2 means that it could not run. */
async function runWithoutSettings(
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
  unquoted: readonly string[],
): Promise<number> {
  const [command, ...words] = args;
  const isColoured = process.stdout.isTTY && (environment["NO_COLOR"] ?? "") === "";
  const io = { environment, writeOut, writeError, isColoured };
  try {
    const file = await readEnvFile(".env");
    await goThroughProxies({ ...file?.values, ...environment });
    if (command === "setup") {
      const { runSetup } = await import("./setup-command.ts");
      return await runSetup(words, {
        ...io,
        input: process.stdin,
        output: process.stdout,
        isTerminal: process.stdin.isTTY,
        folder: process.cwd(),
      });
    }
    const { runDoctor } = await import("./doctor-sections.ts");
    return await runDoctor(words, { ...io, unquoted });
  } catch (error) {
    if (!isParleyError(error)) throw error;
    writeError(`${error.message}\n`);
    return 2;
  } finally {
    exitSoon();
  }
}

/** Nothing that connects is loaded before. */
async function goThroughProxies(environment: NodeJS.ProcessEnv): Promise<void> {
  const { adoptProxies } = await import("./support/proxy.ts");
  adoptProxies(environment);
}

async function findMisspeltSettings(
  file: EnvFile | undefined,
  environment: NodeJS.ProcessEnv,
): Promise<string[]> {
  const used = await readGatewayConfigText(environment["GATEWAY_CONFIG"]);
  const names = Object.keys(file?.values ?? {});
  return findMisspelt(names, Object.keys(environment), used).map((one) => toMisspeltProblem(one));
}

async function runPlatformTool(config: Config, name: string): Promise<number> {
  for (const { module, values } of config.platforms) {
    const tool = Object.hasOwn(module.tools, name) ? module.tools[name] : undefined;
    if (tool === undefined) continue;
    writeOut(await tool.run(values, await loadCommands()));
    return 0;
  }
  writeError(`There is no command ${JSON.stringify(name)}.\n\n${toUsage()}`);
  return 2;
}

async function loadGatewayConfig(
  config: Config,
  environment: NodeJS.ProcessEnv,
): Promise<GatewayConfig | undefined> {
  if (config.GATEWAY_CONFIG === undefined) return undefined;
  const { readGatewayConfig } = await import("./compose-gateway.ts");
  return await readGatewayConfig(config.GATEWAY_CONFIG, environment);
}

/** Fills the compile cache, so that the first start finds these modules compiled and without types. */
async function warmUp(): Promise<void> {
  await Promise.all([
    import("./compose.ts"),
    ...platformModules.map((module) => module.load()),
    import("./conversations/open-store.ts"),
    import("./embedded-gateway/embedded-gateway.ts"),
    import("@slack/bolt"),
    loadCommands(),
  ]);
}

/** @throws ParleyError `config` with a line for each problem */
function expectNone(problems: readonly string[]): void {
  if (problems.length > 0) throw new ParleyError("config", problems.join("\n"));
}

/** Runs the bot until a signal. After the loss of the store's data it is started anew once. */
async function serveBot(
  config: Config,
  options: Omit<Parameters<typeof startParley>[1], "commands">,
  isSecond = false,
): Promise<number> {
  const [{ startParley }, commands] = await Promise.all([import("./compose.ts"), loadCommands()]);
  const parley = await startParley(config, { commands, ...options });
  writeOut(`Parley\n${parley.lines.map((line) => `  ${line}\n`).join("")}`);
  const signal = waitForSignal();
  let hasLostData = false;
  try {
    await Promise.race([
      signal.received,
      parley.dataLost.then(() => {
        hasLostData = true;
      }),
      Promise.all([parley.connected, parley.checked]).then(() => {
        releaseYoungGeneration();
        writeOut(toReadyLines(parley.troubles(), parley.advice()));
        return signal.received;
      }),
    ]);
    writeOut(
      hasLostData
        ? "  The store lost its data (see the log): running answers are finished first, then it starts again.\n"
        : "  Stopping: running answers are finished first. Press Ctrl+C again to stop at once.\n",
    );
  } finally {
    await parley.stop();
    signal.forget();
    if (!hasLostData || isSecond) exitSoon();
  }
  if (!hasLostData) return 0;
  return isSecond ? 1 : await serveBot(config, options, true);
}

function toReadyLines(troubles: readonly string[], advice: readonly string[]): string {
  const toLines = (lines: readonly string[]) => lines.map((line) => `    ${line}\n`).join("");
  const remarks = advice.length === 0 ? "" : `  To be set:\n${toLines(advice)}`;
  if (troubles.length === 0) return `  Ready.\n${remarks}`;
  return `  Ready. This does not work:\n${toLines(troubles)}  \`npm run doctor\` says what to do.\n${remarks}`;
}

async function serveGateway(
  config: Config,
  gatewayConfig: GatewayConfig | undefined,
  log: Log,
): Promise<number> {
  const { createConfiguredGateway } = await import("./compose-gateway.ts");
  const apiKeys = (config.GATEWAY_API_KEY ?? "").split(",").flatMap((key) => key.trim() || []);
  const gateway = await createConfiguredGateway(
    { host: config.GATEWAY_HOST, port: config.GATEWAY_PORT, apiKeys },
    log,
    gatewayConfig,
  );
  const { url } = await gateway.listen();
  releaseYoungGeneration();
  writeOut(
    `Parley's embedded gateway\n  GATEWAY_BASE_URL=${url}\n  ${apiKeys.length === 0 ? "no key is asked for (set GATEWAY_API_KEY)" : "asks for GATEWAY_API_KEY"}\n`,
  );
  const signal = waitForSignal();
  await signal.received;
  await gateway.close();
  signal.forget();
  return 0;
}

async function manageAccounts(config: Config, words: readonly string[], log: Log): Promise<number> {
  const [{ createAccounts }, { runAccountCommand }] = await Promise.all([
    import("./platforms/web/accounts/accounts.ts"),
    import("./platforms/web/accounts/account-commands.ts"),
  ]);
  // A running bot sees the change within seconds.
  return await withStore(config, log, besideBot, async (store) => {
    const accounts = createAccounts(store.records);
    writeOut(`${await runAccountCommand(words, accounts, () => readLine(process.stdin))}\n`);
  });
}

/** The first line of a stream, without its line break. */
async function readLine(stream: NodeJS.ReadableStream): Promise<string> {
  const lines = createInterface({ input: stream, crlfDelay: Infinity });
  for await (const line of lines) return line;
  return "";
}

async function backUp(config: Config, log: Log, folder: string | undefined): Promise<number> {
  if (folder === undefined) {
    writeError("Name the folder for the backup: npm run backup -- <new folder>\n");
    return 2;
  }
  return await withStore(config, log, besideBot, async (store) => {
    await store.backup(folder);
    writeOut(
      `Backed up into ${folder}. To restore, stop Parley, then:\n${toRestoreLines(folder, config)}Then start it.\n`,
    );
  });
}

async function copy(config: Config, log: Log, [from, to]: readonly string[]): Promise<number> {
  if (from === undefined || to === undefined) {
    writeError("Name both stores as in STORE_URL: npm run copy -- <from> <to>\n");
    return 2;
  }
  const { copyStore } = await import("./conversations/copy-store.ts");
  const { entries, members, thereBefore, leftOut } = await copyStore({
    from,
    to,
    encryptionKeys: config.STORE_ENCRYPTION_KEYS,
    log,
    tell: (line) => writeOut(`  ${line}\n`),
  });
  writeOut(
    `Copied ${entries - leftOut} of ${entries} entries (${thereBefore} were there) and ${members} members of lists. Set STORE_URL to the new store.\n`,
  );
  if (leftOut > 0) writeOut(`The log names the ${leftOut} entries that cannot be read.\n`);
  return 0;
}

/** The lines of a shell that put a backup in the store's place. What was there is kept. */
function toRestoreLines(folder: string, { dataDir, STORE_URL }: Config): string {
  const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
  const database = basename(STORE_URL.slice(STORE_URL.indexOf(":") + 1));
  const at = (...parts: string[]): string => quote(join(...parts));
  return [
    `mkdir ${at(dataDir, "before-restore")}`,
    `mv ${at(dataDir, database)}* ${at(dataDir, "blobs")} ${at(dataDir, "before-restore")}`,
    `cp -rp ${at(resolve(folder), database)} ${at(resolve(folder), "blobs")} ${quote(dataDir)}`,
  ]
    .map((line) => `  ${line}\n`)
    .join("");
}

/** Opens the store while a bot may use it, too. */
const besideBot = { exclusive: false };

/** Opens the store for some work. Resolves to the exit code. */
async function withStore(
  config: Config,
  log: Log,
  options: Parameters<typeof openConfiguredStore>[2],
  work: (store: Awaited<ReturnType<typeof openConfiguredStore>>) => Promise<void>,
): Promise<number> {
  const store = await openConfiguredStore(config, log, options);
  // Beside a deployment another folder or environment means another store.
  writeError(`Store: ${store.describe()}\n`);
  try {
    await work(store);
  } finally {
    await store.close();
  }
  return 0;
}

/** Ends the process even if a library left handles open. The timer itself does not keep it running. */
function exitSoon(): void {
  // eslint-disable-next-line unicorn/no-process-exit -- everything of ours is closed
  setTimeout(() => process.exit(), 2000).unref();
}

/** Waits for the first SIGINT or SIGTERM. A second one ends the process at once. */
function waitForSignal(): { readonly received: Promise<void>; forget(): void } {
  let receivedOnce = false;
  let resolve: () => void;
  const received = new Promise<void>((done) => {
    resolve = done;
  });
  const onSignal = (): void => {
    // eslint-disable-next-line unicorn/no-process-exit -- the person asked twice
    if (receivedOnce) process.exit(130);
    receivedOnce = true;
    resolve();
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  return {
    received,
    forget() {
      process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
    },
  };
}

function upstreamKeysOf(gatewayConfig: GatewayConfig | undefined): string[] {
  return Object.values(gatewayConfig?.upstreams ?? {}).flatMap(({ apiKey }) => apiKey ?? []);
}

function writeOut(text: string): void {
  process.stdout.write(text);
}

/** Writes readable lines to a terminal, and JSON to a pipe or file. */
function toLogWriter({ NO_COLOR: noColour = "" }: NodeJS.ProcessEnv): (line: string) => void {
  const isColoured = noColour === "";
  return (line) => writeError(process.stderr.isTTY ? toReadableLine(line, { isColoured }) : line);
}

function writeError(text: string): void {
  process.stderr.write(text);
}
