import { loadCommands } from "../../src/load-commands.ts";

/** These are all commands. A new file in `commands/` takes part in every test. */
export const allCommands = await loadCommands();
