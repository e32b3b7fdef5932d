import { buffer } from "node:stream/consumers";
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Store } from "../../src/conversations/open-store.ts";
import type { Clock } from "../../src/core/clock.ts";
import { isParleyError } from "../../src/core/errors.ts";
import { systemClock } from "../../src/support/clock.ts";
import { openRawStore, type RawStore } from "../support/raw-store.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";
import {
  againOf,
  beginTurn,
  deletionOf,
  editTo,
  openKeys,
  questionOf,
  stopOf,
} from "../support/turn-steps.ts";

/** A message that is missing is looked for again without a wait. */
const hasty: Clock = { ...systemClock, sleep: async () => {} };
const refused = expect.objectContaining({ code: "internal" });

// Attack: Lone surrogates, long and empty ids, NUL, `__proto__`.
describeStores("ids that a stranger chooses", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await current().open({ retentionDays: 1 });
  });

  it("are refused when no store can hold them", async () => {
    for (const id of ["\ud800", "a\udfff", "a\0b", "x".repeat(1001), "é".repeat(501)]) {
      const author = { id, name: "Eve" };
      const { conversations, inbox, records } = store;
      for (const attempt of [
        () => conversations.append(id, messageOf("m")),
        () => conversations.append("web:1", messageOf(id)),
        () => conversations.append("web:1", { ...messageOf("m"), author }),
        () => conversations.recent(id, { maxMessages: 1 }),
        () => conversations.existing([id]),
        () => conversations.find("web:1", id),
        () => conversations.saveSettings(id, {}),
        () => conversations.saveSettings("web:1", { within: [id] }),
        () => inbox.accept(eventOf(id)),
        () => inbox.accept({ ...eventOf("k"), conversationId: id }),
        () => records.set(id, 1),
        () => records.get(id),
      ])
        await expect(attempt()).rejects.toEqual(refused);
      // Nothing was written halfway.
      expect(await conversations.existing(["web:1"])).toEqual([]);
      expect(await inbox.open()).toEqual([]);
    }
  });

  it("are refused where an event is taken, if they are too long for what is stored with it", async () => {
    const long = (bytes: number) => "/".repeat(bytes);
    for (const id of [long(201), "é".repeat(101), "a\0b"])
      for (const part of [
        { key: id },
        { conversationId: id },
        { author: { id, name: "Eve" } },
        { within: [id] },
      ])
        await expect(store.inbox.accept({ ...eventOf("k"), ...part })).rejects.toEqual(refused);
    expect(await store.inbox.open()).toEqual([]);
    const id = long(200);
    const author = { id, name: "Eve" };
    expect(await store.inbox.accept({ ...eventOf(id, id), author, within: [id] })).toBe("accepted");
    expect(await store.conversations.append(id, { ...messageOf(id), author })).toBe("appended");
    await store.conversations.saveSettings(id, { within: [id] });
    await store.inbox.change(deletionOf(id));
    expect(await store.erasure.forgetAuthor(undefined, id)).toMatchObject({ messages: 1 });
  });

  it("are refused when empty, where an empty one could not be read again", async () => {
    await expect(store.records.set("", 1)).rejects.toEqual(refused);
    await expect(store.inbox.accept(eventOf(""))).rejects.toEqual(refused);
  });

  it("are kept apart and as they are", async () => {
    const { conversations, inbox, records, erasure, lists } = store;
    // prettier-ignore
    for (const id of ["__proto__", "constructor", "toString", "\n", "\ufffd", "../x", "*", "[a-z]*", "::"]) {
    const message = { ...messageOf(id), author: { id, name: id } };
    expect(await conversations.append(id, message)).toBe("appended");
    expect(await conversations.append(`${id}2`, messageOf("other"))).toBe("appended");
    expect(await conversations.find(id, id)).toEqual(message);
    await conversations.saveSettings(id, { title: id, within: [id] });
    expect(await conversations.listWithin(id)).toEqual([id]);
    expect(await lists.list(id, { max: 9 })).toContainEqual(expect.objectContaining({ title: id }));
    expect(await inbox.accept({ ...eventOf(id, id), author: message.author })).toBe("accepted");
    expect(await inbox.accept(eventOf(id, id))).toBe("duplicate");
    expect((await inbox.openIn(id)).map(({ event }) => event.key)).toEqual([id]);
    await inbox.change(deletionOf(id));
    expect(await inbox.openIn(id)).toEqual([]);
    await records.set(id, { [id]: 1 });
    expect(JSON.stringify(await records.get(id))).toBe(JSON.stringify(Object.fromEntries([[id, 1]])));
    expect(await erasure.forgetAuthor(undefined, id)).toMatchObject({ messages: 1, conversations: 1 });
    expect(await conversations.existing([`${id}2`])).toEqual([`${id}2`]);
    }
  });

  it("cannot change prototypes as names of stored fields", async () => {
    const value = JSON.parse(
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
    ) as object;
    await store.records.set("r", value as never);
    expect(JSON.stringify(await store.records.get("r"))).toBe(JSON.stringify(value));
    await store.conversations.saveSettings("web:1", value);
    await store.conversations.saveSettings("web:1", { title: "t" });
    expect(await store.conversations.settings("web:1")).toMatchObject({ title: "t" });
    expect({}).not.toHaveProperty("polluted");
  });

  // Attack: One damaged entry against all others.
  it("cannot choose the name of an exported file by a media type", async () => {
    const blob = { ...(await store.conversations.putBlob("web:1", Buffer.from("x"), "image/constructor")) };
    await store.conversations.append("web:1", {
      ...messageOf("m"),
      parts: [{ kind: "image", blob, name: "constructor" }],
    });
    const names = (await store.exportConversation("web:1")).files.map(({ name }) => name);
    expect(names).toEqual([
      "conversation.md",
      "conversation.json",
      expect.stringMatching(/^image-\w{12}\.bin$/),
    ]);
  });
});

