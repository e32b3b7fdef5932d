import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSettingsReader } from "../../../src/assistant/settings/settings-reader.ts";
import { createHeardAside } from "../../../src/assistant/turn/read-room.ts";
import { changeRoomState } from "../../../src/assistant/turn/stored-messages.ts";
import { createBlobEntries } from "../../../src/conversations/blobs.ts";
import { createConversationLog } from "../../../src/conversations/conversation-log.ts";
import { createErasure } from "../../../src/conversations/erasure.ts";
import {
  createKeyValueStore,
  createSettingsStore,
  type KeyValueStore,
} from "../../../src/conversations/key-value.ts";
import { openSqliteBackend, type SqliteBackend } from "../../../src/conversations/sql/sqlite.ts";
import type { ConversationSettings } from "../../../src/core/storage.ts";
import { createKeyedQueue } from "../../../src/support/queues.ts";
import { messageOf } from "../../support/store-samples.ts";

/** Waits for `meanwhile` before the first write, when everything has been read. */
function withPause(store: KeyValueStore, meanwhile: () => Promise<unknown>): KeyValueStore {
  let isFirst = true;
  const pause = async () => {
    if (!isFirst) return;
    isFirst = false;
    await meanwhile();
  };
  return {
    ...store,
    async write(...args) {
      await pause();
      await store.write(...args);
    },
    async writeIf(...args) {
      await pause();
      return await store.writeIf(...args);
    },
  };
}

/** Opens one process's access to the store. */
function openProcess(store: KeyValueStore) {
  const options = { store, blobs: createBlobEntries(store), writers: createKeyedQueue() };
  const conversations = createConversationLog(options);
  return {
    conversations,
    erasure: createErasure({ ...options, spending: { forgetPerson: () => Promise.resolve() } }),
    heardAside: createHeardAside(conversations),
    settings: createSettingsReader({
      store: createSettingsStore(store, createKeyedQueue()),
      conversations,
      access: { isAdmin: () => false },
      now: () => Date.now(),
    }),
  };
}

type Process = ReturnType<typeof openProcess>;

describe("changes of a conversation's settings at the same moment", () => {
  let folder: string;
  let backend: SqliteBackend;
  let store: KeyValueStore;
  let first: Process;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "parley-races-"));
    backend = openSqliteBackend(join(folder, "parley.db"));
    store = createKeyValueStore(backend);
    first = openProcess(store);
  });
  afterEach(async () => {
    await backend.close();
    await rm(folder, { recursive: true });
  });

  const id = "test:1";
  const now = () => first.conversations.settings(id);
  const dismiss = () => first.conversations.saveSettings(id, { answerTo: "mentions" });

  it("keep the first of two asides", async () => {
    await Promise.all([
      first.heardAside({ kind: "aside", conversationId: id, sentAt: 2000 }),
      first.heardAside({ kind: "aside", conversationId: id, sentAt: 3000 }),
    ]);
    expect(await now()).toMatchObject({ aside: { from: 2000, to: 3000 } });
  });

  it("keep an aside of another process", async () => {
    const second = openProcess(
      withPause(store, () => first.heardAside({ kind: "aside", conversationId: id, sentAt: 2000 })),
    );
    await second.heardAside({ kind: "aside", conversationId: id, sentAt: 3000 });
    expect(await now()).toMatchObject({ aside: { from: 2000, to: 3000 } });
  });

  const changes: Readonly<
    Record<string, [(process: Process) => Promise<unknown>, Partial<ConversationSettings>]>
  > = {
    "an aside": [
      ({ heardAside }) => heardAside({ kind: "aside", conversationId: id, sentAt: 3000 }),
      { aside: { from: 3000, to: 3000 } },
    ],
    "a title": [({ conversations }) => conversations.saveSettings(id, { title: "new" }), { title: "new" }],
    "a message that notes how far the room was read": [
      ({ conversations }) =>
        conversations.append(id, messageOf("m2"), { room: { readUpTo: "m1", readAt: 5 } }),
      { room: { readUpTo: "m1", readAt: 5 } },
    ],
    "a message whose title is erased": [
      ({ erasure }) => erasure.removeMessages(id, { ids: ["m1"] }),
      { model: "m" },
    ],
  };

  it.each(Object.entries(changes))("keep a /dismiss beside %s", async (_, [change, expected]) => {
    await first.conversations.append(id, messageOf("m1"));
    await first.conversations.saveSettings(id, { title: "words of m1", model: "m" });
    await change(openProcess(withPause(store, dismiss)));
    expect(await now()).toMatchObject({ ...expected, answerTo: "mentions" });
  });

  it("keep no title of an erased message", async () => {
    await first.conversations.append(id, messageOf("m1"));
    await first.conversations.saveSettings(id, { title: "words of m1" });
    const second = openProcess(withPause(store, () => first.erasure.removeMessages(id, { ids: ["m1"] })));
    await second.heardAside({ kind: "aside", conversationId: id, sentAt: 3000 });
    expect(await now()).toEqual({ aside: { from: 3000, to: 3000 } });
  });

  it("keep what each says of the room", async () => {
    const second = openProcess(
      withPause(store, () => changeRoomState(first.conversations, id, { readUpTo: "m1", readAt: 5 })),
    );
    const told = { permission: "Read", turnKey: "m1" };
    await changeRoomState(second.conversations, id, { told });
    expect(await now()).toEqual({ room: { readUpTo: "m1", readAt: 5, told } });
  });

  it("keep two choices", async () => {
    const scene = { platform: "test", author: { id: "test:ann", name: "Ann" }, conversationId: id };
    const second = openProcess(
      withPause(store, () => first.settings.change("conversation", scene, { "image-model": "m" })),
    );
    await second.settings.change("conversation", scene, { temperature: 1 });
    expect(await now()).toMatchObject({ chosen: { "image-model": "m", temperature: 1 } });
  });
});
