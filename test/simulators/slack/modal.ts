import type { OpenModal } from "./methods.ts";
import { type Fields, toText } from "./workspace.ts";

/** A modal as a person sees it. */
export interface SeenModal {
  readonly title: string;
  readonly inputs: readonly {
    readonly label: string;
    readonly type: string;
    readonly isOptional: boolean;
    readonly initial: string | undefined;
    readonly choices: readonly string[];
  }[];
}

interface InputBlock {
  readonly block_id: string;
  readonly label: { readonly text: string };
  readonly optional?: boolean;
  readonly element: Fields;
}

function inputsOf(view: Fields): InputBlock[] {
  return (view["blocks"] as Fields[]).filter((block) => block["type"] === "input") as unknown as InputBlock[];
}

const optionsOf = (element: Fields) => (element["options"] ?? []) as { text: Fields; value: string }[];

/** Returns the modal as a person sees it. */
export function toSeenModal(view: Fields): SeenModal {
  return {
    title: toText((view["title"] as Fields)["text"]),
    inputs: inputsOf(view).map(({ label, optional, element }) => ({
      label: label.text,
      type: toText(element["type"]),
      isOptional: optional === true,
      initial:
        element["initial_value"] === undefined
          ? (element["initial_option"] as { value?: string } | undefined)?.value
          : toText(element["initial_value"]),
      choices: optionsOf(element).map(({ value }) => value),
    })),
  };
}

/**
 * Returns the `state.values` of a submission.
 * @throws Error if Slack's client would not submit it
 */
export function fillModal(
  view: Fields,
  values: Readonly<Record<string, string | number | boolean>>,
  files: Readonly<Record<string, Fields>>,
  loaded: OpenModal["loaded"] = new Map(),
): Record<string, Record<string, Fields>> {
  const inputs = inputsOf(view);
  for (const label of [...Object.keys(values), ...Object.keys(files)]) {
    if (!inputs.some((input) => input.label.text === label))
      throw new Error(`the modal has no input "${label}"`);
  }
  return Object.fromEntries(
    inputs.map((input) => {
      const label = input.label.text;
      const offered = loaded.get(input.block_id);
      const state = stateOf(input.element, { value: values[label], file: files[label], offered });
      if (isEmpty(state) && input.optional !== true) throw new Error(`"${label}" must be filled in`);
      return [input.block_id, { [toText(input.element["action_id"])]: state }];
    }),
  );
}

function isEmpty(state: Fields): boolean {
  const given = state["value"] ?? state["selected_option"] ?? undefined;
  const many = (state["files"] ?? state["selected_options"]) as unknown[] | undefined;
  return (given === undefined || given === null || given === "") && (many === undefined || many.length === 0);
}

interface Filled {
  readonly value: string | number | boolean | undefined;
  readonly file: Fields | undefined;
  /** The options that the app has offered in a searched select. */
  readonly offered: readonly { readonly text: Fields; readonly value: string }[] | undefined;
}

function stateOf(element: Fields, { value, file, offered }: Filled): Fields {
  const type = toText(element["type"]);
  const options = optionsOf(element);
  switch (type) {
    case "external_select": {
      if (value === undefined) return { type, selected_option: element["initial_option"] ?? null };
      const option = offered?.find((candidate) => candidate.value === toText(value));
      if (option === undefined) throw new Error(`${toText(value)} was not offered`);
      return { type, selected_option: option };
    }
    case "plain_text_input": {
      const text = value === undefined ? (element["initial_value"] ?? null) : toText(value);
      const most = Number(element["max_length"] ?? 3000);
      if (typeof text === "string" && text.length > most) throw new Error(`at most ${most} characters`);
      return { type, value: text === "" ? null : text };
    }
    case "number_input": {
      const text = value === undefined ? (element["initial_value"] ?? null) : toText(value);
      if (text !== null && element["max_value"] !== undefined && Number(text) > Number(element["max_value"]))
        throw new Error(`at most ${toText(element["max_value"])}`);
      if (text !== null && element["min_value"] !== undefined && Number(text) < Number(element["min_value"]))
        throw new Error(`at least ${toText(element["min_value"])}`);
      return { type, value: text };
    }
    case "static_select": {
      const chosen = value ?? (element["initial_option"] as { value?: string } | undefined)?.value;
      const option = options.find((candidate) => candidate.value === toText(chosen));
      if (chosen !== undefined && option === undefined) throw new Error(`no choice ${toText(chosen)}`);
      return { type, selected_option: option ?? null };
    }
    case "checkboxes":
      return { type, selected_options: value === true ? options : [] };
    case "file_input":
      return { type, files: file === undefined ? [] : [file] };
    default:
      throw new Error(`a person cannot fill in ${type}`);
  }
}
