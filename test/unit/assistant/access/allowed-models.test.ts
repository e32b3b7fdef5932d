import fc from "fast-check";
import { expect, test } from "vitest";
import { createAllowedModels } from "../../../../src/assistant/access/allowed-models.ts";

test.each([
  ["gpt-4.1", "gpt-4.1", true],
  ["gpt-4.1", "gpt-4.1-mini", false],
  ["gpt-4.1*", "gpt-4.1-mini", true],
  ["openai/*", "openai/a/b", true],
  ["*/whisper-*", "groq/whisper-large", true],
  ["*mini", "o4-mini", true],
  ["*mini", "mini-o4", false],
  ["a*b*a", "aba", true],
  ["ab*ba", "aba", false],
  ["a*a", "a", false],
  ["*", "anything", true],
  ["GPT*", "gpt-5", false],
])("%s and %s: %s", (pattern, model, isAllowed) => {
  expect(createAllowedModels([pattern]).isAllowed(model)).toBe(isAllowed);
});

test("agrees with a regular expression", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "*"), maxLength: 8 });
  const model = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 10 });
  fc.assert(
    fc.property(word, model, (pattern, id) => {
      const expected = new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(id);
      expect(createAllowedModels([pattern]).isAllowed(id)).toBe(expected);
    }),
    { numRuns: 2000 },
  );
});

test("without patterns every model is allowed", () => {
  expect(createAllowedModels([]).isAllowed("anything")).toBe(true);
});

test("an error names allowed models, the most similar first", () => {
  const allowed = createAllowedModels(["gpt-4.1*", "claude-*"]);
  const listed = ["claude-opus", "gpt-4.1", "gpt-4.1-mini", "gpt-5", "dall-e-3"];
  expect(() => {
    allowed.expectAllowed("gpt-5", listed);
  }).toThrow(
    expect.objectContaining({
      code: "model-not-allowed",
      detail: { model: "gpt-5", allowed: "gpt-4.1, gpt-4.1-mini, claude-opus" },
    }),
  );
});
