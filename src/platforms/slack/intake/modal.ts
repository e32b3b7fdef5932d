import type { types } from "@slack/bolt";
import { choiceLabel, menuLabel, optionDescription, optionTitle } from "../../../core/command-input.ts";
import { type Command, type Option, freeTextOption } from "../../../core/command.ts";
import type { RawOption } from "../../../core/events.ts";
import type { Receiver } from "../../../core/receiver.ts";
import { translate } from "../../../words/translate.ts";
import { toAttachment } from "./files.ts";
import { inputAction, noModel, readInput, toModelSelect, toOption, toPlain } from "../press/form-modal.ts";

/** A modal's `private_metadata` keeps this, as at most 3,000 characters of JSON. */
export interface ModalMemory {
  readonly channel: string;
  readonly responseUrl?: string | undefined;
  /** A shortcut was used on this message. */
  readonly subject?: { readonly ts: string; readonly thread?: string | undefined } | undefined;
}

const callbackPrefix = "parley_command:";
/**
 * Slack limits the text of an input.
 * @see https://docs.slack.dev/reference/block-kit/block-elements/plain-text-input-element names the limit.
 */
const maxInputChars = 3000;

interface ModalContent {
  /** These values prefill inputs, by option. */
  readonly initial?: Readonly<Record<string, RawOption>>;
  /** Models are searched where it knows some. Otherwise their names are typed. */
  readonly receiver: Pick<Receiver, "suggestModels">;
}

/** Returns the modal of a command, with an input for each option, or for those that a shortcut asks for. */
export function toModal(command: Command, memory: ModalMemory, content: ModalContent): types.ModalView {
  const asks = memory.subject === undefined ? undefined : command.messageCommand?.asks;
  const options = Object.entries(command.options).filter(([name]) => asks?.includes(name) !== false);
  return {
    type: "modal",
    callback_id: callbackPrefix + command.name,
    private_metadata: JSON.stringify(memory),
    title: toPlain(menuLabel(command) || titleOf(command.name), 24),
    submit: toPlain(translate("button.send"), 24),
    close: toPlain(translate("button.cancel"), 24),
    blocks: options.map(([name, option]) => toInput(command, name, option, content)),
  };
}

/** Returns the name of the command that a modal of {@link toModal} belongs to, else `undefined`. */
export function commandOfModal(callbackId: string): string | undefined {
  return callbackId.startsWith(callbackPrefix) ? callbackId.slice(callbackPrefix.length) : undefined;
}

/** This matches the `callback_id` of every modal of {@link toModal}. */
export const modalCallbacks = new RegExp(`^${callbackPrefix}`);

function toInput(command: Command, name: string, option: Option, content: ModalContent): types.InputBlock {
  return {
    type: "input",
    block_id: name,
    label: toPlain(optionTitle(command, name), 2000),
    hint: toPlain(optionDescription(command, name), 2000),
    optional: option.required !== true,
    element: toElement(command, name, option, content),
  };
}

function toElement(
  command: Command,
  name: string,
  option: Option,
  { initial = {}, receiver }: ModalContent,
): types.InputBlockElement {
  const raw = initial[name];
  const given = typeof raw === "object" ? raw.linkUrl : raw?.toString();
  switch (option.kind) {
    case "string": {
      if (option.choices !== undefined)
        return toSelect(option.choices, given, (choice) => choiceLabel(command, choice));
      if (option.completes === "models" && receiver.suggestModels("", { max: 1 }).length > 0) {
        const select = toModelSelect(option.operation, { value: given ?? "" });
        if (select !== undefined) return select;
      }
      return {
        type: "plain_text_input",
        action_id: inputAction,
        multiline: name === freeTextOption(command),
        max_length: Math.min(option.maxChars ?? maxInputChars, maxInputChars),
        ...(given === undefined || given === "" ? {} : { initial_value: given.slice(0, maxInputChars) }),
      };
    }
    case "integer":
      return {
        type: "number_input",
        action_id: inputAction,
        is_decimal_allowed: false,
        min_value: String(option.min),
        max_value: String(option.max),
        ...(given !== undefined && /^-?\d+$/.test(given) ? { initial_value: given } : {}),
      };
    case "boolean":
      return toSelect(["yes", "no"], given, (value) => translate(`form.${value}`));
    case "attachment":
      // There is no list of file types, because Slack checks names only. The bytes are sniffed later.
      return { type: "file_input", action_id: inputAction, max_files: 1 };
  }
}

function toSelect<V extends string>(
  choices: readonly V[],
  initial: string | undefined,
  labelOf: (value: V) => string,
): types.StaticSelect {
  const options = choices.map((choice) => toOption(choice, labelOf(choice)));
  const chosen = options.find(({ value }) => value === initial);
  return {
    type: "static_select",
    action_id: inputAction,
    options,
    ...(chosen === undefined ? {} : { initial_option: chosen }),
  };
}

/** Returns the raw options of a submission in a workspace, by option name. Empty inputs are left out. */
export function parseModal(
  values: Readonly<Record<string, object>>,
  teamId: string,
): Record<string, RawOption> {
  const options: Record<string, RawOption> = {};
  for (const [name, block] of Object.entries(values)) {
    const state = readInput(block);
    const file = state.files?.[0];
    const value = state.value ?? state.selected_option?.value;
    if (file !== undefined) options[name] = toAttachment(file, teamId);
    else if (value !== undefined && value !== "" && value !== noModel) options[name] = value;
  }
  return options;
}

function titleOf(name: string): string {
  const title = name.replaceAll(/[-_]/g, " ");
  return title.charAt(0).toUpperCase() + title.slice(1);
}
