import type { SlackOptionsMiddlewareArgs, types } from "@slack/bolt";
import type { Form, FormField, FormOffer } from "../../../core/press.ts";
import type { ModelOperation } from "../../../core/gateway.ts";
import type { Receiver } from "../../../core/receiver.ts";
import { ParleyError } from "../../../core/errors.ts";
import { translate } from "../../../words/translate.ts";
import type { SlackFileInfo } from "../address.ts";
import { cutText } from "../reply/escape-markdown.ts";

/** The select of forms below a reply has this `action_id`. */
export const formAction = "parley_form";
/** A form's modal has this `callback_id`. */
export const formCallback = "parley_form";
/**
 * Slack limits selects to this size.
 * @see https://docs.slack.dev/reference/block-kit/block-elements/select-menu-element lists the limits.
 */
const selectLimits = { options: 100, textChars: 75, valueChars: 150 };
const maxInputChars = 3000;
const maxPlaceholderChars = 150;
/** An input whose block says what it is for has this `action_id`. */
export const inputAction = "value";
/** The option for nothing has this value: Slack takes no empty one, and a choice cannot be taken back. */
const unset = "default";

/** Returns a text without markup, cut at the limit of its place. */
export const toPlain = (text: string, maxChars: number): types.PlainTextElement => ({
  type: "plain_text",
  text: cutText(text, maxChars),
});

export const toOption = (value: string, label: string): types.PlainTextOption => ({
  text: toPlain(label, selectLimits.textChars),
  value,
});

/** Returns a select that opens one of the forms, and nothing where there are none. */
export function toFormSelect(offers: readonly FormOffer[]): types.ActionsBlock[] {
  const options = offers
    .filter(({ key }) => key.length <= selectLimits.valueChars)
    .slice(0, selectLimits.options)
    .map(({ key, label }) => toOption(key, label));
  if (options.length === 0) return [];
  const placeholder = toPlain(translate("form.change-settings"), maxPlaceholderChars);
  return [
    { type: "actions", elements: [{ type: "static_select", action_id: formAction, placeholder, options }] },
  ];
}

/**
 * Returns a form as a modal, with selects where the values fit into one, and text inputs otherwise. The
 * `memory` may have 3,000 characters of JSON at most.
 */
export function toFormModal(form: Form, memory: object): types.ModalView {
  return {
    type: "modal",
    callback_id: formCallback,
    private_metadata: JSON.stringify(memory),
    title: toPlain(form.title, 24),
    submit: toPlain(form.submitLabel ?? translate("button.save"), 24),
    close: toPlain(translate("button.cancel"), 24),
    blocks: [
      { type: "section", text: toPlain(form.introduction, 3000) },
      ...form.fields.map((field): types.InputBlock => ({
        type: "input",
        block_id: field.name,
        label: toPlain(field.label, 2000),
        hint: toPlain(field.description, 2000),
        optional: field.isRequired !== true,
        element: toModels(field) ?? toSelect(field) ?? toTextInput(field),
      })),
    ],
  };
}

/**
 * Reads the `private_metadata` that a modal was opened with, which names a channel.
 * @throws ParleyError `not-permitted` with words for the person where it is something else
 */
export function parseMetadata(metadata: string): object {
  const memory = parseObject(metadata);
  if (typeof memory["channel"] === "string") return memory;
  throw new ParleyError("not-permitted", "the metadata of a form cannot be read", {
    detail: { problem: translate("form.outdated") },
  });
}

function parseObject(json: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(json)) as Readonly<Record<string, unknown>>;
  } catch {
    return {};
  }
}

/** What a person has typed, chosen or uploaded in one input of a modal. */
interface InputState {
  readonly value?: string | null;
  readonly selected_option?: { readonly value?: string } | null;
  readonly files?: readonly SlackFileInfo[] | null;
}

/** Reads one of the `state.values` of a submitted modal, whose block has one input. */
export function readInput(block: object): InputState {
  return (Object.values(block)[0] ?? {}) as InputState;
}

