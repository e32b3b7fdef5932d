import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backend, BackendChange } from "../../src/conversations/backend.ts";
import { backendOf } from "../../src/conversations/backends.ts";
import { readMembers } from "../../src/conversations/conversation-index.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";
import { entryAt } from "../../src/conversations/keys.ts";

describeStores("the backend", (current) => {
  let backend: Backend;
  beforeEach(async () => {
    ({ backend } = await backendOf(current().url).open(current().url, { log: silentLog }));
  });
  afterEach(() => backend.close());

  describe("conditions of a write", () => {
    const id = freshId();
    const slot = (position: number) => entryAt.slot(id, position);
    const set = (position: number, expires?: number): BackendChange => ({
      kind: "set",
      at: slot(position),
      value: '{"value":1}',
      expires,
    });
    const has = async (position: number) => {
      const [found] = await backend.read([slot(position)], "presence");
      return found !== undefined;
    };

    it("that an entry is absent and that one is there: the first that does not hold, and nothing is written", async () => {
      await backend.apply([], [set(0)]);
      const thereIs = { ...slot(0), mustExist: true };
      const thereWouldBe = { ...slot(5), mustExist: true };
      expect(await backend.apply([slot(0)], [set(1)])).toBe(0);
      expect(await backend.apply([slot(1), slot(0)], [set(1)])).toBe(1);
      expect(await backend.apply([slot(1), thereIs, thereWouldBe], [set(1)])).toBe(2);
      expect(await has(1)).toBe(false);
      expect(await backend.apply([slot(1), thereIs], [set(1)])).toBe(-1);
      expect(await has(1)).toBe(true);
    });

    it("that an entry has not changed: with another value, without one and once it has expired it has", async () => {
      const was = (position: number, mustBe: string) => ({ ...slot(position), mustBe });
      await backend.apply([], [set(0), set(2, Date.now() + 60_000)]);
      expect(await backend.apply([was(0, '{"value":2}')], [set(1)])).toBe(0);
      expect(await backend.apply([was(0, '{"value":1}'), was(5, '{"value":1}')], [set(1)])).toBe(1);
      expect(await backend.apply([slot(1), was(0, '{"value":1}'), slot(0)], [set(1)])).toBe(2);
      expect(await has(1)).toBe(false);
      const thereIs = { ...slot(0), mustExist: true };
      expect(
        await backend.apply(
          [slot(1), was(0, '{"value":1}'), thereIs, was(2, '{"value":1}'), slot(5)],
          [set(1), { ...set(0), value: "{}" } as BackendChange],
        ),
      ).toBe(-1);
      expect(await has(1)).toBe(true);
      expect(await backend.apply([was(0, '{"value":1}')], [set(5)])).toBe(0);
      await backend.apply([], [set(2, Date.now() + 1)]);
      await expect.poll(() => has(2)).toBe(false);
      expect(await backend.apply([was(2, '{"value":1}')], [set(5)])).toBe(0);
      expect(await has(5)).toBe(false);
    });

    it("that an entry is there: one that has expired is not", async () => {
      await backend.apply([], [set(0, Date.now() + 1)]);
      await expect.poll(() => has(0)).toBe(false);
      expect(await backend.apply([{ ...slot(0), mustExist: true }], [set(1)])).toBe(0);
    });
  });

  describe("many entries read at once", () => {
    const id = freshId();
    const set = (name: string, expires?: number): BackendChange => ({
      kind: "set",
      at: { space: "record", key: `${id}${name}` },
      value: JSON.stringify({ value: name }),
      expires,
    });
    const allOf = (names: readonly string[]) =>
      names.map((name) => ({ space: "record", key: `${id}${name}` }) as const);
    const presence = async (names: readonly string[]) =>
      (await backend.read(allOf(names), "presence")).map((found) => found !== undefined);

    it("come in the order of their keys, also where one is absent, expired, or asked for twice", async () => {
      const hourMs = 60 * 60 * 1000;
      await backend.apply(
        [],
        [set("b"), set("a"), set("gone", Date.now() - hourMs), set("later", Date.now() + hourMs)],
      );
      // The same key in another space is another entry.
      await backend.apply(
        [],
        [{ ...set("elsewhere"), at: { space: "layer", key: `${id}elsewhere` } } as BackendChange],
      );
      const names = ["later", "a", "never", "b", "gone", "a", "elsewhere"];
      expect(await backend.read(allOf(names))).toEqual([
        '{"value":"later"}',
        '{"value":"a"}',
        undefined,
        '{"value":"b"}',
        undefined,
        '{"value":"a"}',
        undefined,
      ]);
      expect(await presence(names)).toEqual([true, true, false, true, false, true, false]);
    });

    it("may be of several spaces", async () => {
      const elsewhere = { space: "layer", key: `${id}two` } as const;
      await backend.apply([], [set("one"), { ...set("two"), at: elsewhere } as BackendChange]);
      const asked = [...allOf(["two"]), elsewhere, ...allOf(["one"]), elsewhere];
      expect(await backend.read(asked)).toEqual([
        undefined,
        '{"value":"two"}',
        '{"value":"one"}',
        '{"value":"two"}',
      ]);
    });

    it("are absent from the moment they are written with an end that has passed", async () => {
      for (let round = 0; round < 10; round += 1) {
        const name = `ended-${round}`;
        const expires = Date.now() - 10;
        // They are sent together, so that a server reads within the millisecond in which it writes.
        const [values] = await Promise.all([
          backend.apply([], [set(name, expires)]).then(() => backend.read(allOf([name]))),
          backend.read(allOf([name])).then((early) => expect(early).toEqual([undefined])),
        ]);
        expect(values).toEqual([undefined]);
        await backend.apply([], [set(name)]);
        await backend.apply([], [{ kind: "keep", at: { space: "record", key: `${id}${name}` }, expires }]);
        expect(await backend.read(allOf([name]))).toEqual([undefined]);
      }
    });

    it("are told apart whatever characters are in their keys", async () => {
      const names = [
        '"',
        "\\",
        "\\u0000",
        "a",
        "\n",
        "\u2028",
        "\u007f",
        "é",
        "e\u0301",
        "😀",
        "\ufffe",
        "%",
        "'",
        "[1]",
        "{}",
        "null",
        "1",
        "1.0",
        " ",
      ];
      await backend.apply(
        [],
        names.map((name) => set(name)),
      );
      const asked = names.flatMap((name) => [name, `${name}?`]);
      expect(await backend.read(allOf(asked))).toEqual(
        names.flatMap((name) => [JSON.stringify({ value: name }), undefined]),
      );
      expect(await presence(asked)).toEqual(names.flatMap(() => [true, false]));
    });

    it("may be hundreds, or none", async () => {
      const names = Array.from({ length: 700 }, (_, index) => `${index}`);
      await backend.apply(
        [],
        names.map((name) => set(name)),
      );
      const values = await backend.read(allOf(names.toReversed()));
      expect(values).toEqual(names.toReversed().map((name) => JSON.stringify({ value: name })));
      expect(await backend.read([])).toEqual([]);
      expect(await presence([])).toEqual([]);
    });
  });

  describe("pages of an index", () => {
    const count = 1200;

    const nameOf = (n: number): string => `m${String(n).padStart(4, "0")}`;
    const names = Array.from({ length: count }, (_, n) => nameOf(n));
    const fill = (index: string, scoreOf: (n: number) => number) =>
      backend.apply(
        [],
        names.map((member, n) => ({ kind: "add-member", index, member, score: scoreOf(n) })),
      );

    it.each([
      ["scores of their own", (n: number) => n],
      ["the same score", () => 7],
      ["scores that some share", (n: number) => Math.floor(n / 300)],
    ])("all members are read, in order: %s", async (_, scoreOf) => {
      await fill("order", scoreOf);
      expect(await readMembers(backend, "order")).toEqual(names);
    });

    it.each([
      ["scores of their own", (n: number) => n],
      ["the same score", () => 7],
    ])("members that stay are all read once while others are removed: %s", async (_, scoreOf) => {
      await fill("trimmed", scoreOf);
      const removed = new Set<string>();
      const read: string[] = [];
      const whileTrimmed: Backend = {
        ...backend,
        async range(name, page) {
          const found = await backend.range(name, page);
          const members = found.map(({ member }) => member);
          read.push(...members);
          // Some that were read go, the last of them too, and some that were not.
          const next = names[names.indexOf(members.at(-1) ?? "") + 10];
          const gone = [...members.slice(0, 3), ...members.slice(-1), ...(next === undefined ? [] : [next])];
          for (const member of gone) removed.add(member);
          await backend.apply(
            [],
            gone.map((member) => ({ kind: "remove-member", index: "trimmed", member })),
          );
          return found;
        },
      };
      const members = await readMembers(whileTrimmed, "trimmed");
      expect(members.filter((member) => !removed.has(member))).toEqual(
        names.filter((name) => !removed.has(name)),
      );
      expect(read).toHaveLength(new Set(read).size);
    });

    it.each(["lowest-first", "highest-first"] as const)(
      "a page goes on after a member, also where it has gone or has another score: %s",
      async (order) => {
        const score = 7;
        await fill("after", (n) => (n < 100 ? score - 1 : n < 1100 ? score : score + 1));
        const all = order === "lowest-first" ? names : names.toReversed();
        const read = async (after: string | undefined, max = 3) => {
          const cursor = after === undefined ? undefined : { member: after, score };
          const page = { order, after: cursor, max } as const;
          return (await backend.range("after", page)).map(({ member }) => member);
        };
        const behind = (name: string) => all.slice(all.indexOf(name) + 1, all.indexOf(name) + 4);
        expect(await read(undefined, 5000)).toEqual(all);
        for (const n of [100, 101, 500, 1098, 1099]) expect(await read(nameOf(n))).toEqual(behind(nameOf(n)));
        // It stands between 500 and 501 or has stood there, or moves to the end.
        const next = order === "lowest-first" ? nameOf(501) : nameOf(500);
        expect((await read(`${nameOf(500)}x`))[0]).toBe(next);
        const last = { kind: "add-member", index: "after", member: nameOf(600), score: score + 9 } as const;
        await backend.apply([], [last, { kind: "remove-member", index: "after", member: nameOf(700) }]);
        expect(await read(nameOf(600))).toEqual(behind(nameOf(600)));
        expect(await read(nameOf(700))).toEqual(behind(nameOf(700)));
      },
    );

    it("names in any script, and of the greatest length, have one order in which pages go on", async () => {
      const members = ["z", "a", "Z", "ä", "e\u0301", "日本", "😀", "ab", "\uFFFD", "x".repeat(1000)];
      await backend.apply(
        [],
        members.map((member) => ({ kind: "add-member", index: "names", member, score: 0 })),
      );
      for (const order of ["lowest-first", "highest-first"] as const) {
        const whole = await backend.range("names", { order, max: 50 });
        expect(whole.map(({ member }) => member).toSorted()).toEqual(members.toSorted());
        for (const [position, after] of whole.entries()) {
          expect(await backend.range("names", { order, after, max: 50 })).toEqual(whole.slice(position + 1));
          await backend.apply([], [{ kind: "remove-member", index: "names", member: after.member }]);
          expect(await backend.range("names", { order, after, max: 50 })).toEqual(whole.slice(position + 1));
          await backend.apply([], [{ kind: "add-member", index: "names", ...after }]);
        }
      }
    });
  });
});

