import { parseArgs } from "node:util";
import { helpOf } from "./cli-help.ts";
import { createDoctorSections, secretsIn } from "./doctor-sections.ts";
import { readEnvFile } from "./env-file.ts";
import { exitCodes, toExitCode, toReportJson, toReportText } from "./operations/doctor-report.ts";
import { createLog } from "./operations/log.ts";
import { runChecks } from "./operations/run-checks.ts";
import { steadyClock } from "./support/steady-clock.ts";

/** Where a command of the command line reads and writes. */
export interface CommandIo {
  /** Without what is in `.env`. */
  readonly environment: NodeJS.ProcessEnv;
  writeOut(text: string): void;
  writeError(text: string): void;
  readonly isColoured: boolean;
}

/**
 * `parley doctor`: checks the settings and everything that they name. Resolves to the exit code: 0 right, 1 something
 * is wrong, 2 for unknown options.
 * @throws ParleyError `config` when `.env` cannot be read
 */
export async function runDoctor(words: readonly string[], io: CommandIo): Promise<number> {
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
  const secrets = secretsIn(environment);
  // The findings say what matters; a log line beside them would say it twice.
  const log = createLog({ level: "silent", secrets, write() {} });
  const sections = await runChecks(await createDoctorSections({ environment, file, log }), {
    isLive: values.live === true,
    secrets,
    now: () => steadyClock.now(),
  });
  io.writeOut(values.json === true ? toReportJson(sections) : toReportText(sections, io.isColoured));
  return toExitCode(sections);
}
