import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backend, BackendChange } from "../../../src/conversations/backend.ts";
import { createBlobEntries } from "../../../src/conversations/blobs.ts";
import { createConversationLog } from "../../../src/conversations/conversation-log.ts";
import { createErasure } from "../../../src/conversations/erasure.ts";
import { createInbox } from "../../../src/conversations/inbox.ts";
import { createKeyValueStore } from "../../../src/conversations/key-value.ts";
import { openSqliteBackend, type SqliteBackend } from "../../../src/conversations/sql/sqlite.ts";
import { ParleyError } from "../../../src/core/errors.ts";
import { messageIds } from "../../../src/core/message-ids.ts";
import { createKeyedQueue } from "../../../src/support/queues.ts";
import { silentLog } from "../../support/silent-log.ts";
import { eventOf, messageOf } from "../../support/store-samples.ts";
import { againOf, beginTurn, deletionOf, editTo, endOf } from "../../support/turn-steps.ts";

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
        if (resolves === "scrubbed" && isScrubFailing) {
          isScrubFailing = false;
          return await unavailable();
        }
        if (resolves === "scrubbed") scrubs++;
        return await sqlite.apply(conditions, changes, resolves);
      },
    };
    const store = createKeyValueStore(backend);
    const options = { store, blobs: createBlobEntries(store), writers: createKeyedQueue() };
    const conversations = createConversationLog(options);
    const erasure = createErasure({ ...options, spending: { forgetPerson: () => Promise.resolve() } });
    const inbox = createInbox({ ...options, log: silentLog, eraseFiles: erasure.eraseFilesOf });
    return { conversations, inbox, archive: { ...erasure, exportConversation: unavailable } };
  }

  /** Stores three messages of one turn, which is over, and a summary of the first two. */
  async function sayAndSumUp({ conversations, inbox }: ReturnType<typeof open>): Promise<void> {
    const keys = ["a", "b", "c"];
    for (const key of keys)
      await inbox.accept({ ...eventOf(key, conversationId), text: `the words of ${key}` });
    const attempt = await beginTurn(inbox, keys);
    await inbox.write(attempt, endOf(attempt));
    await inbox.write(attempt, { kind: "close" });
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
    const edited = editTo("b", "the new words");

    it("leaves no summary of the earlier words when it is delivered again", async () => {
      const opened = open();
      await sayAndSumUp(opened);
      isFailing = deletes("summary");
      await expect(opened.inbox.change(edited)).rejects.toMatchObject({ code: "store-unavailable" });
      expect(await opened.conversations.summary(conversationId)).toBeDefined();
      expect(await opened.inbox.change(edited)).toMatchObject({ result: "done" });
      const after = await opened.conversations.find(conversationId, messageIds.user("b"));
      expect(after?.parts).toEqual([{ kind: "text", text: "the new words" }]);
      expect(await opened.conversations.summary(conversationId)).toBeUndefined();
    });

    it.each([["an edit", edited] as const, ["a deletion", deletionOf("b")] as const])(
      "still removes the earlier words from the files when it is delivered again: %s",
      async (_, change) => {
        const opened = open();
        await sayAndSumUp(opened);
        isScrubFailing = true;
        await expect(opened.inbox.change(change)).rejects.toMatchObject({ code: "store-unavailable" });
        expect(scrubs).toBe(0);
        await opened.inbox.change(change);
        expect(scrubs).toBe(1);
      },
    );
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
        expect(await conversations.existing([conversationId])).toEqual([]);
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
      expect(await opened.conversations.existing(["test:2"])).toEqual(["test:2"]);
    });
  });

  it("keeps an answer and the summary of it together when it is to be replaced", async () => {
    const opened = open();
    const { conversations, inbox } = opened;
    await sayAndSumUp(opened);
    await inbox.change(againOf("a", { isLastOnly: false }));
    const attempt = await beginTurn(inbox, ["a"]);
    // A message of the summary stands for the answer.
    const answer = { ...messageOf(messageIds.user("b"), "the new words"), attempt: 2 };
    const end = endOf(attempt, undefined, { answer, earlier: "erased" });
    isFailing = deletes("summary");
    await expect(inbox.write(attempt, end)).rejects.toMatchObject({ code: "store-unavailable" });
    const after = await conversations.find(conversationId, answer.id);
    expect(after?.parts).toEqual([{ kind: "text", text: "the words of b" }]);
    expect(await conversations.summary(conversationId)).toBeDefined();
    expect(await inbox.write(attempt, end)).toEqual({ isWritten: true });
    expect(await conversations.summary(conversationId)).toBeUndefined();
  });
});
