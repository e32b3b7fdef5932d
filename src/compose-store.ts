import type { Log } from "./core/telemetry.ts";
import type { Config } from "./config.ts";
import type { Store, StoreOptions } from "./conversations/open-store.ts";

/** For what comes before and after a gateway call. */
const reserveMarginMs = 5 * 60_000;

/** Opens the store that the settings name. `exclusive: false` opens it beside a running bot. */
export async function openConfiguredStore(
  config: Config,
  log: Log,
  options: Pick<StoreOptions, "exclusive" | "onOperation" | "clock">,
): Promise<Store> {
  const { openStore } = await import("./conversations/open-store.ts");
  return await openStore(config.STORE_URL, {
    log: log.child({ part: "store" }),
    encryptionKeys: config.STORE_ENCRYPTION_KEYS,
    retentionDays: config.RETENTION_DAYS,
    leaseMs: config.STORE_LEASE_MS,
    // A call ends within its total timeout.
    reserveTtlMs: config.GATEWAY_TOTAL_TIMEOUT_MS + reserveMarginMs,
    ...options,
  });
}
