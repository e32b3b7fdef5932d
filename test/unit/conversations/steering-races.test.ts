import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createInbox } from "../../../src/conversations/inbox.ts";
import { createKeyValueStore, type KeyValueStore } from "../../../src/conversations/key-value.ts";
import { openSqliteBackend, type SqliteBackend } from "../../../src/conversations/sqlite/sqlite-backend.ts";
import type { Inbox } from "../../../src/core/inbox.ts";
import { silentLog } from "../../support/silent-log.ts";
import { eventOf } from "../../support/store-samples.ts";

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

const openInbox = (store: KeyValueStore): Inbox => createInbox({ store, log: silentLog });

describe("two processes that change an accepted message at the same moment", () => {
  let folder: string;
  let backend: SqliteBackend;
  let store: KeyValueStore;
  let inbox: Inbox;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "parley-races-"));
    backend = openSqliteBackend(join(folder, "parley.db"));
    store = createKeyValueStore(backend);
    inbox = openInbox(store);
  });
  afterEach(async () => {
    await backend.close();
    await rm(folder, { recursive: true });
  });

  const turnOf = (attempts: number) => ({ keys: ["a", "b"], address: { message: "7" }, attempts });
  const edited = { ...eventOf("b", "test:1"), text: "the new words" };
  const edit = (one: Inbox) => one.edit(edited, { at: 5000, attemptsBefore: 1 });
  const entryOf = async (key: string) => (await inbox.lookUp([key]))[0];

  async function accept(): Promise<void> {
    await inbox.accept(eventOf("a", "test:1"));
    await inbox.accept({ ...eventOf("b", "test:1"), text: "the earlier words" });
    await inbox.claimTurn(turnOf(1));
  }
  async function answer(): Promise<void> {
    await accept();
    await inbox.close(["a", "b"], { attempts: 1 });
  }
  /** Returns what is stored for `a` and `b`. */
  async function stored(): Promise<string> {
    return JSON.stringify(await store.getMany("inbox", ["a", "b"]));
  }

  describe.each(["replace", "reopen", "close"] as const)("%s", (name) => {
    const run = async (one: Inbox) => {
      if (name === "replace") return await one.reopen("a", "regenerate", { attempts: 1 });
      return name === "reopen" ? await one.reopen("a", "retry") : await one.close(["a", "b"]);
    };
    const begin = name === "close" ? accept : answer;

    it("loses no edit that was taken in meanwhile", async () => {
      await begin();
      await run(openInbox(withPause(store, () => edit(inbox))));
      expect(await entryOf("b")).toMatchObject({ event: { text: "the new words", edit: { count: 1 } } });
      expect(await stored()).not.toContain("the earlier words");
    });

    it("brings nothing back that was erased meanwhile", async () => {
      await begin();
      await run(openInbox(withPause(store, () => inbox.withdraw(["b"]))));
      expect(await entryOf("b")).toBeUndefined();
      expect(await stored()).not.toContain("the earlier words");
    });
  });

  it("a turn is run again as it is, although its events have changed meanwhile", async () => {
    await accept();
    await inbox.close(["a", "b"], { attempts: 1 });
    const joined = { keys: ["a", "b", "c"], address: { message: "7" }, attempts: 2 };
    const other = openInbox(
      withPause(store, async () => {
        await inbox.accept(eventOf("c", "test:1"));
        await inbox.reopen("a", "retry");
        expect(await inbox.claimTurn(joined)).toBe(true);
      }),
    );
    expect(await other.reopen("a", "retry")).toMatchObject({
      others: [{ key: "b" }, { key: "c" }],
      turn: joined,
    });
  });

  it("an edit brings nothing back that was erased meanwhile", async () => {
    await answer();
    expect(await edit(openInbox(withPause(store, () => inbox.withdraw(["b"]))))).toBe("unknown");
    expect(await stored()).not.toContain("words");
  });

  it("an edit of a message that is answered meanwhile opens it again as answered", async () => {
    await accept();
    const other = openInbox(
      withPause(store, () => inbox.close(["a", "b"], { attempts: 1, edits: new Map() })),
    );
    expect(await edit(other)).toBe("edited");
    expect(await entryOf("b")).toMatchObject({ event: { text: "the new words" }, state: "edited" });
    expect(await entryOf("a")).toMatchObject({ state: "answered" });
  });

  it("an edit leaves the attempts that were claimed meanwhile", async () => {
    await answer();
    const first = { ...eventOf("a", "test:1"), text: "the new words" };
    const other = openInbox(
      withPause(store, async () => {
        expect(await inbox.reopen("a", "regenerate", { attempts: 1 })).toMatchObject({ redo: { since: 1 } });
        expect(await inbox.claimTurn(turnOf(2))).toBe(true);
      }),
    );
    expect(await other.edit(first, { at: 5000, attemptsBefore: 1 })).toBe("edited");
    expect(await entryOf("a")).toMatchObject({ event: { text: "the new words" }, turn: { attempts: 2 } });
  });

  it("a turn is not run again without the message that is being edited", async () => {
    await answer();
    await edit(inbox);
    expect(await inbox.reopen("a", "regenerate", { attempts: 1 })).toBe("open");
    expect(await entryOf("b")).toMatchObject({ event: { text: "the new words" }, state: "edited" });
  });
});
