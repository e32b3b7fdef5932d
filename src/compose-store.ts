import type { Log } from "./core/telemetry.ts";
import type { Config } from "./config.ts";
import type { Store } from "./conversations/open-store.ts";

/** Opens the store that the settings name. `exclusive: false` opens it beside a running bot. */
export async function openConfiguredStore(
  config: Config,
  log: Log,
  options: { readonly exclusive?: boolean },
): Promise<Store> {
  const { openStore } = await import("./conversations/open-store.ts");
  return await openStore(config.STORE_URL, {
    log: log.child({ part: "store" }),
    encryptionKeys: config.STORE_ENCRYPTION_KEYS,
    retentionDays: config.RETENTION_DAYS,
    leaseMs: config.STORE_LEASE_MS,
    ...options,
  });
}
