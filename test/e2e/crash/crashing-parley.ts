/**
 * The bot as `node src/main.ts` starts it, except that it kills itself before or after the n-th call of one store
 * operation. DIE_AT is `<operation> <before|after> <n>`.
 */
import { allCommands } from "../../support/commands.ts";
import type { Store } from "../../../src/conversations/open-store.ts";
import { startParley } from "../../../src/compose.ts";
import { openConfiguredStore } from "../../../src/compose-store.ts";
import { parseConfig } from "../../../src/config.ts";
import { createLog } from "../../../src/operations/log.ts";

const [operation = "", side = "", nth = "1"] = (process.env["DIE_AT"] ?? "").split(" ");
let calls = 0;

async function dieAt<T>(name: string, work: () => Promise<T>): Promise<T> {
  const isNow = name === operation && ++calls === Number(nth);
  if (isNow && side === "before") process.kill(process.pid, "SIGKILL");
  const result = await work();
  if (isNow && side === "after") process.kill(process.pid, "SIGKILL");
  return result;
}

/** The store, with the operations that DIE_AT can name. */
function withDeath(store: Store): Store {
  const { inbox, conversations } = store;
  return {
    ...store,
    inbox: {
      ...inbox,
      accept: (event) => dieAt("accept", () => inbox.accept(event)),
      claimTurn: (turn) => dieAt("address", () => inbox.claimTurn(turn)),
      saveTurn: (turn) => dieAt("address", () => inbox.saveTurn(turn)),
      close: (keys) => dieAt("close", () => inbox.close(keys)),
    },
    conversations: {
      ...conversations,
      append: (id, message) => dieAt(message.role, () => conversations.append(id, message)),
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
