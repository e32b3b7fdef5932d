import { describe, expect, it } from "vitest";
import { createDecodedValues } from "../../../src/conversations/decoded-values.ts";

const at = (key: string, space: "settings" | "record" = "settings") => ({ space, key });

function setUp() {
  const decoded: string[] = [];
  const values = createDecodedValues((_, stored) => {
    decoded.push(stored);
    return JSON.parse(stored) as { value?: unknown };
  });
  return { values, decoded };
}

describe("decoded values", () => {
  it("are decoded once as long as what is stored is the same", () => {
    const { values, decoded } = setUp();
    const first = values.of(at("a"), '{"value":{"list":[1]}}');
    expect(values.of(at("a"), '{"value":{"list":[1]}}')).toBe(first);
    expect(values.of(at("a"), '{"value":2}')).toEqual({ value: 2 });
    expect(values.of(at("b"), '{"value":2}')).toEqual({ value: 2 });
    values.drop(at("a"));
    values.of(at("a"), '{"value":2}');
    expect(decoded).toHaveLength(4);
  });

  it("cannot be changed by one reader for all others", () => {
    const { values } = setUp();
    const { value } = values.of(at("a"), '{"value":{"list":[{"n":1}]}}') as {
      value: { list: { n: number }[] };
    };
    expect(() => value.list.push({ n: 2 })).toThrow(TypeError);
    expect(() => (value.list[0]!.n = 2)).toThrow(TypeError);
  });

  it("are each reader's own in records, which libraries change", () => {
    const { values } = setUp();
    const first = values.of(at("a", "record"), '{"value":{"n":1}}') as { value: { n: number } };
    first.value.n = 2;
    expect(values.of(at("a", "record"), '{"value":{"n":1}}')).toEqual({ value: { n: 1 } });
  });

  it("are not kept where decoding fails", () => {
    const { values } = setUp();
    expect(() => values.of(at("a"), "damaged")).toThrow(SyntaxError);
    expect(() => values.of(at("a"), "damaged")).toThrow(SyntaxError);
  });
});
