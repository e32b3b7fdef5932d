import { loadCommands } from "../../src/load-commands.ts";

/** Every command there is: a new file in `commands/` takes part in every test. */
export const allCommands = await loadCommands();
