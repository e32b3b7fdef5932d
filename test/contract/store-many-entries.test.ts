import { afterEach, beforeEach, expect, it } from "vitest";
import type { Backend, BackendChange } from "../../src/conversations/backend.ts";
import { backendOf } from "../../src/conversations/backends.ts";
import { silentLog } from "../support/silent-log.ts";
import { freshId } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

describeStores("many entries read at once", (current) => {
  let backend: Backend;
  beforeEach(async () => {
    ({ backend } = await backendOf(current().url).open(current().url, { log: silentLog }));
  });
  afterEach(() => backend.close());

  const id = freshId();
  const set = (name: string, expires?: number): BackendChange => ({
    kind: "set",
    at: { space: "record", key: `${id}${name}` },
    value: JSON.stringify({ value: name }),
    expires,
  });
  const keysOf = (names: readonly string[]) => names.map((name) => `${id}${name}`);

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
    const reader = backend.reader("record");
    expect(await reader.getMany(keysOf(names))).toEqual([
      '{"value":"later"}',
      '{"value":"a"}',
      undefined,
      '{"value":"b"}',
      undefined,
      '{"value":"a"}',
      undefined,
    ]);
    expect(await reader.hasMany(keysOf(names))).toEqual([true, true, false, true, false, true, false]);
  });

  it("are absent from the moment they are written with an end that has passed", async () => {
    const reader = backend.reader("record");
    for (let round = 0; round < 50; round += 1) {
      const name = `ended-${round}`;
      const expires = Date.now() - 10;
      // Sent together, so that a server reads within the millisecond in which it writes.
      const [values] = await Promise.all([
        backend.apply([], [set(name, expires)]).then(() => reader.getMany(keysOf([name]))),
        reader.getMany(keysOf([name])).then((early) => expect(early).toEqual([undefined])),
      ]);
      expect(values).toEqual([undefined]);
      await backend.apply([], [set(name)]);
      await backend.apply([], [{ kind: "keep", at: { space: "record", key: `${id}${name}` }, expires }]);
      expect(await reader.getMany(keysOf([name]))).toEqual([undefined]);
    }
  });

  it("are told apart whatever characters are in their keys", async () => {
    const names = [
      '"',
      "\\",
      "\\u0000",
      "\0",
      "a\0b",
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
    const reader = backend.reader("record");
    expect(await reader.getMany(keysOf(asked))).toEqual(
      names.flatMap((name) => [JSON.stringify({ value: name }), undefined]),
    );
    expect(await reader.hasMany(keysOf(asked))).toEqual(names.flatMap(() => [true, false]));
  });

  it("may be hundreds, or none", async () => {
    const names = Array.from({ length: 700 }, (_, index) => `${index}`);
    await backend.apply(
      [],
      names.map((name) => set(name)),
    );
    const reader = backend.reader("record");
    const values = await reader.getMany(keysOf(names.toReversed()));
    expect(values).toEqual(names.toReversed().map((name) => JSON.stringify({ value: name })));
    expect(await reader.getMany([])).toEqual([]);
    expect(await reader.hasMany([])).toEqual([]);
  });
});
