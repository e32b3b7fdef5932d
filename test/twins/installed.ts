import { existsSync } from "node:fs";

/** This installs the packages beside this file, from the project's root. `.ci/run` runs it. */
export const installCommand = "npm ci --prefix test/twins";

/** Whether the simulators of others are installed. On CI (`CI=true`) this is always true. */
export const hasTwins =
  process.env["CI"] === "true" || existsSync(new URL("node_modules/.package-lock.json", import.meta.url));
