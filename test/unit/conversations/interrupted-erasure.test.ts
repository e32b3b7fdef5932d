import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { applyEdit } from "../../../src/assistant/turn/read-messages.ts";
import { messageIds } from "../../../src/assistant/turn/stored-messages.ts";
import type { Backend, BackendChange } from "../../../src/conversations/backend.ts";
import { createBlobEntries } from "../../../src/conversations/blobs.ts";
import { createConversationLog } from "../../../src/conversations/conversation-log.ts";
import { createErasure } from "../../../src/conversations/erasure.ts";
import { createKeyValueStore } from "../../../src/conversations/key-value.ts";
import { openSqliteBackend, type SqliteBackend } from "../../../src/conversations/sqlite/sqlite-backend.ts";
import { ParleyError } from "../../../src/core/errors.ts";
import { createKeyedQueue } from "../../../src/support/queues.ts";
import { silentLog } from "../../support/silent-log.ts";
import { eventOf, messageOf } from "../../support/store-samples.ts";

const conversationId = "test:1";
const unavailable = () => Promise.reject(new ParleyError("store-unavailable", "the store is down"));

describe("an erasure during which the store fails once", () => {
  let folder: string;
  let sqlite: SqliteBackend;
  let scrubs = 0;
  /** The next write with such a change fails. */
  let isFailing: ((change: BackendChange) => boolean) | undefined;
  let isScrubFailing = false;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "parley-interrupted-"));
    sqlite = openSqliteBackend(join(folder, "parley.db"));
    isFailing = undefined;
    isScrubFailing = false;
    scrubs = 0;
  });
  afterEach(async () => {
    await sqlite.close();
    await rm(folder, { recursive: true });
  });

  const deletes = (space: string) => (change: BackendChange) =>
    change.kind === "delete" && change.at.space === space;

  function open() {
    const backend: Backend = {
      ...sqlite,
      async apply(conditions, changes, resolves) {
        if (isFailing !== undefined && changes.some(isFailing)) {
          isFailing = undefined;
          return await unavailable();
        }
        return await sqlite.apply(conditions, changes, resolves);
      },
      async scrub() {
        if (isScrubFailing) {
          isScrubFailing = false;
          return await unavailable();
        }
        scrubs++;
        await sqlite.scrub();
      },
    };
    const store = createKeyValueStore(backend);
    const options = { store, blobs: createBlobEntries(store), writers: createKeyedQueue() };
    const conversations = createConversationLog({ ...options, log: silentLog });
    const erasure = createErasure({ ...options, spending: { forgetPerson: () => Promise.resolve() } });
    return { conversations, archive: { ...erasure, exportConversation: unavailable } };
  }

  /** Stores three messages and a summary of the first two. */
  async function sayAndSumUp({ conversations }: ReturnType<typeof open>): Promise<void> {
    for (const key of ["a", "b", "c"])
      await conversations.append(conversationId, messageOf(messageIds.user(key), `the words of ${key}`));
    await conversations.sumUp(
      conversationId,
      {
        before: messageIds.user("c"),
        ahead: messageIds.user("c"),
        maxSize: 9,
        resetAfter: undefined,
        sizeOf: () => 1,
      },
      () => Promise.resolve({ text: "somebody said the words of b" }),
    );
    expect(await conversations.summary(conversationId)).toBeDefined();
  }

  describe("an edit", () => {
    const edited = {
      ...eventOf("b", conversationId),
      text: "the new words",
      edit: { at: 5000, count: 1, takenAt: 5000, attemptsBefore: 1 },
    };

    it("leaves no summary of the earlier words when it is applied again", async () => {
      const opened = open();
      await sayAndSumUp(opened);
      isFailing = deletes("summary");
      await expect(applyEdit(opened, conversationId, edited)).rejects.toMatchObject({
        code: "store-unavailable",
      });
      await applyEdit(opened, conversationId, edited);
      const after = await opened.conversations.find(conversationId, messageIds.user("b"));
      expect(after?.parts).toEqual([{ kind: "text", text: "the new words" }]);
      expect(await opened.conversations.summary(conversationId)).toBeUndefined();
    });

    it("still removes the earlier words from the files when it is applied again", async () => {
      const opened = open();
      await sayAndSumUp(opened);
      isScrubFailing = true;
      await expect(applyEdit(opened, conversationId, edited)).rejects.toMatchObject({
        code: "store-unavailable",
      });
      expect(scrubs).toBe(0);
      await applyEdit(opened, conversationId, edited);
      expect(scrubs).toBe(1);
    });
  });

  describe("the erasure of what the only author wrote", () => {
    const ann = "test:ann";

    it.each([["in one conversation", conversationId] as const, ["everywhere", undefined] as const])(
      "%s is completed when it is repeated",
      async (_, where) => {
        const opened = open();
        const { conversations, archive } = opened;
        await sayAndSumUp(opened);
        await conversations.saveSettings(conversationId, { title: "the words of a" });
        isFailing = deletes("head");
        await expect(archive.forgetAuthor(where, ann)).rejects.toMatchObject({ code: "store-unavailable" });
        expect(await archive.countAuthor(where, ann)).toMatchObject({ messages: 0, conversations: 1 });
        expect(await archive.forgetAuthor(where, ann)).toMatchObject({ messages: 0, conversations: 1 });
        expect(await conversations.exists(conversationId)).toBe(false);
        expect(await conversations.settings(conversationId)).toEqual({});
        expect(await conversations.summary(conversationId)).toBeUndefined();
        expect(await archive.countAuthor(where, ann)).toMatchObject({ messages: 0, conversations: 0 });
      },
    );

    it("does not touch a conversation in which the person never wrote", async () => {
      const opened = open();
      await sayAndSumUp(opened);
      await opened.conversations.saveSettings("test:2", { title: "of others" });
      expect(await opened.archive.forgetAuthor("test:2", ann)).toMatchObject({ conversations: 0 });
      expect(await opened.conversations.exists("test:2")).toBe(true);
    });
  });

  it("keeps the message and its summary together when it is to be replaced", async () => {
    const { conversations, ...others } = open();
    await sayAndSumUp({ conversations, ...others });
    isFailing = deletes("summary");
    const replacement = messageOf(messageIds.user("b"), "the new words");
    await expect(conversations.replace(conversationId, replacement)).rejects.toMatchObject({
      code: "store-unavailable",
    });
    const after = await conversations.find(conversationId, replacement.id);
    expect(after?.parts).toEqual([{ kind: "text", text: "the words of b" }]);
    expect(await conversations.summary(conversationId)).toBeDefined();
    expect(await conversations.replace(conversationId, replacement)).toBe("replaced");
    expect(await conversations.summary(conversationId)).toBeUndefined();
  });
});
