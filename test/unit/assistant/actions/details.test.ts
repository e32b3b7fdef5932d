import fc from "fast-check";
import { expect, test } from "vitest";
import { toDetails } from "../../../../src/assistant/actions/details.ts";
import { boundedReceipt, type Receipt } from "../../../../src/core/receipt.ts";

const name = fc.string({ unit: "grapheme", maxLength: 400 });
const count = fc.integer({ min: 0, max: 2_000_000_000 });
const usage = fc.record(
  {
    promptTokens: count,
    completionTokens: count,
    images: count,
    audioSeconds: count,
    costUsd: fc.double({ min: 0, max: 1e6, noNaN: true }),
    isEstimated: fc.boolean(),
  },
  { requiredKeys: ["isEstimated"] },
);
const receipt: fc.Arbitrary<Receipt> = fc.record(
  {
    calls: fc.array(
      fc.record(
        {
          operation: fc.constantFrom("chat" as const, "image" as const, "transcription" as const),
          asked: name,
          fallback: name,
          model: name,
          usage,
        },
        { requiredKeys: ["operation", "asked"] },
      ),
      { maxLength: 30 },
    ),
    context: fc.record({
      messages: count,
      leftOut: count,
      estimatedTokens: count,
      images: count,
      leftOutImages: count,
    }),
    files: fc.record({ read: count, unread: count, of: fc.array(name, { maxLength: 60 }) }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    maxTokens: count,
    firstTextMs: count,
    totalMs: count,
  },
  { requiredKeys: ["calls", "totalMs"] },
);

const files = fc.array(fc.record({ name, unread: name }, { requiredKeys: ["name"] }), { maxLength: 60 });

test("a receipt is below 20 KB whatever came in, and its text fits into one message of Discord", () => {
  fc.assert(
    fc.property(receipt, files, (given, named) => {
      const bounded = boundedReceipt(given);
      expect(Buffer.byteLength(JSON.stringify(bounded))).toBeLessThan(20_000);
      expect(boundedReceipt(bounded)).toEqual(bounded);
      const text = toDetails(bounded, named);
      expect(text.length).toBeLessThan(1900);
      // Names stay inside their code spans: an odd number of backticks would end one.
      for (const line of text.split("\n")) expect((line.match(/`/g) ?? []).length % 2).toBe(0);
    }),
  );
});

test("the cost of several calls is summed, and calls without a price are counted", () => {
  const text = toDetails({
    calls: [
      { operation: "transcription", asked: "w", model: "w", usage: { audioSeconds: 90, isEstimated: false } },
      { operation: "chat", asked: "m", model: "m", usage: { costUsd: 1.5, isEstimated: true } },
    ],
    totalMs: 200_000,
  });
  expect(text).toContain("Before it: 1 recording transcribed by `w`, 1.5 min");
  expect(text).toContain("Cost in all: $1.50 (estimated), without 1 call of unknown price");
  expect(text).toContain("Time: 3 min 20 s");
});
