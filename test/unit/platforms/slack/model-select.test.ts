import { afterEach, beforeEach, expect, test } from "vitest";
import { toModelSelect } from "../../../../src/platforms/slack/model-select.ts";
import { checkSuggestions } from "../../../simulators/slack/external-selects.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

let harness: SlackHarness;
beforeEach(async () => {
  harness = await openSlackHarness();
});
afterEach(() => harness.close());

test("of very many models a hundred options are offered; ids that Slack refuses are left out", async () => {
  const { slack, receiver } = harness;
  const asked: unknown[] = [];
  receiver.suggestModels = (query, options) => {
    asked.push([query, options]);
    return [
      "m".repeat(151),
      ...Array.from({ length: 500 }, (_, index) => `model-${index}-${"x".repeat(80)}`),
    ].slice(0, options?.max ?? 25);
  };
  const ana = slack.person("Ana");
  await ana.usesCommand("/imagine", "", { channel: ana.directMessages });
  await slack.waitFor("the form", () => ana.modal());
  const labels = await ana.searches("Model", "");
  expect(labels).toHaveLength(99);
  expect(labels.every((label) => label.length <= 75)).toBe(true);
  expect(asked.at(-1)).toEqual(["", { max: 99, operation: "image" }]);
  expect(slack.badAcks).toEqual([]);
});

test("where no model is known, or a name is too long to be an option, it is typed", async () => {
  const { slack, receiver } = harness;
  receiver.suggestModels = () => [];
  const ana = slack.person("Ana");
  await ana.usesCommand("/ask", "", { channel: ana.directMessages });
  const form = await slack.waitFor("the form", () => ana.modal());
  expect(form.inputs.find(({ label }) => label === "Model")?.type).toBe("plain_text_input");
  expect(toModelSelect("chat", { value: "m".repeat(151) })).toBeUndefined();
});

test("the simulator refuses what Slack does", () => {
  const option = (words: string, value: string) => ({ text: { type: "plain_text", text: words }, value });
  expect(checkSuggestions({})).toContain("needed");
  expect(checkSuggestions({ options: [option("a".repeat(76), "a")] })).toContain("75 characters");
  expect(checkSuggestions({ options: [option("a", "a".repeat(151))] })).toContain("150 characters");
  expect(checkSuggestions({ options: Array.from({ length: 101 }, () => option("a", "a")) })).toContain("100");
  expect(checkSuggestions({ options: [] })).toBeUndefined();
});
