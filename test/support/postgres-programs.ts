import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Debian keeps the programs of each version here, outside of the PATH. */
const folder = "/usr/lib/postgresql";

/** Returns the path of a program of Postgres: that of the PATH, or Debian's newest. */
export function findPostgresProgram(name: "postgres" | "initdb" | "pg_basebackup"): string {
  const isInPath = spawnSync(name, ["--version"], { stdio: "ignore" }).status === 0;
  const versions = isInPath || !existsSync(folder) ? [] : readdirSync(folder);
  const [newest] = versions.toSorted((a, b) => Number(b) - Number(a));
  return newest === undefined ? name : join(folder, newest, "bin", name);
}
