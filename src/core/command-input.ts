import { invalidOption, parseCommandText, parseOptions } from "./command-options.ts";
import type { Command, Option } from "./command.ts";
import type { Attachment, CommandCall, RawOption } from "./events.ts";
import { translate } from "../words/translate.ts";

/** What a person gave with a command, in whatever form the platform delivers it. */
export interface CommandInput {
  /** Values by option name, where the platform has options of its own. */
  readonly options?: Readonly<Record<string, RawOption>>;
  /** A line of text with options in it. */
  readonly text?: string;
  /** Files that came along; each must fit an attachment option. */
  readonly files?: readonly Attachment[];
  /** The message that a message command was used on. */
  readonly subject?: CommandCall["subject"];
}

/** A command's input as its call takes it. */
export interface ResolvedInput {
  /** Checked, and with the files and the message's parts in their options. */
  readonly options: Readonly<Record<string, RawOption>>;
  /** Whether only the caller may see the reply. */
  readonly isPrivate: boolean;
}

/**
 * Decides a call's options and privacy, for every platform.
 * `isPersonal`: one person alone sees the conversation anyway (the page), so that only an explicit `private` hides.
 * @throws ParleyError `invalid-option`: an unknown, missing or wrong option, or a file that fits none
 */
export function resolveInput(
  command: Command,
  input: CommandInput,
  surface: { readonly isPersonal?: boolean } = {},
): ResolvedInput {
  const options = collectOptions(command, input);
  const values = parseOptions(command, options);
  return { options, isPrivate: isPrivate(command, values, surface.isPersonal === true) };
}

/**
 * Brings text, files and the message's parts into the command's options; the values stay unchecked.
 * @throws ParleyError `invalid-option`: free text or a file that fits no option
 */
export function collectOptions(command: Command, input: CommandInput): Record<string, RawOption> {
  const options: Record<string, RawOption> = {
    ...input.options,
    ...(input.text === undefined ? {} : parseCommandText(command, input.text)),
  };
  for (const file of input.files ?? []) options[optionForFile(command, options, file)] = file;
  if (input.subject !== undefined) fillFromMessage(command, options, input.subject);
  return options;
}

/** Names of required options that are not given. */
export function missingOptions(command: Command, options: Readonly<Record<string, RawOption>>): string[] {
  return Object.entries(command.options).flatMap(([name, option]) =>
    option.required === true && options[name] === undefined ? [name] : [],
  );
}

function isPrivate(
  command: Command,
  values: Readonly<Record<string, unknown>>,
  isPersonal: boolean,
): boolean {
  const asked = values["private"];
  return typeof asked === "boolean" ? asked : command.visibility === "private" && !isPersonal;
}

function optionForFile(
  command: Command,
  options: Readonly<Record<string, RawOption>>,
  file: Attachment,
): string {
  const found = Object.entries(command.options).find(
    ([name, option]) => options[name] === undefined && accepts(option, file),
  );
  if (found !== undefined) return found[0];
  throw invalidOption(command, file.name, translate("option.file-unfit"));
}

function fillFromMessage(
  command: Command,
  options: Record<string, RawOption>,
  subject: NonNullable<CommandCall["subject"]>,
): void {
  for (const [name, from] of Object.entries(command.messageCommand?.fills ?? {})) {
    const option = command.options[name];
    if (option === undefined || options[name] !== undefined) continue;
    const value = from === "text" ? subject.text : firstFile(option, subject.attachments);
    if (value !== undefined && value !== "") options[name] = value;
    else if (option.required === true)
      throw invalidOption(command, name, translate(`option.message-without.${noun(option)}`));
  }
}

/** A file that claims to be of the kind, else one that may be. */
function firstFile(option: Option, files: readonly Attachment[]): Attachment | undefined {
  const fitting = files.filter((file) => accepts(option, file));
  const isOfKind = (file: Attachment): boolean =>
    option.kind === "attachment" && claimedKind(file) === option.accepts;
  return fitting.find((file) => isOfKind(file)) ?? fitting[0];
}

/** By what the sender claims; the bytes are sniffed later. Unknown types may be anything. */
function accepts(option: Option, file: Attachment): boolean {
  if (option.kind !== "attachment") return false;
  const kind = claimedKind(file);
  if (option.accepts === "audio" && kind === "video") return true;
  return kind === "image" || kind === "audio" ? kind === option.accepts : kind !== "text";
}

function claimedKind({ mediaType }: Attachment): string {
  return mediaType?.split("/")[0] ?? "";
}

function noun(option: Option): "text" | "audio" | "image" {
  return option.kind === "attachment" ? option.accepts : "text";
}
