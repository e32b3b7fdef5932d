import { enableCompileCache } from "node:module";

// Before anything large is loaded: the second start reuses compiled code (and stripped types) of the first.
enableCompileCache();
const { run } = await import("./cli.ts");
process.exitCode = await run(process.argv.slice(2), process.env);
