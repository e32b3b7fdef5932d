// Preloaded by a test with --import: at the end, the files that were loaded and whether Node.js has loaded its `fetch`.
import { registerHooks } from "node:module";

const files = [];
registerHooks({
  load(url, context, nextLoad) {
    files.push(url);
    return nextLoad(url, context);
  },
});
process.on("exit", () => {
  const hasFetch = process.moduleLoadList.some((name) => name.endsWith(" internal/deps/undici/undici"));
  process.stdout.write(`\nloaded: ${JSON.stringify({ files, hasFetch })}\n`);
});
