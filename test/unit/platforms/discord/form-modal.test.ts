import { describe, expect, test } from "vitest";
import type { Form, FormField } from "../../../../src/core/forms.ts";
import { toFormModal, toFormSelect } from "../../../../src/platforms/discord/form-modal.ts";
import { readModal, readSelect } from "../../../simulators/discord/modals.ts";

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
const form = (...fields: FormField[]): Form => ({ key: "k", title: "Models", introduction: "", fields });
const options = (count: number, chars = 5) =>
  Array.from({ length: count }, (_, index) => {
    const value = `${index}`.padStart(chars, "m");
    return { value, label: value };
  });
const inputsOf = (one: Form) => readModal({ ...toFormModal(one, {}) }).inputs;

describe("a form as a modal", () => {
  test("has a select while the values fit into one, and a text otherwise", () => {
    const inputs = inputsOf(
      form(
        field("a", { options: options(24) }),
        field("b", { options: options(25) }),
        field("c", { options: options(3, 101) }),
        field("d", { options: options(3), value: "mmmm1" }),
        field("e", { options: options(3), value: "typed" }),
      ),
    );
    expect(inputs.map(({ kind }) => kind)).toEqual([
      "select",
      "short-text",
      "short-text",
      "select",
      "short-text",
    ]);
    expect(inputs.map(({ initial }) => initial)).toEqual([
      "Not set: what applies otherwise",
      "",
      "",
      "mmmm1",
      "typed",
    ]);
  });

  test("fits Discord's limits with the longest texts", () => {
    const longest = field("n".repeat(32), {
      label: "l".repeat(45),
      description: "d".repeat(100),
      placeholder: "p".repeat(100),
      value: "v".repeat(3000),
      isLong: true,
    });
    expect(inputsOf(form(longest))).toMatchObject([{ kind: "paragraph", required: false }]);
    expect(inputsOf(form(field("a", { options: options(2), placeholder: "p".repeat(100) })))).toHaveLength(1);
  });

  test("says at a field that it does not work here", () => {
    const modal = readModal({ ...toFormModal(form(field("a")), { a: "Not here" }) });
    expect(modal.inputs[0]?.description).toBe("Not here");
  });
});

describe("the select of forms", () => {
  const offer = (key: string) => ({
    key,
    label: "This channel: models",
    scope: "This channel",
    layer: "channel" as const,
    group: "models" as const,
  });

  test("is left out where there are none, and has those whose modal could be found again", () => {
    expect(toFormSelect([])).toEqual([]);
    const rows = toFormSelect([offer("short"), offer("x".repeat(96))]);
    const select = rows[0]?.components[0] as unknown as Readonly<Record<string, unknown>>;
    expect(readSelect(select, "select").choices).toEqual([{ label: "This channel: models", value: "short" }]);
  });

  test.each([
    ["26 options", { options: options(26) }],
    ["no option", { options: [] }],
    ["a value of 101 characters", { options: options(1, 101) }],
    ["a value twice", { options: [...options(1), ...options(1)] }],
    ["two preselected", { options: options(2).map((one) => ({ ...one, default: true })) }],
    ["a placeholder of 151 characters", { options: options(1), placeholder: "p".repeat(151) }],
  ])("the simulator refuses %s, as Discord does", (_, select) => {
    expect(() => readSelect(select, "select")).toThrow();
  });
});
