import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { helpOf } from "./cli-help.ts";
import { readConfig, settings } from "./config.ts";
import { isParleyError } from "./core/errors.ts";
import type { CommandIo } from "./doctor-command.ts";
import { createDoctorSections, secretsIn } from "./doctor-sections.ts";
import { readEnvFile, setVariables, writeEnvFile, type EnvFile } from "./env-file.ts";
import { listChatModels } from "./gateway/gateway-checks.ts";
import { exitCodes, toExitCode, toReportText } from "./operations/doctor-report.ts";
import { createLog } from "./operations/log.ts";
import { createPrompter, type Prompter } from "./operations/prompter.ts";
import { runChecks, type SectionFindings } from "./operations/run-checks.ts";
import { askForSettings } from "./setup-dialogue.ts";
import { steadyClock } from "./support/steady-clock.ts";

/** {@link CommandIo} for a command that asks. */
export interface SetupIo extends CommandIo {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** Whether a person types at `input`. */
  readonly isTerminal: boolean;
  /** Holds `.env`. */
  readonly folder: string;
}

type Variables = Readonly<Record<string, string>>;

const file = ".env";

/**
 * `parley setup`: asks for the settings, or takes them from options, checks them and writes `.env`. Resolves to the
 * exit code: 0 written, 1 something is wrong and nothing was written, 2 wrong options or no terminal to ask at.
 * @throws ParleyError `config` when `.env` cannot be read or has lines that are not understood
 */
export async function runSetup(words: readonly string[], io: SetupIo): Promise<number> {
  const options = readOptions(words);
  if ("problem" in options) {
    io.writeError(`${options.problem}\n\n${helpOf("setup") ?? ""}`);
    return exitCodes.notRun;
  }
  const { given, isForced, isChecked } = options;
  const asks = Object.keys(given).length === 0;
  if (asks && !io.isTerminal) {
    io.writeError(
      `There is no terminal to ask at: give the settings as options.\n\n${helpOf("setup") ?? ""}`,
    );
    return exitCodes.notRun;
  }
  const old = await readEnvFile(join(io.folder, file));
  // Standard input is left to others where nothing is read from it.
  const prompter = asks || Object.values(given).includes("-") ? createPrompter(io) : undefined;
  try {
    const changes =
      prompter === undefined
        ? given
        : asks
          ? await ask(prompter, old, io)
          : await readFromInput(given, prompter);
    if (!asks && isChecked && !(await passes(changes, old, isForced, io))) return exitCodes.wrong;
    return await write(changes, old, io);
  } catch (error) {
    if (!isParleyError(error, "stopping")) throw error;
    io.writeError(`${error.message}\n`);
    return exitCodes.wrong;
  } finally {
    prompter?.close();
  }
}

interface SetupOptions {
  readonly given: Variables;
  readonly isForced: boolean;
  readonly isChecked: boolean;
}

function readOptions(words: readonly string[]): SetupOptions | { readonly problem: string } {
  const names = new Map(Object.keys(settings).map((name) => [name.toLowerCase().replaceAll("_", "-"), name]));
  try {
    const { values } = parseArgs({
      args: [...words],
      options: {
        ...Object.fromEntries([...names.keys()].map((flag) => [flag, { type: "string" as const }])),
        force: { type: "boolean" as const },
        "no-check": { type: "boolean" as const },
      },
    });
    const given = Object.entries<string | boolean | undefined>(values).flatMap(([flag, value]) => {
      const name = names.get(flag);
      return name === undefined || typeof value !== "string" ? [] : [[name, value.trim()] as const];
    });
    return {
      given: Object.fromEntries(given),
      isForced: values["force"] === true,
      isChecked: values["no-check"] !== true,
    };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : "Unknown option." };
  }
}

/** Options whose value is `-` take a line of standard input each. */
async function readFromInput(given: Variables, prompter: Prompter): Promise<Variables> {
  const changes: Record<string, string> = {};
  for (const [name, value] of Object.entries(given))
    changes[name] = value === "-" ? await prompter.ask(`${name}: `, { isSecret: true }) : value;
  return changes;
}

function ask(prompter: Prompter, old: EnvFile | undefined, io: SetupIo): Promise<Variables> {
  return askForSettings({
    prompter,
    before: { ...io.environment, ...old?.values },
    isColoured: io.isColoured,
    listModels: (answers) => listModels(answers, old, io),
    async check(part, answers) {
      const sections = await check(answers, old, io, part);
      return sections.find(({ title }) => title === part)?.findings ?? [];
    },
  });
}

/** Models that may chat. Why there are none, the checks say. */
async function listModels(
  changes: Variables,
  old: EnvFile | undefined,
  io: SetupIo,
): Promise<readonly string[]> {
  const { config } = readConfig({ ...io.environment, ...old?.values, ...changes });
  const baseUrl = config.GATEWAY_BASE_URL;
  if (baseUrl === undefined) return [];
  const log = createLog({ level: "silent", secrets: [], write() {} });
  return await listChatModels({ baseUrl, apiKey: config.GATEWAY_API_KEY, log });
}

/** Whether the new settings may be written: they are right, or `--force` is given. */
async function passes(
  changes: Variables,
  old: EnvFile | undefined,
  isForced: boolean,
  io: SetupIo,
): Promise<boolean> {
  const sections = await check(changes, old, io);
  io.writeOut(toReportText(sections, io.isColoured));
  if (isForced || toExitCode(sections) === exitCodes.right) return true;
  io.writeError("Nothing was written. Correct what is wrong, or add --force.\n");
  return false;
}

/** The doctor's findings with `changes` in force, of one part or of all. */
async function check(
  changes: Variables,
  old: EnvFile | undefined,
  io: SetupIo,
  part?: string,
): Promise<readonly SectionFindings[]> {
  const environment = { ...io.environment, ...old?.values, ...changes };
  const secrets = secretsIn(environment);
  const log = createLog({ level: "silent", secrets, write() {} });
  // The file is about to be written readable to its owner only.
  const sections = await createDoctorSections({
    environment,
    file: { text: "", values: { ...old?.values, ...changes }, isOpenToOthers: false },
    log,
  });
  return await runChecks(
    sections.filter(({ title }) => part === undefined || title === part),
    { isLive: false, secrets, now: () => steadyClock.now() },
  );
}

async function write(changes: Variables, old: EnvFile | undefined, io: SetupIo): Promise<number> {
  const names = Object.keys(changes).filter((name) => changes[name] !== (old?.values[name] ?? ""));
  if (names.length === 0) {
    io.writeOut(
      `\nNothing to write: ${old === undefined ? "the defaults are in force" : `${file} has all of this already`}.\n`,
    );
    return exitCodes.right;
  }
  const text = old?.text ?? (await readFile(join(import.meta.dirname, "..", ".env.example"), "utf8"));
  const backup = await writeEnvFile(join(io.folder, file), setVariables(text, changes));
  const kept = backup === undefined ? "" : `; the old one is ${file}.backup`;
  io.writeOut(`\nWrote ${names.join(", ")} to ${file}${kept}.\n`);
  const hidden = names.filter((name) => (io.environment[name] ?? changes[name]) !== changes[name]);
  if (hidden.length > 0)
    io.writeOut(`Note: the environment sets ${hidden.join(", ")} too, and wins over ${file}.\n`);
  io.writeOut("Next: npm start\n");
  return exitCodes.right;
}
