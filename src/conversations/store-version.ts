import { right, warning, wrong, type Finding } from "../core/checks.ts";

/** The finding about a store's version. `version` undefined: nothing is stored yet. */
export function toVersionFinding(name: string, version: number | undefined, known: number): Finding {
  if (version === undefined) return right("Store", `${name}, empty`);
  if (version > known)
    return wrong(
      "Store",
      `${name} was written by a newer Parley: its version is ${version}, this one knows ${known}`,
      "update Parley, or restore an older backup",
    );
  if (version < known)
    return warning(
      "Store",
      `${name} has version ${version}: the next start updates it to ${known}, and earlier versions of Parley then refuse it`,
      "stop every instance and make a backup first: npm run backup -- <new folder>",
    );
  return right("Store", `${name}, version ${version}`);
}
