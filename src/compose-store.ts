import type { Config } from "./config.ts";
import type { Store, StoreOptions } from "./conversations/open-store.ts";
import type { CreatedPlatform } from "./core/platform-module.ts";
import type { Archive } from "./core/storage.ts";
import type { Log } from "./core/telemetry.ts";

/** Extra time for what comes before and after a gateway call. */
const reserveMarginMs = 5 * 60_000;

/** Opens the store in the settings. `exclusive: false` opens it while a bot uses it. */
export async function openConfiguredStore(
  config: Config,
  log: Log,
  options: Pick<StoreOptions, "exclusive" | "meter" | "clock" | "onDataLost">,
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

/**
 * An archive that also erases platforms' files. It erases files first, so that an interrupted deletion still
 * finds messages and is repeated.
 */
export function withPlatformFiles(archive: Archive, platforms: readonly CreatedPlatform[]): Archive {
  const erasures = platforms.flatMap(({ erasure }) => erasure ?? []);
  return {
    ...archive,
    async forgetAuthor(conversationId, authorId) {
      for (const erasure of erasures) await erasure.forgetAuthor(conversationId, authorId);
      return await archive.forgetAuthor(conversationId, authorId);
    },
    async deleteConversation(conversationId) {
      for (const erasure of erasures) await erasure.deleteConversation(conversationId);
      return await archive.deleteConversation(conversationId);
    },
  };
}
