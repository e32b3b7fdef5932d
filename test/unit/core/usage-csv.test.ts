import fc from "fast-check";
import { expect, test } from "vitest";
import type { UsageRow } from "../../../src/core/spending.ts";
import { toUsageCsv } from "../../../src/core/usage.ts";

const row: UsageRow = {
  day: "2026-11-21",
  personId: "discord:7",
  channel: "discord:channel:1",
  model: "openai/gpt-4.1",
  operation: "chat",
  calls: 2,
  promptTokens: 10,
  completionTokens: 5,
  images: 0,
  audioSeconds: 1.5,
  costUsd: 0.0000012,
  estimatedCalls: 1,
  unpricedCalls: 0,
};

/** Returns the cells of an RFC 4180 text. */
function parse(csv: string): string[][] {
  const lines: string[][] = [[]];
  for (const [, quoted, plain, end] of csv
    .replace(/^\uFEFF/, "")
    .matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    lines.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain ?? "");
    if (end === "\r\n") lines.push([]);
  }
  return lines.slice(0, -1);
}

test("a row has its names, and numbers without an exponent", () => {
  const [head, line] = parse(
    [...toUsageCsv([row], new Map([["discord:7", 'Ada "the" first, of all']]))].join(""),
  );
  expect(Object.fromEntries(head!.map((name, index) => [name, line![index]]))).toEqual({
    day: "2026-11-21",
    person_id: "discord:7",
    person: 'Ada "the" first, of all',
    channel_id: "discord:channel:1",
    channel: "",
    model: "openai/gpt-4.1",
    operation: "chat",
    calls: "2",
    prompt_tokens: "10",
    completion_tokens: "5",
    pictures: "0",
    audio_seconds: "1.5",
    cost_usd: "0.0000012",
    estimated_calls: "1",
    unpriced_calls: "0",
  });
});

test.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =cmd|' /C calc'!A0"])(
  "a name %j is no formula",
  (name) => {
    const [, line] = parse([...toUsageCsv([row], new Map([["discord:7", name]]))].join(""));
    expect(line![2]).toBe(`'${name}`);
  },
);

test("any name comes back as it was, apart from the apostrophe", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (name) => {
      const [, line] = parse([...toUsageCsv([row], new Map([["discord:7", name]]))].join(""));
      expect(line).toHaveLength(15);
      expect([name, `'${name}`]).toContain(line![2]);
      expect(line![2]).not.toMatch(/^\s*[=+\-@]/);
    }),
  );
});