describeStores("a damaged entry", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await current().open();
    for (const n of [1, 2]) {
      await store.conversations.append("web:1", messageOf(`m${n}`));
      await store.inbox.accept(eventOf(`k${n}`, "web:1"));
    }
  });
  const damage = async (space: string, key: string, value: string) => {
    const raw = await openRawStore(current().url);
    await raw.set(space, key, value);
    await raw.close();
  };

  const damages = ["not JSON", "null", "{}", '{"value":null}', '{"value":{"event":5}}'];

  it("of the inbox does not keep the other events from being answered, and can be withdrawn", async () => {
    for (const value of damages) {
      await damage("inbox", "k1", value);
      // The process that accepted them knows them without reading.
      store = await current().reopen();
      expect((await store.inbox.open()).map(({ event }) => event.key)).toEqual(["k2"]);
      expect((await store.inbox.openIn("web:1")).map(({ event }) => event.key)).toEqual(["k2"]);
      await expect(store.inbox.read(["k1"])).rejects.toMatchObject({ code: "store-corrupt" });
      for (const change of [stopOf("k1"), editTo("k1", "new words"), againOf("k1")])
        await expect(store.inbox.change(change)).rejects.toMatchObject({ code: "store-corrupt" });
    }
    expect(await store.inbox.change(deletionOf("k1"))).toMatchObject({ result: "done" });
    expect(await openKeys(store.inbox)).toEqual(["k2"]);
    expect(await store.inbox.accept(eventOf("k1", "web:1"))).toBe("duplicate");
  });

  it("of one event does not keep its turn from being answered, nor of a turn its events from being deleted", async () => {
    for (const key of ["k3", "k4"]) await store.inbox.accept(eventOf(key, "web:1"));
    await beginTurn(store.inbox, ["k1", "k2", "k3", "k4"], { isAsked: false });
    await damage("inbox", "k2", "not JSON");
    store = await current().reopen();
    const begun = await store.inbox.begin(await store.inbox.read(["k1"]));
    expect(begun?.events.map(({ key }) => key)).toEqual(["k1", "k3", "k4"]);
    const attempt = { key: "k1", attempt: 2, conversationId: "web:1" };
    const messages = begun!.events.map((event) => questionOf(event));
    expect(await store.inbox.write(attempt, { kind: "asked", messages })).toEqual({ isWritten: true });
    await damage("inbox", "k1", "not JSON");
    expect(await store.inbox.change(deletionOf("k3"))).toMatchObject({ result: "done" });
    expect(await store.inbox.read(["k3"])).toMatchObject([{ state: "erased" }]);
    expect(await store.conversations.find("web:1", "k3/user")).toBeUndefined();
    expect(await store.conversations.find("web:1", "k4/user")).toBeDefined();
  });

  // Attack: Any JSON or text as any entry, in plain and encrypted stores.
  it("of a conversation is an error of what reads it, never an absent message; it can be deleted", async () => {
    const corrupt = { code: "store-corrupt" };
    const { conversations, erasure, lists } = store;
    for (const [n, value] of damages.entries()) {
      await damage("slot", "web:1/0000000000", value);
      await expect(conversations.recent("web:1", { maxMessages: 9 })).rejects.toMatchObject(corrupt);
      await expect(conversations.find("web:1", "m1")).rejects.toMatchObject(corrupt);
      await expect(store.exportConversation("web:1")).rejects.toMatchObject(corrupt);
      await expect(erasure.forgetAuthor("web:1", "test:ann")).rejects.toMatchObject(corrupt);
      expect(await lists.list("web:", { max: 9 })).toHaveLength(1);
      expect(await conversations.append("web:1", messageOf(`later ${n}`))).toBe("appended");
    }
    await erasure.deleteConversation("web:1");
    expect(await conversations.existing(["web:1"])).toEqual([]);
    expect(await conversations.recent("web:1", { maxMessages: 9 })).toEqual([]);
  });
});

