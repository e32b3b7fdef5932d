import type { Archive } from "./core/storage.ts";
import type { CreatedPlatform } from "./core/platform-module.ts";

/**
 * An archive that erases platforms' own files too. Files first: a deletion that was interrupted then still finds
 * messages, and is run again.
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
