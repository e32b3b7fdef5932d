import type { Command, Option } from "../../core/command.ts";
import { freeTextOption } from "../../core/command.ts";
import type { RawOption } from "../../core/events.ts";
import { toAttachment } from "./files.ts";
import { cutText } from "./markdown.ts";
import type { SlackFileInfo } from "./web-api.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Kept in a modal's `private_metadata` until it is submitted; at most 3,000 characters of JSON. */
export interface ModalMemory {
  readonly channel: string;
  readonly responseUrl?: string | undefined;
  /** The message that a shortcut was used on. */
  readonly subject?: { readonly ts: string; readonly thread?: string | undefined } | undefined;
}

const callbackPrefix = "parley_command:";
/** @see https://docs.slack.dev/reference/block-kit/block-elements/plain-text-input-element */
const maxInputChars = 3000;
const actionId = "value";

const toPlain = (text: string, maxChars: number) => ({ type: "plain_text", text: cutText(text, maxChars) });

/**
 * The modal of a command: one input for each option, or for a message command those it asks for.
 * `initial` prefills them.
 */
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
    title: toPlain(command.messageCommand?.label ?? titleOf(command.name), 24),
    submit: toPlain("Send", 24),
    close: toPlain("Cancel", 24),
    blocks: options.map(([name, option]) => toInput(command, name, option, initial[name])),
  };
}

/** The name of the command a modal belongs to; `undefined` if it is not one of {@link toModal}. */
export function commandOfModal(callbackId: string): string | undefined {
  return callbackId.startsWith(callbackPrefix) ? callbackId.slice(callbackPrefix.length) : undefined;
}

/** Matches the `callback_id` of every modal of {@link toModal}. */
export const modalCallbacks = new RegExp(`^${callbackPrefix}`);

/** Parses a modal's `private_metadata`. */
export function parseMemory(metadata: string): ModalMemory {
  return JSON.parse(metadata) as ModalMemory;
}

function toInput(command: Command, name: string, option: Option, initial: RawOption | undefined): Fields {
  return {
    type: "input",
    block_id: name,
    label: toPlain(titleOf(name), 2000),
    hint: toPlain(option.description, 2000),
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
      // No list of file types: Slack checks names only. The bytes are sniffed later.
      return { type: "file_input", max_files: 1 };
  }
}

function toSelect(choices: readonly string[], initial: string | undefined): Fields {
  const options = choices.map((choice) => ({ text: toPlain(choice, 75), value: choice }));
  const chosen = options.find(({ value }) => value === initial);
  return { type: "static_select", options, ...(chosen === undefined ? {} : { initial_option: chosen }) };
}

/** The raw options of a submission, by option name; empty inputs are left out. */
export function parseModal(values: Readonly<Record<string, Fields>>): Record<string, RawOption> {
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
  const title = name.replaceAll(/[-_]/g, " ");
  return title.charAt(0).toUpperCase() + title.slice(1);
}
