import { allCommands } from "../../support/commands.ts";
/**
 * The bot as `node src/main.ts` starts it, except that it kills itself before or after the n-th call of one store
 * operation, as DIE_AT says: `<operation> <before|after> <n>`.
 */
import type { Store } from "../../../src/conversations/open-store.ts";
import { startParley } from "../../../src/compose.ts";
import { openConfiguredStore } from "../../../src/compose-store.ts";
import { parseConfig } from "../../../src/config.ts";
import { createLog } from "../../../src/operations/log.ts";

const [operation = "", side = "", nth = "1"] = (process.env["DIE_AT"] ?? "").split(" ");
let calls = 0;

async function dieAt<T>(name: string, work: () => Promise<T>): Promise<T> {
  const isIt = name === operation && ++calls === Number(nth);
  if (isIt && side === "before") process.kill(process.pid, "SIGKILL");
  const result = await work();
  if (isIt && side === "after") process.kill(process.pid, "SIGKILL");
  return result;
}

function mortal(store: Store): Store {
  const { inbox, conversations } = store;
  return {
    ...store,
    inbox: {
      ...inbox,
      accept: (event) => dieAt("accept", () => inbox.accept(event)),
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
  openStore: async (...options) => mortal(await openConfiguredStore(...options)),
});
process.stdout.write(`${parley.lines.join("\n")}\n`);
await parley.connected;
process.stdout.write("Ready.\n");
