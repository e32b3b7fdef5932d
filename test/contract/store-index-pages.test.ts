import { afterEach, beforeEach, expect, it } from "vitest";
import type { Backend } from "../../src/conversations/backend.ts";
import { backendOf } from "../../src/conversations/backends.ts";
import { readMembers } from "../../src/conversations/index-members.ts";
import { silentLog } from "../support/silent-log.ts";
import { describeStores } from "../support/stores.ts";

const count = 1200;

describeStores("pages of an index", (current) => {
  let backend: Backend;
  beforeEach(async () => {
    ({ backend } = await backendOf(current().url).open(current().url, { log: silentLog }));
  });
  afterEach(() => backend.close());

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
    expect(await readMembers({ backend }, "order")).toEqual(names);
  });

  it("members that stay are all read while others are removed", async () => {
    await fill("trimmed", (n) => n);
    let pages = 0;
    const whileTrimmed: Backend = {
      ...backend,
      async readIndex(name, page) {
        const found = await backend.readIndex(name, page);
        pages += 1;
        if (pages === 1) await backend.apply([], [{ kind: "trim-index", index: "trimmed", maxScore: 299 }]);
        return found;
      },
    };
    const read = await readMembers({ backend: whileTrimmed }, "trimmed");
    expect(read).toEqual(expect.arrayContaining(names.slice(300)));
  });

  it("a page has only members of its lowest score or higher ones, in both orders", async () => {
    await fill("lowest", (n) => n);
    const page = { minScore: 1000, offset: 2, max: 3 };
    const read = async (order: "lowest-first" | "highest-first") =>
      (await backend.readIndex("lowest", { ...page, order })).map(({ member }) => member);
    expect(await read("lowest-first")).toEqual([nameOf(1002), nameOf(1003), nameOf(1004)]);
    expect(await read("highest-first")).toEqual([nameOf(1197), nameOf(1196), nameOf(1195)]);
    const rest = { ...page, order: "highest-first", offset: 199, max: 50 } as const;
    expect((await backend.readIndex("lowest", rest)).map(({ member }) => member)).toEqual([nameOf(1000)]);
  });
});
