import { existsSync } from "node:fs";

/** What installs the package beside this file, from the project's root. `.ci/run` does. */
export const installCommand = "npm ci --prefix test/twins";

/** Whether the simulators of others are installed. On CI (`CI=true`) always, so that nothing is left out there. */
export const hasTwins =
  process.env["CI"] === "true" || existsSync(new URL("node_modules/.package-lock.json", import.meta.url));
