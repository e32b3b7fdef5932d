import { invalidForm } from "./api-error.ts";

/** One input of a modal, with the limits that Discord's client enforces. */
export interface SimInput {
  readonly customId: string;
  readonly label: string;
  readonly description: string | undefined;
  readonly kind: "short-text" | "paragraph" | "select";
  readonly required: boolean;
  readonly minLength: number;
  readonly maxLength: number;
  /** The options of a select. */
  readonly choices: readonly { readonly label: string; readonly value: string }[];
  /** What it shows at first: a text, or the label of the preselected choice. It may be empty. */
  readonly initial: string;
}

/** A modal that an interaction has opened. */
export interface SimModal {
  readonly customId: string;
  readonly title: string;
  readonly inputs: readonly SimInput[];
}

type Fields = Readonly<Record<string, unknown>>;

const componentTypes = { select: 3, text: 4, label: 18 } as const;
const styles: Readonly<Record<number, SimInput["kind"]>> = { 1: "short-text", 2: "paragraph" };

/**
 * Reads the data of a modal response. @throws ApiError if it breaks a limit of Discord
 * @see https://docs.discord.com/developers/components/reference#label
 */
export function readModal(data: Fields): SimModal {
  const customId = requireText(data["custom_id"], "data.custom_id", 1, 100);
  const title = requireText(data["title"], "data.title", 1, 45);
  const rows = requireList(data["components"], "data.components", 1, 5);
  const inputs = rows.map((row, index) => readLabel(row, `data.components.${index}`));
  if (new Set(inputs.map((input) => input.customId)).size < inputs.length)
    throw invalidForm(
      "data.components",
      "COMPONENT_CUSTOM_ID_DUPLICATED",
      "Component custom id cannot be duplicated",
    );
  return { customId, title, inputs };
}

function readLabel(row: Fields, path: string): SimInput {
  if (row["type"] !== componentTypes.label)
    throw invalidForm(`${path}.type`, "BASE_TYPE_CHOICES", "This simulator knows labels in modals only.");
  const label = requireText(row["label"], `${path}.label`, 1, 45);
  const description =
    row["description"] === undefined
      ? undefined
      : requireText(row["description"], `${path}.description`, 1, 100);
  const component = (row["component"] ?? {}) as Fields;
  const inner = `${path}.component`;
  const base = {
    customId: requireText(component["custom_id"], `${inner}.custom_id`, 1, 100),
    label,
    description,
    required: component["required"] !== false,
  };
  if (component["type"] === componentTypes.select) {
    const { choices, initial } = readSelect(component, inner);
    return { ...base, kind: "select", minLength: 0, maxLength: 100, choices, initial };
  }
  const kind = styles[Number(component["style"])];
  if (component["type"] !== componentTypes.text || kind === undefined)
    throw invalidForm(`${inner}.type`, "BASE_TYPE_CHOICES", "A label holds a text input or a string select.");
  if (component["placeholder"] !== undefined)
    requireText(component["placeholder"], `${inner}.placeholder`, 0, 100);
  const minLength = requireCount(component["min_length"] ?? 0, `${inner}.min_length`, 0);
  const maxLength = requireCount(component["max_length"] ?? 4000, `${inner}.max_length`, 1);
  const initial =
    component["value"] === undefined ? "" : requireText(component["value"], `${inner}.value`, 0, maxLength);
  return { ...base, kind, minLength, maxLength, choices: [], initial };
}

/**
 * Reads a string select of a modal or message. @throws ApiError if it breaks a limit of Discord
 * @see https://docs.discord.com/developers/components/reference#string-select
 */
export function readSelect(component: Fields, path: string): Pick<SimInput, "choices" | "initial"> {
  if (component["placeholder"] !== undefined)
    requireText(component["placeholder"], `${path}.placeholder`, 0, 150);
  const options = requireList(component["options"], `${path}.options`, 1, 25);
  const choices = options.map((option, index) => {
    if (option["description"] !== undefined)
      requireText(option["description"], `${path}.options.${index}.description`, 1, 100);
    return {
      label: requireText(option["label"], `${path}.options.${index}.label`, 1, 100),
      value: requireText(option["value"], `${path}.options.${index}.value`, 1, 100),
    };
  });
  if (new Set(choices.map(({ value }) => value)).size < choices.length)
    throw invalidForm(
      `${path}.options`,
      "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED",
      "Duplicated option value.",
    );
  const preselected = choices.filter((_, index) => options[index]?.["default"] === true);
  if (preselected.length > Number(component["max_values"] ?? 1))
    throw invalidForm(
      `${path}.options`,
      "SELECT_COMPONENT_TOO_MANY_DEFAULT_VALUES",
      "Too many default values",
    );
  return { choices, initial: preselected[0]?.label ?? "" };
}

/**
 * Returns the `data` of a submitted modal. @throws Error if Discord's client would not submit it
 * @param values texts by label or custom id. The text for a select is the label of a choice.
 */
export function fillModal({ customId, inputs }: SimModal, values: Readonly<Record<string, string>>): Fields {
  const known = new Set(inputs.flatMap((input) => [input.label, input.customId]));
  for (const name of Object.keys(values))
    if (!known.has(name)) throw new Error(`the modal has no input ${name}`);
  const components = inputs.map((input, index) => {
    const value = values[input.label] ?? values[input.customId] ?? input.initial;
    if (input.required && value === "") throw new Error(`${input.label} is required`);
    const base = { id: index * 2 + 2, custom_id: input.customId };
    return {
      type: componentTypes.label,
      id: index * 2 + 1,
      component: { ...base, ...fillInput(input, value) },
    };
  });
  return { custom_id: customId, components };
}

function fillInput(input: SimInput, value: string): Fields {
  if (input.kind === "select") {
    const choice = input.choices.find((one) => one.label === value);
    if (value !== "" && choice === undefined) throw new Error(`${input.label} has no choice ${value}`);
    return { type: componentTypes.select, values: choice === undefined ? [] : [choice.value] };
  }
  if (value.length > input.maxLength || (value !== "" && value.length < input.minLength))
    throw new Error(`${input.label} has the wrong length`);
  if (input.kind === "short-text" && value.includes("\n"))
    throw new Error(`${input.label} takes a single line`);
  return { type: componentTypes.text, value };
}

function requireText(value: unknown, path: string, min: number, max: number): string {
  if (typeof value !== "string" || value.length < min || value.length > max)
    throw invalidForm(path, "BASE_TYPE_BAD_LENGTH", `Must be between ${min} and ${max} in length.`);
  return value;
}

function requireList(value: unknown, path: string, min: number, max: number): readonly Fields[] {
  if (!Array.isArray(value) || value.length < min || value.length > max)
    throw invalidForm(path, "BASE_TYPE_BAD_LENGTH", `Must be between ${min} and ${max} in length.`);
  return value as readonly Fields[];
}

function requireCount(value: unknown, path: string, min: number): number {
  if (!Number.isInteger(value) || Number(value) < min || Number(value) > 4000)
    throw invalidForm(path, "NUMBER_TYPE_COERCE", `Must be between ${min} and 4000.`);
  return Number(value);
}
