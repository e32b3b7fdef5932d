import { ComponentType, TextInputStyle } from "discord-api-types/v10";
import type {
  APILabelComponent,
  APIModalInteractionResponseCallbackData,
  APIModalSubmitInteraction,
  APIStringSelectComponent,
  APITextInputComponent,
} from "discord.js";
import { freeTextOption, type Command, type Option } from "../../core/command.ts";
import { choiceLabel, menuLabel, optionDescription, optionTitle } from "../../core/command-words.ts";
import type { RawOption } from "../../core/events.ts";
import { translate } from "../../words/translate.ts";

const prefix = "ask:";
/** Discord's limit of the text in one input. */
const maxInputChars = 4000;

/** The message that a message command was used on. */
export interface ModalTarget {
  readonly channelId: string;
  readonly messageId: string;
}

/** What a person submitted with a modal. */
export interface ModalAnswer extends ModalTarget {
  readonly commandName: string;
  /** Values by option name; options left empty are absent. */
  readonly options: Readonly<Record<string, RawOption>>;
}

/**
 * The modal of a message command: one input for each option it asks for. Its custom id holds the command and the
 * message. @see https://docs.discord.com/developers/components/using-modal-components
 */
export function toAskModal(
  command: Command,
  { channelId, messageId }: ModalTarget,
): APIModalInteractionResponseCallbackData {
  const { asks = [] } = command.messageCommand ?? {};
  return {
    custom_id: `${prefix}${command.name}:${channelId}:${messageId}`,
    title: menuLabel(command) || command.name,
    components: asks.flatMap((name) => {
      const option = command.options[name];
      return option === undefined ? [] : [toLabel(command, name, option)];
    }),
  };
}

/** Whether a modal with this custom id is one of {@link toAskModal}. */
export function isAskModal(customId: string): boolean {
  return customId.startsWith(prefix);
}

/** Reads a submitted modal. The values stay unchecked. */
export function parseAskModal({ data }: APIModalSubmitInteraction): ModalAnswer {
  const [, commandName = "", channelId = "", messageId = ""] = data.custom_id.split(":");
  const options: Record<string, RawOption> = {};
  for (const row of data.components) {
    if (row.type !== ComponentType.Label) continue;
    const { component } = row;
    const value =
      component.type === ComponentType.TextInput
        ? component.value.trim()
        : component.type === ComponentType.StringSelect
          ? component.values[0]
          : undefined;
    if (value !== undefined && value !== "") options[component.custom_id] = value;
  }
  return { commandName, channelId, messageId, options };
}

function toLabel(command: Command, name: string, option: Option): APILabelComponent {
  return {
    type: ComponentType.Label,
    label: optionTitle(name),
    description: optionDescription(command, name),
    component: toInput(command, name, option),
  };
}

function toInput(
  command: Command,
  name: string,
  option: Option,
): APITextInputComponent | APIStringSelectComponent {
  const base = { custom_id: name, required: option.required === true };
  if (option.kind === "boolean")
    return { ...base, ...toSelect(["yes", "no"], (value) => translate(`form.${value}`)) };
  if (option.kind === "string" && option.choices !== undefined && option.choices.length > 0)
    return { ...base, ...toSelect(option.choices, choiceLabel) };
  const text = {
    ...base,
    type: ComponentType.TextInput as const,
    style: name === freeTextOption(command) ? TextInputStyle.Paragraph : TextInputStyle.Short,
  };
  if (option.kind === "integer")
    return {
      ...text,
      max_length: 20,
      placeholder: translate("help.value.integer", { min: option.min, max: option.max }),
    };
  const maxChars = option.kind === "string" ? option.maxChars : undefined;
  return { ...text, max_length: Math.min(maxChars ?? maxInputChars, maxInputChars) };
}

function toSelect<V extends string>(
  values: readonly V[],
  labelOf: (value: V) => string,
): Pick<APIStringSelectComponent, "type" | "options"> {
  return {
    type: ComponentType.StringSelect,
    options: values.map((value) => ({ label: labelOf(value), value })),
  };
}
