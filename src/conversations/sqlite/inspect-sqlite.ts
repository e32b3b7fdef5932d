import { existsSync } from "node:fs";
import { mkdtemp, rmdir, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { right, warning, wrong, type Finding } from "../../core/checks.ts";
import { isParleyError } from "../../core/errors.ts";
import { toVersionFinding } from "../store-keys.ts";
import { inspectedEntries, type StoreInspection } from "../backend.ts";
import { schemaVersion, minFreeBytes, toSqliteStoreError, findDamage } from "./sqlite-file.ts";

const mebibyte = 1024 * 1024;
/** Enough for a few days of pictures. */
const fewFreeBytes = 256 * mebibyte;
const busyTimeoutMs = 2000;
/** NFS, SMB and CIFS in `statfs`, whose locks and syncs do not keep SQLite's promises. */
const networkFileSystems: ReadonlySet<number> = new Set([0x6969, 0x517b, 0xff534d42, 0xfe534d42]);

/** Inspects an SQLite file and its folder. It does not create a missing file. */
export async function inspectSqlite(file: string): Promise<StoreInspection> {
  const folder = nearestFolder(dirname(file));
  const space = await toSpaceFindings(folder);
  const unwritable = await probeFolder(folder, file);
  if (unwritable !== undefined) return { findings: [unwritable, ...space], hasEntries: false, entries: [] };
  if (!existsSync(file)) {
    const findings = [right("Store", `${file} does not exist yet: the first start creates it`), ...space];
    return { findings, hasEntries: false, entries: [] };
  }
  try {
    const { findings, ...rest } = inspectFile(file);
    return { findings: [...findings, ...space], ...rest };
  } catch (error) {
    const { message } = toSqliteStoreError(error, file);
    const [problem = message, remedy = "see docs/operations.md"] = message.split(/: (.*)/s);
    return { findings: [wrong("Store", problem, remedy), ...space], hasEntries: false, entries: [] };
  }
}

/** Takes the write lock and gives it back, which fails for a read-only or damaged file. It writes nothing. */
function inspectFile(file: string): StoreInspection {
  const database = new DatabaseSync(file, { timeout: busyTimeoutMs });
  try {
    const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
    database.exec("BEGIN IMMEDIATE; ROLLBACK");
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    const hasTables = tables.length > 0;
    if (version === 0 && hasTables) {
      const problem = wrong(
        "Store",
        `${file} is an SQLite file of another program`,
        "set STORE_URL to a file of its own",
      );
      return { findings: [problem], hasEntries: false, entries: [] };
    }
    const findings = [
      toVersionFinding(`SQLite file ${file}`, version === 0 ? undefined : version, schemaVersion),
    ];
    const damage = findDamage(database);
    if (damage.length > 0)
      findings.push(
        wrong(
          "Integrity",
          `the file is damaged: ${damage[0]}`,
          "stop Parley, keep a copy of the file, restore a backup",
        ),
      );
    if (!tables.some(({ name }) => name === "entries")) return { findings, hasEntries: false, entries: [] };
    const read = database.prepare("SELECT value FROM entries WHERE namespace = ? AND key = ?");
    return {
      findings,
      hasEntries: database.prepare("SELECT 1 FROM entries LIMIT 1").get() !== undefined,
      entries: inspectedEntries.map(({ space, key }) => {
        const value = read.get(space, key)?.["value"];
        return typeof value === "string" ? value : undefined;
      }),
    };
  } finally {
    database.close();
  }
}

function nearestFolder(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearestFolder(dirname(folder));
}

const unwritableRemedies: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full: make room",
  EDQUOT: "a quota is reached: raise it, or make room",
  EROFS: "the file system is read-only: mount it writable, or set STORE_URL to a file elsewhere",
};

/** Tests by writing, because permissions do not show a read-only file system or a reached quota. */
async function probeFolder(folder: string, file: string): Promise<Finding | undefined> {
  try {
    await rmdir(await mkdtemp(join(folder, ".parley-doctor-")));
    return undefined;
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? "unknown";
    return wrong(
      "Store",
      `${folder} cannot be written (${reason}), so ${file} cannot be either`,
      unwritableRemedies[reason] ??
        "give Parley's user write permission there, or set STORE_URL to a file elsewhere",
    );
  }
}

async function toSpaceFindings(folder: string): Promise<Finding[]> {
  try {
    const { bavail, bsize, type } = await statfs(folder);
    const freeBytes = bavail * bsize;
    const free =
      freeBytes >= 1024 * mebibyte
        ? `${Math.floor(freeBytes / mebibyte / 1024)} GiB`
        : `${Math.floor(freeBytes / mebibyte)} MiB`;
    const remedy = `make room on the disk of ${folder}`;
    return [
      freeBytes < minFreeBytes
        ? wrong("Free space", `only ${free}: new messages are refused soon`, remedy)
        : freeBytes < fewFreeBytes
          ? warning("Free space", `only ${free}`, remedy)
          : right("Free space", free),
      networkFileSystems.has(type)
        ? warning(
            "Durability",
            "the file is on a network file system, which may lose what was acknowledged and damage the file",
            "put it on a local disk, or use a server: STORE_URL=redis://…",
          )
        : right("Durability", "every message is on disk before it is acknowledged"),
    ];
  } catch (error) {
    if (isParleyError(error)) throw error;
    return [];
  }
}
