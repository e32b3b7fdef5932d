import { existsSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { unlessMissing } from "../../support/unless-missing.ts";
import type { StoreBackend } from "../backend.ts";

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
  async open(url, options) {
    const [{ openSqliteBackend }, { backUpFiles }] = await Promise.all([
      import("./sqlite.ts"),
      import("./sqlite-file.ts"),
    ]);
    const file = resolve(pathOf(url));
    const folder = join(dirname(file), "blobs");
    const isNew = !existsSync(file);
    const backend = openSqliteBackend(file, options);
    // Who restores a backup may have put only one of the two in its place.
    if (isNew && ((await unlessMissing(readdir(folder))) ?? []).length > 0)
      options.log.warn(
        { file, blobs: folder },
        "a new store was made beside the blobs of another one: to restore a backup, stop and put its database here too",
      );
    return {
      backend,
      name: `SQLite file ${file}`,
      blobs: { folder },
      restored: backend.restored,
      writes: backend.writes,
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

/** The path of a URL. `sqlite:///absolute` works like `sqlite:/absolute` and `sqlite:relative`. */
function pathOf(url: string): string {
  return url.slice("sqlite:".length).replace(/^\/\/(?=\/)/, "");
}
