import { afterEach, beforeEach, expect, it } from "vitest";
import type { Backend, BackendChange } from "../../src/conversations/backend.ts";
import { backendOf } from "../../src/conversations/backends.ts";
import { entryAt } from "../../src/conversations/store-keys.ts";
import { silentLog } from "../support/silent-log.ts";
import { freshId } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

describeStores("conditions of a write", (current) => {
  let backend: Backend;
  beforeEach(async () => {
    ({ backend } = await backendOf(current().url).open(current().url, { log: silentLog }));
  });
  afterEach(() => backend.close());

  const id = freshId();
  const slot = (position: number) => entryAt.slot(id, position);
  const set = (position: number, expires?: number): BackendChange => ({
    kind: "set",
    at: slot(position),
    value: '{"value":1}',
    expires,
  });
  const has = async (position: number) => {
    const { space, key } = slot(position);
    return (await backend.reader(space).hasMany([key]))[0];
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

  it("says at most once that it is written, when it is there, and never where a condition does not hold", async () => {
    const found: Promise<boolean | undefined>[] = [];
    const onWritten = () => void found.push(has(0));
    const writes = Array.from({ length: 10 }, () => backend.apply([slot(0)], [set(0)], "durable", onWritten));
    expect((await Promise.all(writes)).filter((failed) => failed === -1)).toHaveLength(1);
    expect(await backend.apply([slot(0)], [set(0)], "durable", onWritten)).toBe(0);
    expect(await Promise.all(found)).toEqual(current().url.startsWith("sqlite:") ? [true] : []);
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
