import { expect, it } from "vitest";
import type { Archive, ErasureReport } from "../../src/core/storage.ts";
import { withPlatformFiles } from "../../src/compose-store.ts";
import { createFakePlatform } from "../support/fakes.ts";

it("an archive erases the files of every platform before what the store has", async () => {
  const calls: string[] = [];
  const report: ErasureReport = { messages: 1, blobs: 0, conversations: 0, settings: 0, ratings: 0 };
  const archive: Archive = {
    exportConversation: () => Promise.resolve({ title: "", files: [] }),
    countAuthor: () => Promise.resolve(report),
    removeMessages: () => Promise.resolve(report),
    replaceMessage: () => Promise.resolve(false),
    async forgetAuthor(conversationId, authorId) {
      calls.push(`store forgets ${conversationId} ${authorId}`);
      return report;
    },
    async deleteConversation(conversationId) {
      calls.push(`store deletes ${conversationId}`);
      return report;
    },
  };
  const { platform } = createFakePlatform();
  const erasure = {
    async forgetAuthor(conversationId: string | undefined, authorId: string) {
      calls.push(`page forgets ${conversationId} ${authorId}`);
    },
    async deleteConversation(conversationId: string) {
      calls.push(`page deletes ${conversationId}`);
    },
  };
  const whole = withPlatformFiles(archive, [{ platform }, { platform, erasure }]);
  expect(await whole.forgetAuthor(undefined, "a")).toBe(report);
  expect(await whole.deleteConversation("web:c")).toBe(report);
  expect(calls).toEqual([
    "page forgets undefined a",
    "store forgets undefined a",
    "page deletes web:c",
    "store deletes web:c",
  ]);
});
