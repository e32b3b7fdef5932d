import { buffer } from "node:stream/consumers";
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { isParleyError } from "../../src/core/errors.ts";
import { openRawStore, type RawStore } from "../support/raw-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

/** Printed with the shrunk example when a property fails. */
const bounds = { seed: 8, numRuns: 300 };
const id = "web:1";

describeStores("fuzz of stored entries", (current, kind) => {
  const opened: (Store | RawStore)[] = [];
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
  });
  const open = async (encryptionKeys: readonly string[]) => {
    const store = await openStore(current().url, { log: silentLog, encryptionKeys });
    opened.push(store);
    const raw = await openRawStore(current().url);
    opened.push(raw);
    const { conversations, inbox } = store;
    for (const n of [1, 2, 3]) await conversations.append(id, messageOf(`m${n}`));
    await conversations.saveSettings(id, { title: "title", within: ["web:place"] });
    const { hash } = await conversations.putBlob(id, Buffer.from("picture"), "image/png");
    for (const key of ["k1", "k2"]) await inbox.accept(eventOf(key, id));
    await inbox.saveTurn({ keys: ["k1"], address: {}, attempts: 1 });
    await store.records.set("r", 1);
    /** Reads of every kind; none of them changes the entries. */
    const reads: Readonly<Record<string, () => Promise<unknown>>> = {
      recent: () => conversations.recent(id, { maxMessages: 9 }),
      find: () => conversations.find(id, "m1"),
      settings: () => conversations.settings(id),
      exists: () => conversations.exists(id),
      list: () => conversations.list("", { max: 9 }),
      getBlob: () => conversations.getBlob(id, hash),
      listOpen: () => inbox.listOpen(),
      listOpenIn: () => inbox.listOpenIn(id),
      lookUp: () => inbox.lookUp(["k1", "k2"]),
      isOpen: () => inbox.isOpen("k1"),
      record: () => store.records.get("r"),
      export: async () => {
        const { files } = await store.exportConversation(id);
        return await Promise.all(files.map((file) => buffer(file.read())));
      },
      count: () => store.erasure.countAuthor(undefined, "test:ann"),
    };
    return { store, raw, reads };
  };
  /** Results by name; a failure is `store-corrupt` or fails the test. */
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

  it(
    "of any text, or with any field changed: an error or a result, never a crash nor a missing message",
    { timeout: 60_000 },
    async () => {
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
    },
  );

  it("of any text in an encrypted store is refused", { timeout: 60_000 }, async () => {
    const { raw, reads } = await open([randomBytes(32).toString("base64")]);
    const slots = (await raw.all()).filter(([space]) => space === "slot");
    const [, , sealed] = slots[0]!;
    const forged = fc.oneof(
      text,
      fc.base64String().map((base64) => `enc2:${base64}`),
      fc.base64String().map((base64) => `enc1:${base64}`),
      // Beyond the fingerprint of the key: without it the setting is named instead.
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

  it.runIf(kind === "sqlite")(
    "of the store itself: it opens or says why not",
    { timeout: 60_000 },
    async () => {
      const { store, raw } = await open([]);
      await store.close();
      opened.splice(opened.indexOf(store), 1);
      await fc.assert(
        fc.asyncProperty(fc.constantFrom("indexes", "sealing", "key-check"), text, async (key, value) => {
          await raw.set("meta", key, value);
          const outcome = await openStore(current().url, { log: silentLog }).catch((error: unknown) => error);
          await raw.delete("meta", key);
          if (!(outcome instanceof Error)) await (outcome as Store).close();
          else expect(isParleyError(outcome, "store-corrupt"), String(outcome)).toBe(true);
        }),
        { ...bounds, numRuns: 100 },
      );
    },
  );
});

/** The stored JSON with the field that is `at` steps into it replaced. */
function changeField(stored: string, at: number, value: unknown): string {
  let left = at;
  return JSON.stringify(JSON.parse(stored), (name, each: unknown) =>
    name !== "" && left-- === 0 ? value : each,
  );
}
