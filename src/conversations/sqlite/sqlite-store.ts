import { stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { Log } from "../../core/telemetry.ts";
import { steadyClock } from "../../support/clock.ts";
import { unlessMissing } from "../../support/unless-missing.ts";
import type { StoreBackend } from "../backend.ts";
import type { SqliteBackend } from "./sqlite-backend.ts";

/** The embedded store for one process: an SQLite file with a folder of blobs beside it. */
export const sqliteStore: StoreBackend = {
  schemes: ["sqlite"],
  urlForms: ["sqlite:<file>"],
  isShared: false,
  checkUrl(url) {
    return pathOf(url) === "" ? "names no file: write sqlite:<file>" : undefined;
  },
  dataFolder(url) {
    return dirname(pathOf(url));
  },
  async inspect(url) {
    const { inspectSqlite } = await import("./inspect-sqlite.ts");
    return await inspectSqlite(resolve(pathOf(url)));
  },
  async open(url, { exclusive = true, log, clock }) {
    const { backUpFiles, describeLoss, openSqliteBackend } = await import("./sqlite-backend.ts");
    const file = resolve(pathOf(url));
    const folder = join(dirname(file), "blobs");
    const openedAt = steadyClock.now();
    const backend = openSqliteBackend(file, { exclusive, clock });
    if (backend.lostAfter !== undefined) {
      log.error(
        { lostAfter: backend.lostAfter },
        `${describeLoss(backend.lostAfter)}. Messages and answers since then are gone, and Parley goes on without them. To get them back, stop it and restore a backup, or database and -wal together as they were before this start`,
      );
    }
    if (
      backend.restored !== undefined &&
      backend.restored.restoredAt >= openedAt &&
      backend.lostAfter === undefined
    )
      log.info({ ...backend.restored }, "the store was restored from a backup");
    if (exclusive) checkSmallFile(backend, { file, log });
    return {
      backend,
      name: `SQLite file ${file}`,
      blobs: { folder },
      leases: undefined,
      restored: backend.restored,
      sizeBytes: () => sizeOfFiles([file, `${file}-wal`]),
      backup: (target) =>
        backUpFiles({
          copyDatabase: () => backend.copyTo(join(target, basename(file))),
          blobs: folder,
          target,
        }),
    };
  },
};

async function sizeOfFiles(files: readonly string[]): Promise<number> {
  const sizes = await Promise.all(files.map((file) => unlessMissing(stat(file).then(({ size }) => size))));
  return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
}

/** Checks a small file when it is opened. Only the doctor checks a large one as a whole. */
function checkSmallFile(
  backend: SqliteBackend,
  { file, log }: { readonly file: string; readonly log: Log },
): void {
  if (!backend.isSmall()) return;
  const findings = backend.findDamage();
  if (findings.length === 0) return;
  backend.markDamaged();
  log.error(
    { findings },
    `the store ${file} is damaged: messages may be missing. Stop Parley, keep a copy of the file, and restore a backup; without one, "sqlite3 parley.db .recover" saves what is readable`,
  );
}

/** The path of a URL. `sqlite:///absolute` works like `sqlite:/absolute` and `sqlite:relative`. */
function pathOf(url: string): string {
  return url.slice("sqlite:".length).replace(/^\/\/(?=\/)/, "");
}