/** These are printed with the shrunk example when a property fails. */
const bounds = { seed: 8, numRuns: 60 };
const id = "web:1";

describeStores("fuzz of stored entries", (current, kind) => {
  const raws: RawStore[] = [];
  afterEach(async () => {
    for (const raw of raws.splice(0)) await raw.close();
  });
  const open = async (encryptionKeys: readonly string[]) => {
    const store = await current().open({ encryptionKeys, clock: hasty });
    const raw = await openRawStore(current().url);
    raws.push(raw);
    const { conversations, inbox, lists } = store;
    for (const n of [1, 2, 3]) await conversations.append(id, messageOf(`m${n}`));
    await conversations.saveSettings(id, { title: "title", within: ["web:place"] });
    const { hash } = await conversations.putBlob(id, Buffer.from("picture"), "image/png");
    for (const key of ["k1", "k2"]) await inbox.accept(eventOf(key, id));
    await beginTurn(inbox, ["k1"], { isAsked: false });
    await store.records.set("r", 1);
    /** These reads are of every kind, and change no entries. */
    const reads: Readonly<Record<string, () => Promise<unknown>>> = {
      recent: () => conversations.recent(id, { maxMessages: 9 }),
      find: () => conversations.find(id, "m1"),
      settings: () => conversations.settings(id),
      existing: () => conversations.existing([id]),
      list: () => lists.list("web:", { max: 9 }),
      getBlob: () => conversations.getBlob(id, hash),
      listOpen: () => inbox.open(),
      openIn: () => inbox.openIn(id),
      lookUp: () => inbox.read(["k1", "k2"]),
      record: () => store.records.get("r"),
      export: async () => {
        const { files } = await store.exportConversation(id);
        return await Promise.all(files.map((file) => buffer(file.read())));
      },
      count: () => store.erasure.countAuthor(undefined, "test:ann"),
    };
    return { store, raw, reads };
  };
  /** Returns results by name. A failure is `store-corrupt` or fails the test. */
  const readAll = async (reads: Readonly<Record<string, () => Promise<unknown>>>) => {
    const results = new Map<string, unknown>();
    for (const [name, read] of Object.entries(reads)) {
      try {
        results.set(name, await read());
      } catch (error) {
        expect(isParleyError(error, "store-corrupt"), `${name}: ${String(error)}`).toBe(true);
      }
    }
    return results;
  };

  const isSmall = (value: unknown) => !/[1-9]\d{4}|e\+/.test(JSON.stringify(value) ?? "");
  const json = fc.jsonValue({ maxDepth: 3 });
  const text = fc.oneof(
    json.map((value) => JSON.stringify(value)),
    json.map((value) => JSON.stringify({ value })),
    fc.string({ unit: "grapheme" }),
    fc.constantFrom(
      "",
      "null",
      "{",
      "[]",
      '{"value"',
      '{"__proto__":{"value":1}}',
      '{"value":{"forgotten":true}}',
    ),
  );

  it("of any text, or with any field changed: an error or a result, never a crash nor a missing message", async () => {
    const { raw, reads } = await open([]);
    const entries = (await raw.all()).filter(([space]) => space !== "meta");
    const mutated = fc
      .tuple(fc.constantFrom(...entries), fc.nat(50), json)
      // A forged position makes reads slow, which docs/security.md says.
      .filter(([[space], , value]) => space !== "head" || isSmall(value))
      .map(([entry, at, value]) => [entry, changeField(entry[2], at, value)] as const);
    const replaced = fc.tuple(fc.constantFrom(...entries), text);
    const before = await readAll(reads);
    await fc.assert(
      fc.asyncProperty(fc.oneof(mutated, replaced), async ([[space, key, whole], value]) => {
        await raw.set(space, key, value);
        try {
          const results = await readAll(reads);
          const recent = results.get("recent") as readonly unknown[] | undefined;
          if (space === "slot" && !value.includes("forgotten") && recent !== undefined)
            expect(recent).toHaveLength(3);
          if (space === "inbox" && key === "k1")
            expect(results.get("listOpen")).toContainEqual(
              expect.objectContaining({ event: expect.objectContaining({ key: "k2" }) }),
            );
        } finally {
          await raw.set(space, key, whole);
        }
      }),
      bounds,
    );
    expect(await readAll(reads)).toEqual(before);
  });

  it("of any text in an encrypted store is refused", async () => {
    const { raw, reads } = await open([randomBytes(32).toString("base64")]);
    const slots = (await raw.all()).filter(([space]) => space === "slot");
    const [, , sealed] = slots[0]!;
    const forged = fc.oneof(
      text,
      fc.base64String().map((base64) => `enc2:${base64}`),
      fc.base64String().map((base64) => `enc1:${base64}`),
      // This is after the key's fingerprint, since a damaged one is reported as the setting.
      fc
        .tuple(
          fc.integer({ min: 12, max: sealed.length - 3 }),
          fc.base64String({ minLength: 4, maxLength: 4 }),
        )
        .map(([at, some]) => sealed.slice(0, at) + some + sealed.slice(at + some.length)),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...slots), forged, async ([space, key, whole], value) => {
        if (value === whole) return;
        await raw.set(space, key, value);
        const outcome = await reads["recent"]!().catch((error: unknown) => error);
        await raw.set(space, key, whole);
        expect(isParleyError(outcome, "store-corrupt") || isParleyError(outcome, "config"), value).toBe(true);
      }),
      bounds,
    );
  });

  it.runIf(kind === "sqlite")("of the store itself: it opens or says why not", async () => {
    const { store, raw } = await open([]);
    await store.close();
    await fc.assert(
      fc.asyncProperty(fc.constantFrom("indexes", "sealing", "key-check"), text, async (key, value) => {
        await raw.set("meta", key, value);
        const outcome = await current()
          .open()
          .catch((error: unknown) => error);
        await raw.delete("meta", key);
        if (!(outcome instanceof Error)) await (outcome as Store).close();
        else expect(isParleyError(outcome, "store-corrupt"), String(outcome)).toBe(true);
      }),
      { ...bounds, numRuns: 40 },
    );
  });
});

/** Returns the stored JSON with the field that is `at` steps into it replaced. */
function changeField(stored: string, at: number, value: unknown): string {
  let left = at;
  return JSON.stringify(JSON.parse(stored), (name, each: unknown) =>
    name !== "" && left-- === 0 ? value : each,
  );
}
