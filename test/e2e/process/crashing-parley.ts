/** Runs the bot as `node src/main.ts` does, but kills itself at the step in DIE_AT (see `steps.ts`). */
import { allCommands } from "../../support/commands.ts";
import { startParley } from "../../../src/compose.ts";
import { openConfiguredStore } from "../../../src/compose-store.ts";
import { parseConfig } from "../../../src/config.ts";
import { createLog } from "../../../src/operations/log.ts";
import { createSteps, type DieAt } from "../crash/steps.ts";

const steps = createSteps({
  dieAt: process.env["DIE_AT"] as DieAt,
  kill: () => process.kill(process.pid, "SIGKILL"),
  isDead: () => false,
  never: () => new Promise(() => {}),
});
const config = parseConfig(process.env);
const log = createLog({
  level: config.LOG_LEVEL,
  secrets: [],
  write: (text) => void process.stderr.write(text),
});
const parley = await startParley(config, {
  commands: allCommands,
  log,
  openStore: async (...options) => steps.wrap(await openConfiguredStore(...options)),
});
process.stdout.write(`${parley.lines.join("\n")}\n`);
await parley.connected;
process.stdout.write("Ready.\n");
