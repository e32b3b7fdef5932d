#!/usr/bin/env node
// The entry of every command. It is JavaScript, and `main.ts` is a link to it, because a Node.js without type
// stripping cannot read a .ts file. Nothing here may be newer than Node.js 14.8.
import { existsSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [, program = "", ...words] = process.argv;
// The package is the one beside the named file, because the link may lead to another copy of the project.
const here = basename(program) === "main.ts" ? pathToFileURL(program) : new URL(import.meta.url);
const { engines } = JSON.parse(readFileSync(new URL("../package.json", here), "utf8"));
const needed = String(engines.node).replace(/[^\d.]/g, "");

/** @returns {boolean} */
function isOld() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const [neededMajor = 0, neededMinor = 0] = needed.split(".").map(Number);
  return major < neededMajor || (major === neededMajor && minor < neededMinor);
}

/** @returns {string} */
function remedy() {
  const own = new URL("../node_modules/.bin/node", here);
  if (!existsSync(own))
    return process.platform === "linux" || process.platform === "win32"
      ? "Run `npm ci` in Parley's folder: it brings a Node.js of its own, which `npm start` uses."
      : `Install it first: \`brew install node@${needed.split(".")[0]}\` on a Mac, or from https://nodejs.org/en/download. Then run \`npm ci\` in Parley's folder.`;
  const command = [fileURLToPath(own), program, ...words].map((word) =>
    /^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word),
  );
  return `Use npm, which runs the one that came with Parley (npm start, npm run doctor), or:\n  ${command.join(" ")}`;
}

if (isOld()) {
  process.stderr.write(
    `Parley needs Node.js ${needed} or newer; this is ${process.versions.node}.\n${remedy()}\n`,
  );
  process.exitCode = 1;
} else {
  try {
    await import(new URL("boot.ts", here).href);
  } catch (error) {
    const { code, message } = Object(error);
    if (code !== "ERR_MODULE_NOT_FOUND" || !String(message).startsWith("Cannot find package")) throw error;
    process.stderr.write(
      "Parley's packages are not all installed. Run `npm ci` in Parley's folder, then try again.\n",
    );
    process.exitCode = 1;
  }
}
