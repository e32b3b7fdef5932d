import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseChatBody } from "../../../src/embedded-gateway/requests.ts";
import { isExcessiveJson } from "../../../src/support/http/body.ts";
import { cpuMsOf, slowdown } from "../../support/cpu-time.ts";

// Attack: 10 MB of JSON whose keys or messages take half a second to read. What holds: 100,000
// values and keys a request, 300,000 an answer, counted before.
describe("isExcessiveJson", () => {
  it("is false for ordinary JSON of any content", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 20 }), fc.string(), (json, text) => {
        const padded = JSON.stringify({
          pad: `${"x".repeat(2000)}${text}[[[{{{,,,\\"`,
          json: JSON.parse(json),
        });
        expect(isExcessiveJson(padded)).toBe(false);
      }),
    );
  });

  it("is true for deep nesting and for very many values", () => {
    expect(isExcessiveJson("[".repeat(2000))).toBe(true);
    expect(isExcessiveJson('{"a":'.repeat(500))).toBe(true);
    expect(isExcessiveJson(`[${"0,".repeat(1_100_000)}0]`)).toBe(true);
    expect(isExcessiveJson(`[${"0,".repeat(150_000)}0]`)).toBe(true);
    expect(isExcessiveJson(`[${"0,".repeat(150_000)}0]`, 300_000)).toBe(false);
  });

  const many = (item: (index: number) => string) => (count: number) =>
    Array.from({ length: count }, (_, index) => item(index)).join(",");
  it.each([
    ["numbers", (count: number) => `"a":[${many(() => "1")(count)}]`],
    ["empty objects", (count: number) => `"a":[${many(() => "{}")(count)}]`],
    ["keys of one object", (count: number) => `"a":{${many((index) => `"k${index}":1`)(count)}}`],
    ["objects of a key each", (count: number) => `"a":[${many((index) => `{"k${index}":1}`)(count)}]`],
    ["messages", (count: number) => `"messages":[${many(() => '{"role":"user","content":"hi"}')(count)}]`],
    [
      "parts of a message",
      (count: number) =>
        `"messages":[{"role":"user","content":[${many(() => '{"type":"text","text":"hi"}')(count)}]}]`,
    ],
  ])("lets no request hold up the event loop with %s", async (_name, make) => {
    const toBody = (count: number) => `{"model":"a/b","temperature":1,${make(count)}}`;
    let count = 1 << 18;
    while (isExcessiveJson(toBody(count))) count = Math.floor(count * 0.6);
    const text = toBody(count);
    const read = () => {
      isExcessiveJson(text);
      const body: unknown = JSON.parse(text);
      if (text.includes("messages")) parseChatBody(body);
    };
    expect(await cpuMsOf(read, 3)).toBeLessThan(100 * (await slowdown()));
  });

  it.each(["[", '"', '\\"', '"\\\\', "{}", ",", '""'])("takes linear time (%j)", (bit) => {
    const time = (repeats: number) => {
      const text = `["${bit.repeat(repeats)}`;
      const startedAt = performance.now();
      isExcessiveJson(text);
      return performance.now() - startedAt;
    };
    time(10_000);
    expect(time(1_000_000)).toBeLessThan(1000);
  });
});
