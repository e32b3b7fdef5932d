import { right, warning, wrong, type Check, type Finding } from "../core/checks.ts";
import { isParleyError } from "../core/errors.ts";
import type { Log } from "../core/telemetry.ts";
import { backendOf } from "./backends.ts";
import { createEncryption } from "./encryption.ts";
import { inspectedEntries, type StoreInspection } from "./backend.ts";

/** The options of {@link createStoreChecks}. */
interface StoreCheckOptions {
  readonly url: string;
  /** The keys of the settings, newest first, or `undefined` if they are invalid and cannot be checked. */
  readonly encryptionKeys: readonly string[] | undefined;
  readonly log: Log;
  /** The longest wait for a server, in milliseconds. The default of 5 s is below the doctor's deadline. */
  readonly deadlineMs?: number | undefined;
}

/** Checks whether the store of `url` is reachable, writable, current, durable, roomy, and fits its keys. */
export function createStoreChecks(options: StoreCheckOptions): Check[] {
  const { url, encryptionKeys, log, deadlineMs } = options;
  return [
    {
      subject: "Store",
      async run() {
        const backend = backendOf(url);
        if (backend.inspect === undefined)
          return [
            warning("Store", "this kind of store cannot be looked at without opening it", "start Parley"),
          ];
        const inspection = await backend.inspect(url, { log, deadlineMs });
        const isReadable = inspection.findings.every(
          ({ subject, level }) => subject !== "Store" || level !== "wrong",
        );
        return [
          ...inspection.findings,
          ...(isReadable && encryptionKeys !== undefined ? [toKeyFinding(inspection, encryptionKeys)] : []),
        ];
      },
    },
  ];
}

const reencrypt = "run npm run reencrypt once";

function toKeyFinding({ entries, hasEntries }: StoreInspection, keys: readonly string[]): Finding {
  const subject = "Encryption";
  const encryption = createEncryption(keys);
  encryption.acceptsPlain = true;
  const [mark, ...others] = inspectedEntries.flatMap((at, index) => {
    const stored = entries[index];
    return stored === undefined ? [] : [{ at, stored }];
  });
  if (mark === undefined) {
    if (!encryption.isOn) return right(subject, "off (STORE_ENCRYPTION_KEYS is not set)");
    return hasEntries
      ? warning(subject, "on; what was stored before is not encrypted", reencrypt)
      : right(subject, "on");
  }
  try {
    const [state] = [mark, ...others].map(({ at, stored }) => encryption.entries.open(at, stored));
    return state?.includes("migrating") === true
      ? warning(subject, "on; some of what was stored before is not encrypted", reencrypt)
      : right(subject, "on, and the keys fit the store");
  } catch (error) {
    if (!isParleyError(error)) throw error;
    if (error.code !== "config")
      return wrong(subject, "the mark of the store's encryption is damaged", "restore a backup");
    return encryption.isOn
      ? wrong(
          subject,
          "the store is encrypted with a key that is not in STORE_ENCRYPTION_KEYS",
          "add that key after the newest one, separated by a comma",
        )
      : wrong(
          subject,
          "the store is encrypted, and STORE_ENCRYPTION_KEYS is not set",
          "set it to the store's keys",
        );
  }
}
