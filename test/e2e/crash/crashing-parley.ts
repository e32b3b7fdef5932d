/**
 * The bot as `node src/main.ts` starts it, except that it kills itself before or after the n-th call of one store
 * operation. DIE_AT is `<operation> <before|after> <n>`. Each call that is done is printed as `store: <operation> <n>`.
 */
import { flushCompileCache } from "node:module";
import { allCommands } from "../../support/commands.ts";
import type { Store } from "../../../src/conversations/open-store.ts";
import { startParley } from "../../../src/compose.ts";
import { openConfiguredStore } from "../../../src/compose-store.ts";
import { parseConfig } from "../../../src/config.ts";
import { createLog } from "../../../src/operations/log.ts";

const [operation = "", side = "", nth = "1"] = (process.env["DIE_AT"] ?? "").split(" ");
const calls = new Map<string, number>();

async function dieAt<T>(name: string, work: () => Promise<T>): Promise<T> {
  const call = (calls.get(name) ?? 0) + 1;
  calls.set(name, call);
  const isNow = name === operation && call === Number(nth);
  if (isNow && side === "before") process.kill(process.pid, "SIGKILL");
  const result = await work();
  if (isNow && side === "after") process.kill(process.pid, "SIGKILL");
  process.stdout.write(`store: ${name} ${call}\n`);
  return result;
}

/** The store, with the operations that DIE_AT can name. */
function withDeath(store: Store): Store {
  const { inbox, conversations, erasure } = store;
  return {
    ...store,
    inbox: {
      ...inbox,
      accept: (event) => dieAt("accept", () => inbox.accept(event)),
      edit: (...edit) => dieAt("edit", () => inbox.edit(...edit)),
      claimTurn: (turn) => dieAt("address", () => inbox.claimTurn(turn)),
      saveTurn: (...turn) => dieAt("address", () => inbox.saveTurn(...turn)),
      close: (...closed) => dieAt("close", () => inbox.close(...closed)),
      redo: (...given) => dieAt("redo", () => inbox.redo(...given)),
      stop: (...stopped) => dieAt("stop", () => inbox.stop(...stopped)),
    },
    conversations: {
      ...conversations,
      append: (...message) => dieAt(message[1].role, () => conversations.append(...message)),
      replace: (...answer) => dieAt("replace", () => conversations.replace(...answer)),
      saveSettings: (id, settings) => dieAt("settings", () => conversations.saveSettings(id, settings)),
      noteSettings: (id, settings) => dieAt("noted-settings", () => conversations.noteSettings(id, settings)),
    },
    erasure: {
      ...erasure,
      replaceMessage: (...question) => dieAt("new-question", () => erasure.replaceMessage(...question)),
    },
  };
}

const config = parseConfig(process.env);
const log = createLog({
  level: config.LOG_LEVEL,
  secrets: [],
  write: (text) => void process.stderr.write(text),
});
const parley = await startParley(config, {
  commands: allCommands,
  log,
  openStore: async (...options) => withDeath(await openConfiguredStore(...options)),
});
process.stdout.write(`${parley.lines.join("\n")}\n`);
await parley.connected;
process.stdout.write("Ready.\n");
// It is killed: what Node has compiled would be written at an exit.
flushCompileCache();
