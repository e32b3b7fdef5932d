import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { Store } from "../../src/conversations/open-store.ts";
import { messageIds } from "../../src/core/message-ids.ts";
import type { StoredMessage } from "../../src/core/storage.ts";
import { openRawStore } from "../support/raw-store.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";
import {
  againOf,
  answerOf,
  answerTurn,
  beginTurn,
  createTurnSteps,
  deletionOf,
  editTo,
  endOf,
  openKeys,
  questionOf,
  stopOf,
  unreadFile,
} from "../support/turn-steps.ts";

const id = "test:1";
const address = { message: "7" };

describeStores("turns", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await current().open();
  });
  const { accept, begin, logOf, recordOf, withFile, write } = createTurnSteps(id, () => store);
  const turnOf = async (key: string) => (await recordOf(key))?.turn;

  describe("accepted events", () => {
    it("are accepted once, also when their deliveries race", async () => {
      const key = freshId();
      const answers = await Promise.all(Array.from({ length: 50 }, () => store.inbox.accept(eventOf(key))));
      expect(answers.filter((answer) => answer === "accepted")).toHaveLength(1);
      expect(answers.filter((answer) => answer === "duplicate")).toHaveLength(49);
    });

    it("are open, the oldest first, and as they were delivered", async () => {
      const keys = Array.from({ length: 20 }, freshId);
      const event = eventOf(keys[0]!);
      await store.inbox.accept(event, 5000);
      for (const key of keys.slice(1)) await store.inbox.accept(eventOf(key));
      store = await current().reopen();
      expect(await openKeys(store.inbox)).toEqual(keys);
      expect(await openKeys(store.inbox, "test:inbox")).toEqual(keys);
      const record = await recordOf(keys[0]!);
      expect(record).toMatchObject({ event, state: "open", version: 1, dueAt: 5000 });
      expect(record?.acceptedAt).toBeGreaterThan(Date.now() - 60_000);
    });

    it("are duplicates from then on, whatever becomes of them, and refused ones too", async () => {
      await answerTurn(store.inbox, [eventOf("over", id)]);
      await begin("first", "joined");
      await accept("open", "deleted");
      await store.inbox.change(deletionOf("deleted"));
      await store.inbox.change(deletionOf("deleted before it came"));
      expect(await store.inbox.refuse("refused")).toBe("refused");
      const known = ["over", "first", "joined", "open", "deleted", "deleted before it came", "refused"];
      for (const key of known) {
        expect(await store.inbox.accept(eventOf(key, id)), key).toBe("duplicate");
        expect(await store.inbox.refuse(key), key).toBe("duplicate");
      }
      expect((await store.inbox.read([...known, "new"])).map(({ event }) => event.key)).toEqual(known);
      expect(await openKeys(store.inbox)).toEqual(["first", "open"]);
    });

    it("are listed in their conversation, which may have any characters, as its key may", async () => {
      const [key, odd] = ["ab😀/%*[x]", "test:😀/%*[x]"];
      await store.inbox.accept(eventOf(key, odd));
      await accept("a");
      expect(await openKeys(store.inbox, odd)).toEqual([key]);
      expect(await openKeys(store.inbox, "test:11")).toEqual([]);
      const attempt = await beginTurn(store.inbox, [key]);
      await write(attempt, endOf(attempt, "the answer"));
      await write(attempt, { kind: "close" });
      expect(await openKeys(store.inbox, odd)).toEqual([]);
      expect(await openKeys(store.inbox)).toEqual(["a"]);
    });
  });

  describe("an attempt", () => {
    it("begins once at what was read, with its questions in the log, and the others joined", async () => {
      await accept("a", "b");
      const read = await store.inbox.read(["a", "b"]);
      const messages = read.map(({ event }) => questionOf(event));
      const noted = { within: ["test:place"] };
      const begun = await Promise.all([1, 2, 3].map(() => store.inbox.begin(read, { messages, noted })));
      const won = begun.filter((one) => one !== undefined);
      expect(won).toHaveLength(1);
      expect(won[0]?.events.map(({ key }) => key)).toEqual(["a", "b"]);
      expect(won[0]?.record).toMatchObject({
        state: "open",
        turn: { keys: ["a", "b"], attempt: 1, since: 0, address: { channel: "c1" } },
      });
      expect(await recordOf("b")).toMatchObject({ state: "joined", in: "a" });
      expect(await openKeys(store.inbox, id)).toEqual(["a"]);
      expect(await logOf()).toEqual(["text of a", "text of b"]);
      expect(await store.conversations.listWithin("test:place")).toEqual([id]);
    });

    it("begins neither where an event has changed since, nor where one is over, erased or joined", async () => {
      await accept("a", "b", "c");
      const stale = await store.inbox.read(["a", "b"]);
      await store.inbox.change(editTo("b", "new words"));
      expect(await store.inbox.begin(stale)).toBeUndefined();
      await store.inbox.change(deletionOf("a"));
      expect(await store.inbox.begin(stale)).toBeUndefined();
      expect(await store.inbox.begin(await store.inbox.read(["a"]))).toBeUndefined();
      await beginTurn(store.inbox, ["b", "c"]);
      expect(await store.inbox.begin(await store.inbox.read(["c"]))).toBeUndefined();
      await answerTurn(store.inbox, [eventOf("over", id)]);
      expect(await store.inbox.begin(await store.inbox.read(["over"]))).toBeUndefined();
      expect((await turnOf("over"))?.attempt).toBe(1);
    });

    it("is not granted to a process that has read where the reply was, and not where it is", async () => {
      const attempt = await begin("a");
      const read = await store.inbox.read(["a"]);
      expect(await write(attempt, { kind: "address", address, shownAs: [], isDurable: true })).toBe(true);
      expect(await store.inbox.begin(read)).toBeUndefined();
      expect(await beginTurn(store.inbox, ["a"])).toMatchObject({ attempt: 2 });
      expect(await turnOf("a")).toMatchObject({ attempt: 2, since: 0, address });
    });

    it("has the events that are left, from the log, when an earlier one ended with its process", async () => {
      await begin("a", "b", "c");
      await store.inbox.change(deletionOf("b"));
      store = await current().reopen();
      const begun = await store.inbox.begin(await store.inbox.read(["a"]));
      expect(begun?.events).toMatchObject([
        { key: "a", text: "" },
        { key: "c", text: "" },
      ]);
      expect(await logOf()).toEqual(["text of a", "text of c"]);
    });

    it("asks with files later, and the places of its conversation are saved then", async () => {
      await store.inbox.accept(withFile("a", "look at this"));
      await store.inbox.accept(eventOf("b", id));
      const attempt = await beginTurn(store.inbox, ["a", "b"], { isAsked: false });
      expect(await logOf()).toEqual([]);
      expect(await recordOf("a")).toMatchObject({
        event: { text: "look at this", attachments: [unreadFile] },
      });
      const messages = [
        { ...messageOf("said before"), room: { isApp: false } },
        { ...questionOf(withFile("a", "look at this"), "look at this, and its words") },
        questionOf(eventOf("b", id)),
      ];
      const noted = { within: ["test:place"], room: { readUpTo: "x" } };
      expect(await write(attempt, { kind: "asked", messages, noted })).toBe(true);
      expect(await logOf()).toEqual(["words of said before", "look at this, and its words", "text of b"]);
      expect(await store.conversations.listWithin("test:place")).toEqual([id]);
      expect(await store.conversations.settings(id)).toMatchObject({ room: { readUpTo: "x" } });
      expect(await recordOf("a")).toMatchObject({ isInLog: true, event: { text: "", attachments: [] } });
      expect(await recordOf("b")).toMatchObject({ isInLog: true, event: { text: "" } });
    });

    it("stores nothing of a message that was deleted while its files were read", async () => {
      await store.inbox.accept(withFile("a", "taken back"));
      await accept("b");
      const attempt = await beginTurn(store.inbox, ["a", "b"], { isAsked: false });
      await store.inbox.change(deletionOf("a"));
      const messages = [questionOf(withFile("a", "taken back")), questionOf(eventOf("b", id))];
      expect(await write(attempt, { kind: "asked", messages })).toBe(false);
      expect(await logOf()).toEqual([]);
      expect(await recordOf("b")).toMatchObject({ state: "joined", event: { text: "text of b" } });
    });
  });

  describe("the address of a reply", () => {
    it("is written as long as no other attempt has begun, because the post exists", async () => {
      const attempt = await begin("a");
      await store.inbox.change(editTo("a", "new words"));
      expect(await write(attempt, { kind: "address", address, shownAs: [] })).toBe(true);
      expect(await turnOf("a")).toMatchObject({ address, since: 1, again: { kind: "edit" } });
      const next = await beginTurn(store.inbox, ["a"]);
      expect(await write(attempt, { kind: "address", address: { late: 1 }, shownAs: [] })).toBe(false);
      await write(next, endOf(next, "the answer"));
      await write(next, { kind: "close" });
      expect(await write(next, { kind: "address", address: { more: 1 }, shownAs: [] })).toBe(true);
      expect(await recordOf("a")).toMatchObject({ state: "over", turn: { address: { more: 1 } } });
    });

    it("notes which messages show the answer, and does not bring an erased one back", async () => {
      const attempt = await begin("a");
      const shownAs = ["shown:1", "shown:2"];
      expect(await write(attempt, { kind: "address", address, shownAs })).toBe(true);
      await write(attempt, endOf(attempt, "the answer"));
      const answerId = messageIds.answer("a");
      await write(attempt, { kind: "address", address, shownAs });
      expect((await store.conversations.find(id, answerId))?.shownAs).toEqual(shownAs);
      await store.erasure.removeMessages(id, { ids: [], shownAs: ["shown:2"] });
      await write(attempt, { kind: "address", address, shownAs });
      expect(await store.conversations.find(id, answerId)).toBeUndefined();
    });
  });

  describe("an attempt that met an outage", () => {
    it("is given back: it is no try, and writes nothing more", async () => {
      const attempt = await begin("a");
      expect(await write(attempt, { kind: "give-back" })).toBe(true);
      expect(await turnOf("a")).toMatchObject({ attempt: 1, since: 1 });
      expect((await turnOf("a"))?.again).toBeUndefined();
      expect(await write(attempt, endOf(attempt, "late"))).toBe(false);
      const next = await beginTurn(store.inbox, ["a"]);
      await write(next, endOf(next, "the answer"));
      const showing = await beginTurn(store.inbox, ["a"]);
      expect(await turnOf("a")).toMatchObject({ attempt: 3, since: 1 });
      expect(await write(showing, { kind: "give-back" })).toBe(true);
      // The end is still to be shown.
      expect(await recordOf("a")).toMatchObject({ state: "ending", turn: { attempt: 3, since: 2 } });
    });
  });

  describe("a turn that runs again", () => {
    it("is open whole, once, with all that it answers, until it has ended again", async () => {
      await answerTurn(store.inbox, [eventOf("a", id), eventOf("b", id)]);
      const press = againOf("a", { attempt: 1, model: "m" });
      const results = await Promise.all([1, 2].map(async () => (await store.inbox.change(press)).result));
      expect(results.toSorted()).toEqual(["done", "under-way"]);
      store = await current().reopen();
      const [record] = await store.inbox.openIn(id);
      expect(record?.turn).toMatchObject({
        keys: ["a", "b"],
        attempt: 1,
        since: 1,
        again: { kind: "regenerate", model: "m" },
      });
      const begun = await store.inbox.begin([record!]);
      expect(begun?.events.map(({ key }) => key)).toEqual(["a", "b"]);
    });

    it("is asked with corrected words, which are in the log with the same write", async () => {
      await answerTurn(store.inbox, [eventOf("a", id), eventOf("b", id)]);
      const toQuestion = (question: StoredMessage): StoredMessage =>
        question.turnKey === "b" ? { ...question, parts: [{ kind: "text", text: "corrected" }] } : question;
      const { result } = await store.inbox.change(againOf("a", { toQuestion }));
      expect(result).toBe("done");
      expect(await logOf()).toEqual(["text of a", "corrected", "the answer"]);
    });

    it("is the last one: another that has begun meanwhile is before it, and a reset ends what was", async () => {
      await answerTurn(store.inbox, [eventOf("a", id)]);
      // Its files are read, and the log does not have it yet.
      await store.inbox.accept(withFile("b", "with a file"));
      await beginTurn(store.inbox, ["b"], { isAsked: false });
      expect(await store.inbox.change(againOf("a"))).toMatchObject({ result: "not-last" });
      await answerTurn(store.inbox, [eventOf("c", id)]);
      await store.conversations.saveSettings(id, { resetAfter: messageIds.answer("c") });
      expect(await store.inbox.change(againOf("c"))).toMatchObject({ result: "not-last" });
    });

    it("waits for people who keep correcting their question, but not for long", async () => {
      await answerTurn(store.inbox, [eventOf("a", id), eventOf("b", id)]);
      const now = Date.now();
      await store.inbox.change(editTo("b", "one", 1000));
      const dueAt = (await recordOf("a"))?.dueAt ?? 0;
      expect(dueAt).toBeGreaterThan(now);
      expect(dueAt).toBeLessThan(Date.now() + 10_000);
      expect((await store.inbox.openIn(id)).map(({ event }) => event.key)).toEqual(["a"]);
      await store.inbox.change(editTo("b", "two", 2000));
      expect(await store.inbox.change(editTo("b", "late", 1500))).toMatchObject({ result: "unchanged" });
      expect(await logOf()).toEqual(["text of a", "two", "the answer"]);
      expect(await turnOf("a")).toMatchObject({ attempt: 1, since: 1 });
    });

    it("has the latest of any number of edits at once", async () => {
      await accept("waiting");
      await begin("begun");
      const times = Array.from({ length: 12 }, (_, n) => ((n * 5) % 12) + 1);
      for (const key of ["waiting", "begun"])
        await Promise.all(times.map((at) => store.inbox.change(editTo(key, `${key} ${at}`, at))));
      expect(await recordOf("waiting")).toMatchObject({ event: { text: "waiting 12", edit: { at: 12 } } });
      expect(await logOf()).toEqual(["begun 12"]);
    });

    it("keeps the earlier words nowhere, nor in the address of its reply", async () => {
      await accept("a");
      const titled = { thread: { title: "text of a" } };
      const attempt = await beginTurn(store.inbox, ["a"]);
      await write(attempt, { kind: "address", address: titled, shownAs: [] });
      await write(attempt, endOf(attempt, "the answer"));
      await write(attempt, { kind: "close" });
      const edit = { ...editTo("a", "new"), toAddress: () => ({ thread: { title: "new" } }) };
      await store.inbox.change({ ...edit, isAsked: false });
      expect(JSON.stringify(await recordOf("a"))).not.toContain("text of a");
      await store.inbox.change({ ...edit, at: 6000 });
      expect(JSON.stringify(await recordOf("a"))).not.toContain("text of a");
    });
  });

  describe("turns of another store or conversation", () => {
    it("are taken over as they are, unless they are known", async () => {
      await store.conversations.append(id, questionOf(eventOf("a", id)));
      const turn = { keys: ["a"], attempt: 3, since: 2, openedAt: 1, address };
      const event = { ...eventOf("a", id), text: "" };
      const record = {
        event,
        acceptedAt: Date.now(),
        state: "over",
        version: 7,
        isInLog: true,
        turn,
      } as const;
      await Promise.all([1, 2].map(() => store.inbox.adopt([record])));
      await answerTurn(store.inbox, [eventOf("b", "test:2")]);
      await store.inbox.adopt([{ ...record, event: { ...event, key: "b" } }]);
      expect(await recordOf("a")).toEqual(record);
      expect(await turnOf("b")).toMatchObject({ attempt: 1 });
      expect(await openKeys(store.inbox)).toEqual([]);
      expect(await store.inbox.change(againOf("a", { attempt: 3 }))).toMatchObject({ result: "done" });
    });
  });

  it("have the words of people in one place after every step, and nowhere what was taken back", async () => {
    const { inbox } = store;
    const raw = await openRawStore(current().url);
    onTestFinished(() => raw.close());
    /** Expects each word in one entry of a space, and all others in none. */
    const expectHomes = async (step: string, homes: Readonly<Record<string, "inbox" | "slot">>) => {
      const entries = await raw.all();
      for (const word of ["first-a", "first-b", "second-a", "second-b", "third-a", "answer-1", "answer-2"]) {
        const found = entries.filter(([, , value]) => value.includes(word)).map(([space]) => space);
        expect(found, `${word} after ${step}`).toEqual(homes[word] === undefined ? [] : [homes[word]]);
      }
    };
    await inbox.accept({ ...eventOf("a", id), text: "first-a" });
    await inbox.accept(withFile("b", "first-b"));
    await expectHomes("accept", { "first-a": "inbox", "first-b": "inbox" });
    await inbox.change(editTo("a", "second-a", 1000));
    await expectHomes("an edit of what waits", { "second-a": "inbox", "first-b": "inbox" });
    await beginTurn(inbox, ["a", "b"], { isAsked: false });
    await expectHomes("begin", { "second-a": "inbox", "first-b": "inbox" });
    await inbox.change(editTo("b", "second-b", 2000));
    await expectHomes("an edit of what runs", { "second-a": "inbox", "second-b": "inbox" });
    const second = await beginTurn(inbox, ["a"]);
    const messages = (await inbox.read(["a", "b"])).map(({ event }) => questionOf(event));
    expect(await write(second, { kind: "asked", messages })).toBe(true);
    await expectHomes("asked", { "second-a": "slot", "second-b": "slot" });
    expect(await write(second, endOf(second, "answer-1"))).toBe(true);
    await write(second, { kind: "close" });
    const answered = { "second-a": "slot", "second-b": "slot", "answer-1": "slot" } as const;
    await expectHomes("close", answered);
    await inbox.change(againOf("a"));
    await expectHomes("again", answered);
    await inbox.change(editTo("a", "third-a", 3000));
    await expectHomes("an edit of what is asked again", {
      "third-a": "slot",
      "second-b": "slot",
      "answer-1": "slot",
    });
    const third = await beginTurn(inbox, ["a"]);
    await inbox.change(deletionOf("b"));
    await expectHomes("a deletion", { "third-a": "slot", "answer-1": "slot" });
    expect(await write(third, endOf(third, "answer-2"))).toBe(false);
    const fourth = await beginTurn(inbox, ["a"]);
    await inbox.change(stopOf("a"));
    expect(await write(fourth, endOf(fourth, "answer-2", { kind: "stopped" }))).toBe(true);
    await write(fourth, { kind: "close" });
    await expectHomes("a stop", { "third-a": "slot", "answer-2": "slot" });
    await inbox.change(deletionOf("a"));
    await expectHomes("the last deletion", { "answer-2": "slot" });
    expect(await inbox.read(["a", "b"])).toMatchObject([{ state: "erased" }, { state: "erased" }]);
  });

  it("of one message after the other name the last one, whatever was erased", async () => {
    await answerTurn(store.inbox, [eventOf("a", id)]);
    await answerTurn(store.inbox, [eventOf("b", id)]);
    await store.inbox.change(deletionOf("b"));
    expect(await store.inbox.change(againOf("a"))).toMatchObject({ result: "not-last" });
    expect(answerOf("a", 1, "x").id).toBe(messageIds.answer("a"));
  });
});