/** Returns what was typed into a modal of {@link toFormModal}, by field, and `""` for the others. */
export function readFormModal(values: Readonly<Record<string, object>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([name, block]) => {
      const { value, selected_option: option } = readInput(block);
      const chosen = option?.value;
      const isUnset = chosen === unset || chosen === noModel;
      return [name, value ?? (isUnset ? "" : (chosen ?? ""))];
    }),
  );
}

/** Returns a select of models, and nothing where no model is known, so that its name is typed. */
function toModels({ models, options = [], value, placeholder }: FormField): types.ExternalSelect | undefined {
  if (models === undefined || options.length === 0) return undefined;
  return toModelSelect(models, { value, otherwise: translate("form.not-set", { placeholder }) });
}

function toSelect({
  options = [],
  value,
  placeholder,
  isRequired = false,
}: FormField): types.StaticSelect | undefined {
  const isFit = options.every(
    (option) =>
      option.value.length <= selectLimits.valueChars && option.label.length <= selectLimits.textChars,
  );
  if (options.length === 0 || options.length >= selectLimits.options || !isFit) return undefined;
  const all = [
    ...(isRequired ? [] : [toOption(unset, translate("form.not-set", { placeholder }))]),
    ...options.map((option) => toOption(option.value, option.label)),
  ];
  const select: types.StaticSelect = { type: "static_select", action_id: inputAction, options: all };
  if (isRequired && value === "") return select;
  const initial = all.find((option) => option.value === (value === "" ? unset : value));
  return initial === undefined ? undefined : { ...select, initial_option: initial };
}

function toTextInput({ value, maxChars, isLong, placeholder }: FormField): types.PlainTextInput {
  const max = Math.min(maxChars, maxInputChars);
  return {
    type: "plain_text_input",
    action_id: inputAction,
    multiline: isLong,
    max_length: max,
    placeholder: toPlain(placeholder, maxPlaceholderChars),
    ...(value === "" ? {} : { initial_value: value.slice(0, max) }),
  };
}

/** The `action_id` of a select of models is this prefix and the operation. */
const actionPrefix = "parley_model:";
/** The option for no model has this value, since a choice cannot be taken back. No model has this name. */
export const noModel = "parley:none";

interface ModelSelectOptions {
  /** This is the chosen model. It is empty where none is chosen. */
  readonly value: string;
  /** This applies while no model is chosen. By default nothing is shown. */
  readonly otherwise?: string;
}

/** Returns a select that asks for models as the person types, and `undefined` where the value is too long. */
export function toModelSelect(
  operation: ModelOperation | undefined,
  { value, otherwise }: ModelSelectOptions,
): types.ExternalSelect | undefined {
  if (value.length > selectLimits.valueChars) return undefined;
  const initial =
    value !== ""
      ? toOption(value, value)
      : otherwise === undefined
        ? undefined
        : toOption(noModel, otherwise);
  return {
    type: "external_select",
    action_id: actionPrefix + (operation ?? ""),
    // Without this, Slack asks only from the third character on.
    min_query_length: 0,
    placeholder: toPlain(translate("slack.models.search"), 150),
    ...(initial === undefined ? {} : { initial_option: initial }),
  };
}

/** These are the `action_id`s of the selects. */
export const modelSelects = new RegExp(`^${actionPrefix}`);

/** Offers models in a select. They come from memory, since Slack waits three seconds. */
export async function onModelSelect(
  { options, ack }: SlackOptionsMiddlewareArgs,
  receiver: Pick<Receiver, "suggestModels">,
): Promise<void> {
  const { action_id: actionId, value: typed } = options as unknown as {
    readonly action_id: string;
    readonly value: string;
  };
  const operation = toOperation(actionId.slice(actionPrefix.length));
  const found = receiver.suggestModels(typed, { max: selectLimits.options - 1, operation });
  const none = typed === "" ? [toOption(noModel, translate("slack.models.none"))] : [];
  const models = found.filter((id) => id.length <= selectLimits.valueChars).map((id) => toOption(id, id));
  await ack({ options: [...none, ...models] as never });
}

function toOperation(word: string): ModelOperation | undefined {
  return (["chat", "image", "transcription"] as const).find((operation) => operation === word);
}
