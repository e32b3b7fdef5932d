import type { Command, Option } from "../../core/command.ts";
import { freeTextOption } from "../../core/command.ts";
import type { RawOption } from "../../core/events.ts";
import { toAttachment } from "./files.ts";
import { cutText } from "./markdown.ts";
import type { SlackFileInfo } from "./web-api.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What a modal must remember until it is submitted; Slack keeps at most 3,000 characters of it. */
export interface ModalMemory {
  readonly channel: string;
  readonly responseUrl?: string | undefined;
  /** The message a shortcut was used on. */
  readonly subject?: { readonly ts: string; readonly thread?: string | undefined } | undefined;
}

const callbackPrefix = "parley_command:";
/** The longest text Slack takes from an input. */
const maxInputChars = 3000;
const actionId = "value";

const plain = (text: string, maxChars: number) => ({ type: "plain_text", text: cutText(text, maxChars) });

/** The modal of a command: one input an option, files included, which slash commands cannot carry. */
export function toModal(
  command: Command,
  memory: ModalMemory,
  initial: Readonly<Record<string, RawOption>> = {},
): Fields {
  const asks = memory.subject === undefined ? undefined : command.messageCommand?.asks;
  const options = Object.entries(command.options).filter(([name]) => asks?.includes(name) !== false);
  return {
    type: "modal",
    callback_id: callbackPrefix + command.name,
    private_metadata: JSON.stringify(memory),
    title: plain(command.messageCommand?.label ?? titleOf(command.name), 24),
    submit: plain("Send", 24),
    close: plain("Cancel", 24),
    blocks: options.map(([name, option]) => toInput(command, name, option, initial[name])),
  };
}

/** Name of the command a submitted modal belongs to; `undefined`: it is not one of ours. */
export function commandOfModal(callbackId: string): string | undefined {
  return callbackId.startsWith(callbackPrefix) ? callbackId.slice(callbackPrefix.length) : undefined;
}

export const modalCallbacks = new RegExp(`^${callbackPrefix}`);

export function readMemory(metadata: string): ModalMemory {
  return JSON.parse(metadata) as ModalMemory;
}

function toInput(command: Command, name: string, option: Option, initial: RawOption | undefined): Fields {
  return {
    type: "input",
    block_id: name,
    label: plain(titleOf(name), 2000),
    hint: plain(option.description, 2000),
    optional: option.required !== true,
    element: { action_id: actionId, ...toElement(command, name, option, initial) },
  };
}

function toElement(command: Command, name: string, option: Option, initial: RawOption | undefined): Fields {
  const given = typeof initial === "object" ? initial.linkUrl : initial?.toString();
  switch (option.kind) {
    case "string": {
      if (option.choices !== undefined) return toSelect(option.choices, given);
      return {
        type: "plain_text_input",
        multiline: name === freeTextOption(command),
        max_length: Math.min(option.maxChars ?? maxInputChars, maxInputChars),
        ...(given === undefined || given === "" ? {} : { initial_value: given.slice(0, maxInputChars) }),
      };
    }
    case "integer":
      return {
        type: "number_input",
        is_decimal_allowed: false,
        min_value: String(option.min),
        max_value: String(option.max),
        ...(given !== undefined && /^-?\d+$/.test(given) ? { initial_value: given } : {}),
      };
    case "boolean":
      return toSelect(["yes", "no"], given);
    case "attachment":
      // No list of file types: it would go by names, and names lie. The bytes are looked at later.
      return { type: "file_input", max_files: 1 };
  }
}

function toSelect(choices: readonly string[], initial: string | undefined): Fields {
  const options = choices.map((choice) => ({ text: plain(choice, 75), value: choice }));
  const chosen = options.find(({ value }) => value === initial);
  return { type: "static_select", options, ...(chosen === undefined ? {} : { initial_option: chosen }) };
}

/** The raw options of a submission, by option name. */
export function readModal(values: Readonly<Record<string, Fields>>): Record<string, RawOption> {
  const options: Record<string, RawOption> = {};
  for (const [name, block] of Object.entries(values)) {
    const state = (block[actionId] ?? {}) as {
      value?: string | null;
      selected_option?: { value?: string } | null;
      files?: readonly SlackFileInfo[] | null;
    };
    const file = state.files?.[0];
    const value = state.value ?? state.selected_option?.value;
    if (file !== undefined) options[name] = toAttachment(file);
    else if (value !== undefined && value !== "") options[name] = value;
  }
  return options;
}

function titleOf(name: string): string {
  const words = name.replaceAll(/[-_]/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
