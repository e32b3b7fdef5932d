import { describe, expect, test } from "vitest";
import type { FormField } from "../../../../src/core/forms.ts";
import { readFormModal, toFormModal, toFormSelect } from "../../../../src/platforms/slack/form-modal.ts";
import { checkMessageBlocks, checkModal } from "../../../simulators/slack/blocks.ts";
import { fillModal, toSeenModal } from "../../../simulators/slack/modal.ts";

const memory = { key: "k", channel: "C1", responseUrl: `https://hooks.example.com/${"r".repeat(200)}` };
const field = (name: string, more: Partial<FormField> = {}): FormField => ({
  name,
  label: name,
  description: "What it is",
  value: "",
  maxChars: 3000,
  isLong: false,
  placeholder: "what applies otherwise",
  ...more,
});
const options = (count: number, chars = 5) =>
  Array.from({ length: count }, (_, index) => {
    const value = `${index}`.padStart(chars, "m");
    return { value, label: value };
  });
const toView = (...fields: FormField[]) =>
  toFormModal({ key: "k", title: "Models", introduction: "Settings of this channel.", fields }, memory);

describe("a form as a modal", () => {
  test("has a select while the values fit into one, and a text otherwise; both can be emptied", () => {
    const view = toView(
      field("a", { options: options(99), value: "mmmm7" }),
      field("b", { options: options(100) }),
      field("c", { options: options(3, 76), value: "typed" }),
      field("d", { value: "v".repeat(3000), isLong: true, placeholder: "p".repeat(100) }),
    );
    checkModal(view);
    expect(toSeenModal(view).inputs.map(({ type }) => type)).toEqual([
      "static_select",
      "plain_text_input",
      "plain_text_input",
      "plain_text_input",
    ]);
    expect(readFormModal(fillModal(view, {}, {}))).toEqual({
      a: "mmmm7",
      b: "",
      c: "typed",
      d: "v".repeat(3000),
    });
    expect(readFormModal(fillModal(view, { a: "default", c: "" }, {}))).toMatchObject({ a: "", c: "" });
  });
});

describe("the select of forms", () => {
  test("is left out where there are none", () => {
    expect(toFormSelect([])).toEqual([]);
    const named = { label: "This channel: models", scope: "This channel" };
    const offers = [{ key: "k".repeat(100), ...named, layer: "channel" as const, group: "models" as const }];
    expect(() => checkMessageBlocks(toFormSelect(offers))).not.toThrow();
  });

  test.each([
    ["101 options", options(101)],
    ["no option", []],
    ["a text of 76 characters", options(1, 76)],
  ])("the simulator refuses %s, as Slack does", (_, given) => {
    const select = {
      type: "static_select",
      action_id: "a",
      options: given.map(({ value, label }) => ({ text: { type: "plain_text", text: label }, value })),
    };
    expect(() => checkMessageBlocks([{ type: "actions", elements: [select] }])).toThrow("invalid_blocks");
  });
});
