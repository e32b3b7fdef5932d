import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { holdYoungGeneration } from "./operations/young-generation.ts";

// The compile cache comes before anything large is loaded, so that later starts reuse compiled code. It is
// beside the code, because others could put code into the system's temporary folder. If it cannot be written,
// there is none, and NODE_COMPILE_CACHE names another folder.
enableCompileCache(join(import.meta.dirname, "../node_modules/.cache/parley"));
holdYoungGeneration();
const { run } = await import("./cli.ts");
process.exitCode = await run(process.argv.slice(2), process.env);
