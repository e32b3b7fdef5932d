import { stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { Log } from "../../core/telemetry.ts";
import { steadyClock } from "../../support/steady-clock.ts";
import { unlessMissing } from "../../support/unless-missing.ts";
import type { Backend } from "../backend.ts";
import type { StoreBackend } from "../store-backend.ts";
import type { SqliteBackend } from "./sqlite-backend.ts";

/** The embedded store: one SQLite file and a folder of blobs beside it, for one process. */
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
    const [{ openSqliteBackend, describeLoss }, { backUpFiles }] = await Promise.all([
      import("./sqlite-backend.ts"),
      import("./sqlite-backup.ts"),
    ]);
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
    return {
      backend: exclusive ? await withIntegrityCheck(backend, { file, log }) : backend,
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

/** A small file is checked at once, a large one in the background: damage must not look like missing messages. */
async function withIntegrityCheck(
  backend: SqliteBackend,
  { file, log }: { readonly file: string; readonly log: Log },
): Promise<Backend> {
  const onDamage = (findings: readonly string[]) => {
    backend.markDamaged();
    log.error(
      { findings },
      `the store ${file} is damaged: messages may be missing. Stop Parley, keep a copy of the file, and restore a backup; without one, "sqlite3 parley.db .recover" saves what is readable`,
    );
  };
  if (backend.isSmall()) {
    const findings = backend.findDamage();
    if (findings.length > 0) onDamage(findings);
    return backend;
  }
  const { startIntegrityCheck } = await import("./integrity-check.ts");
  const check = startIntegrityCheck({ file, log, onDamage });
  return {
    ...backend,
    // It reads the log, which cannot be cut meanwhile.
    scrub: () => check.without(() => backend.scrub()),
    async close() {
      await check.close();
      await backend.close();
    },
  };
}

/** `sqlite:///absolute` is taken as well as `sqlite:/absolute` and `sqlite:relative`. */
function pathOf(url: string): string {
  return url.slice("sqlite:".length).replace(/^\/\/(?=\/)/, "");
}
