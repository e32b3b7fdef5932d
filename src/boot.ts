import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { holdYoungGeneration } from "./operations/resource-stack.ts";

// Before anything large is loaded: the second start reuses compiled code (and stripped types) of the first. Beside
// the code and not in the system's temporary folder, where others could put code for this process to run. Where it
// cannot be written there is none, and NODE_COMPILE_CACHE names another.
enableCompileCache(join(import.meta.dirname, "../node_modules/.cache/parley"));
holdYoungGeneration();
const { run } = await import("./cli.ts");
process.exitCode = await run(process.argv.slice(2), process.env);