describeStores("figures", (current, kind) => {
  it("say how large the store is, and grow with it", async () => {
    const store = await current().open();
    const before = await store.sizeBytes();
    expect(before).toBeGreaterThan(0);
    const text = "x".repeat(100_000);
    for (let index = 0; index < 20; index++)
      await store.conversations.append("test:1", {
        ...messageOf(`m${index}`),
        parts: [{ kind: "text", text }],
      });
    // The size in Redis is the whole server's, where others write and delete meanwhile.
    if (kind !== "redis") expect(await store.sizeBytes()).toBeGreaterThan(before ?? 0);
    await store.close();
  });

  it("say how long reads and writes took, and whether they failed", async () => {
    const seen = new Set<string>();
    const store = await current().open({
      meter(event) {
        if (event.kind !== "stored") throw new Error(event.kind);
        expect(event.seconds).toBeGreaterThanOrEqual(0);
        seen.add(`${event.operation} ${event.outcome}`);
      },
    });
    await store.inbox.accept(eventOf("k1"));
    await store.conversations.recent("test:1", { maxMessages: 10 });
    expect([...seen].toSorted()).toEqual(["read ok", "write ok"]);
    await store.close();
    await expect(store.inbox.accept(eventOf("k2"))).rejects.toThrow();
    expect([...seen]).toContain("write error");
  });
});
