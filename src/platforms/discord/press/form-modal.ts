import {
  ButtonStyle,
  ComponentType,
  TextInputStyle,
  type APIActionRowComponent,
  type APIComponentInMessageActionRow,
  type APILabelComponent,
  type APIModalInteractionResponseCallbackData,
  type APIModalSubmitInteraction,
  type APIStringSelectComponent,
  type APITextInputComponent,
} from "discord.js";
import type { Form, FormField, FormOffer } from "../../../core/press.ts";
import { translate } from "../../../words/translate.ts";

/** The custom id of the select of forms below a reply. */
export const formSelectId = "forms";
const modalPrefix = "form:";
const fixPrefix = "fix:";
const maxCustomIdChars = 100;
const maxSelectOptions = 25;
const maxOptionChars = 100;
const maxInputChars = 4000;
/** The value of the option that stands for nothing: Discord takes no empty one. It reads as a reset. */
const unset = "default";

type Row = APIActionRowComponent<APIComponentInMessageActionRow>;

const isUsable = ({ key }: FormOffer) => modalPrefix.length + key.length <= maxCustomIdChars;

/** Returns a select that opens one of the forms, or nothing where there are no forms. */
export function toFormSelect(offers: readonly FormOffer[]): Row[] {
  const options = offers
    .filter(isUsable)
    .slice(0, maxSelectOptions)
    .map(({ key, label }) => ({ label, value: key }));
  if (options.length === 0) return [];
  const select = {
    custom_id: formSelectId,
    placeholder: translate("form.change-settings"),
    options,
  } as const;
  return [{ type: ComponentType.ActionRow, components: [{ type: ComponentType.StringSelect, ...select }] }];
}

/** Returns a button that opens the form again. */
export function toFixButton(key: string): Row {
  return {
    type: ComponentType.ActionRow,
    components: [
      {
        type: ComponentType.Button,
        style: ButtonStyle.Primary,
        label: translate("button.correct"),
        custom_id: `${fixPrefix}${key}`,
      },
    ],
  };
}

/** Returns the form that a button of {@link toFixButton} opens. */
export function formOfFixButton(customId: string): string | undefined {
  return customId.startsWith(fixPrefix) ? customId.slice(fixPrefix.length) : undefined;
}

/** Returns the form that a modal of {@link toFormModal} shows. */
export function formOfModal(customId: string): string | undefined {
  return customId.startsWith(modalPrefix) ? customId.slice(modalPrefix.length) : undefined;
}

/**
 * Shows a form as a modal, with selects where the values fit into one and text inputs otherwise.
 * @param notes replace the descriptions of fields that do not work here
 * @see https://docs.discord.com/developers/components/using-modal-components
 */
export function toFormModal(
  form: Form,
  notes: Readonly<Record<string, string>>,
): APIModalInteractionResponseCallbackData {
  return {
    custom_id: `${modalPrefix}${form.key}`,
    title: form.title,
    components: form.fields.map((field): APILabelComponent => ({
      type: ComponentType.Label,
      label: field.label,
      description: notes[field.name] ?? field.description,
      component: toSelect(field) ?? toTextInput(field),
    })),
  };
}

/** Returns what was typed into a modal of {@link toFormModal}, by field. An empty field is an empty text. */
export function readFormModal({ data }: APIModalSubmitInteraction): Record<string, string> {
  const values: Record<string, string> = {};
  for (const row of data.components) {
    if (row.type !== ComponentType.Label) continue;
    const { component } = row;
    if (component.type === ComponentType.TextInput) values[component.custom_id] = component.value;
    if (component.type === ComponentType.StringSelect) {
      const [chosen = unset] = component.values;
      values[component.custom_id] = chosen === unset ? "" : chosen;
    }
  }
  return values;
}

function toSelect({
  name,
  options = [],
  value,
  placeholder,
  isRequired = false,
}: FormField): APIStringSelectComponent | undefined {
  const isFit = options.every(
    (option) => Math.max(option.value.length, option.label.length) <= maxOptionChars,
  );
  const isKnown = value === "" || options.some((option) => option.value === value);
  if (options.length === 0 || options.length >= maxSelectOptions || !isFit || !isKnown) return undefined;
  const none = { value: unset, label: translate("form.not-set", { placeholder }).slice(0, maxOptionChars) };
  return {
    type: ComponentType.StringSelect,
    custom_id: name,
    required: isRequired,
    options: (isRequired ? options : [none, ...options]).map((option) => ({
      label: option.label,
      value: option.value,
      ...(option.value === (value === "" ? unset : value) ? { default: true } : {}),
    })),
  };
}

function toTextInput({
  name,
  value,
  maxChars,
  isLong,
  placeholder,
  isRequired = false,
}: FormField): APITextInputComponent {
  const max = Math.min(maxChars, maxInputChars);
  return {
    type: ComponentType.TextInput,
    custom_id: name,
    style: isLong ? TextInputStyle.Paragraph : TextInputStyle.Short,
    required: isRequired,
    max_length: max,
    placeholder,
    ...(value === "" ? {} : { value: value.slice(0, max) }),
  };
}
