import type { App, types } from "@slack/bolt";
import type { Form, FormField, FormOffer } from "../../core/forms.ts";
import type { ModelOperation } from "../../core/gateway.ts";
import type { Receiver } from "../../core/platform.ts";
import { translate } from "../../words/translate.ts";
import { cutText } from "./escape-markdown.ts";

/** `action_id` of the select of forms below a reply. */
export const formAction = "parley_form";
/** `callback_id` of a form's modal. */
export const formCallback = "parley_form";
/** @see https://docs.slack.dev/reference/block-kit/block-elements/select-menu-element */
const selectLimits = { options: 100, textChars: 75, valueChars: 150 };
const maxInputChars = 3000;
const maxPlaceholderChars = 150;
/** `action_id` of an input whose block says what it is for. */
export const inputAction = "value";
/** Of the option that stands for nothing: Slack takes no empty value, and a chosen one cannot be taken back. */
const unset = "default";

/** Kept in a form's modal until it is submitted. */
export interface FormMemory {
  readonly key: string;
  /** Where it was opened. */
  readonly channel: string;
  /** For the answer to the person alone. */
  readonly responseUrl: string | undefined;
}

/** A text without markup, cut at the limit of its place. */
export const toPlain = (text: string, maxChars: number): types.PlainTextElement => ({
  type: "plain_text",
  text: cutText(text, maxChars),
});

const toOption = (value: string, label: string): types.PlainTextOption => ({
  text: toPlain(label, selectLimits.textChars),
  value,
});

/** A select that opens one of the forms; nothing where there are none. */
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
 * A form as a modal: selects where the values fit into one, text inputs otherwise. `memory`: as JSON at most 3,000
 * characters.
 */
export function toFormModal(form: Form, memory: object, callbackId = formCallback): types.ModalView {
  return {
    type: "modal",
    callback_id: callbackId,
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

/** Parses the `private_metadata` of {@link toFormModal}. */
export function parseFormMemory(metadata: string): FormMemory {
  return JSON.parse(metadata) as FormMemory;
}

/** What was typed into a modal of {@link toFormModal}, by field; empty where nothing was. */
export function readFormModal(values: Readonly<Record<string, object>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([name, block]) => {
      const state = (Object.values(block)[0] ?? {}) as {
        value?: string | null;
        selected_option?: { value?: string } | null;
      };
      const chosen = state.selected_option?.value;
      const isUnset = chosen === unset || chosen === noModel;
      return [name, state.value ?? (isUnset ? "" : (chosen ?? ""))];
    }),
  );
}

/** Where no model is known, its name is typed. */
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

/** What the `action_id` of a select of models begins with; the operation follows. */
const actionPrefix = "parley_model:";
/** Of the option that stands for nothing: a chosen one cannot be taken back. No model is called so. */
export const noModel = "parley:none";

/** What a select of models shows at first. */
interface ModelSelectOptions {
  /** The model that is chosen. Empty: none. */
  readonly value: string;
  /** What applies while none is chosen. Default: nothing is shown. */
  readonly otherwise?: string;
}

/**
 * A select that asks for models as the person types. `undefined`: its value does not fit, and a text input must take it.
 */
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
    // Without it Slack asks from the third character on.
    min_query_length: 0,
    placeholder: toPlain(translate("slack.models.search"), 150),
    ...(initial === undefined ? {} : { initial_option: initial }),
  };
}

/** Registers what these selects offer: from memory, since Slack waits three seconds. */
export function registerModelSelects(app: App, receiver: Pick<Receiver, "suggestModels">): void {
  app.options(new RegExp(`^${actionPrefix}`), async ({ options, ack }) => {
    const { action_id: actionId, value: typed } = options as unknown as {
      readonly action_id: string;
      readonly value: string;
    };
    const operation = toOperation(actionId.slice(actionPrefix.length));
    const found = receiver.suggestModels(typed, { max: selectLimits.options - 1, operation });
    const none = typed === "" ? [toOption(noModel, translate("slack.models.none"))] : [];
    const models = found.filter((id) => id.length <= selectLimits.valueChars).map((id) => toOption(id, id));
    await ack({ options: [...none, ...models] as never });
  });
}

function toOperation(word: string): ModelOperation | undefined {
  return (["chat", "image", "transcription"] as const).find((operation) => operation === word);
}
