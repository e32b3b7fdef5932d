import { basename, dirname, join, resolve } from "node:path";
import type { StoreBackend } from "../store-backend.ts";

/** The embedded store: one SQLite file and a folder of blobs beside it, for one process. */
export const sqliteStore: StoreBackend = {
  schemes: ["sqlite"],
  urlForms: ["sqlite:<file>"],
  checkUrl(url) {
    return pathOf(url) === "" ? "names no file: write sqlite:<file>" : undefined;
  },
  dataFolder(url) {
    return dirname(pathOf(url));
  },
  async open(url, { exclusive }) {
    const [{ openSqliteBackend }, { backUpFiles }] = await Promise.all([
      import("./sqlite-backend.ts"),
      import("./sqlite-backup.ts"),
    ]);
    const file = resolve(pathOf(url));
    const folder = join(dirname(file), "blobs");
    const backend = openSqliteBackend(file, { exclusive });
    return {
      backend,
      name: `SQLite file ${file}`,
      blobs: { folder },
      leases: undefined,
      restored: backend.restored,
      backup: (target) =>
        backUpFiles({
          copyDatabase: () => backend.copyTo(join(target, basename(file))),
          blobs: folder,
          target,
        }),
    };
  },
};

/** `sqlite:///absolute` is taken as well as `sqlite:/absolute` and `sqlite:relative`. */
function pathOf(url: string): string {
  return url.slice("sqlite:".length).replace(/^\/\/(?=\/)/, "");
}
