import fc from "fast-check";
import { expect, test } from "vitest";
import { createChannelIndex, type IndexedChannel } from "../../../../src/platforms/discord/channel-index.ts";

const channel = fc.record({
  id: fc.bigInt({ min: 1n, max: (1n << 64n) - 1n }).map(String),
  type: fc.integer({ min: 0, max: 255 }),
  name: fc.string({ unit: "grapheme" }),
});
/** A name with a line break, which Discord has not, is shown in one line. */
const shown = ({ id, type, name }: IndexedChannel): IndexedChannel => ({
  id,
  type,
  name: name.replaceAll("\n", " "),
});

test("holds what it is given, changes and deletions included", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(channel, { selector: ({ id }) => id }),
      fc.array(channel),
      fc.array(fc.nat()),
      (given, changes, removed) => {
        const expected = new Map(given.map((one) => [one.id, one]));
        let index = createChannelIndex(given);
        for (const one of changes) {
          index = index.with(one);
          expected.set(one.id, one);
        }
        for (const at of removed) {
          const id = given[at % Math.max(1, given.length)]?.id;
          if (id === undefined) continue;
          index = index.without(id);
          expected.delete(id);
        }
        for (const one of [...given, ...changes]) {
          const wanted = expected.get(one.id);
          expect(index.get(one.id)).toEqual(wanted === undefined ? undefined : shown(wanted));
        }
      },
    ),
  );
});

test("knows nothing of what is no id", () => {
  const index = createChannelIndex([
    { id: "7", type: 0, name: "general" },
    { id: "x", type: 0, name: "left out" },
  ]);
  expect(index.get("7")).toEqual({ id: "7", type: 0, name: "general" });
  for (const id of ["", "x", "-7", "7.0", "99999999999999999999999"]) expect(index.get(id)).toBeUndefined();
});
