import { translate, currentLanguage, translateDeclared } from "../words/translate.ts";
import type { Language } from "../words/languages.ts";
import {
  freeTextOption,
  parseCommandLine,
  usageOf,
  type Command,
  type Option,
  type OptionValues,
  type ShownNames,
} from "./command.ts";
import { ParleyError } from "./errors.ts";
import type { Attachment, RawOption, CommandCall } from "./events.ts";
import { isPublicHost } from "./settings.ts";

/** What a person gave with a command, however the platform delivers it. */
export interface CommandInput {
  /** The values by option name, on platforms that have command options. */
  readonly options?: Readonly<Record<string, RawOption>>;
  /** A line of text that may contain options. */
  readonly text?: string;
  /** Files that were sent along. Each must fit an attachment option. */
  readonly files?: readonly Attachment[];
  /** The message on which a message command was used. */
  readonly subject?: CommandCall["subject"];
}

/** A command's input in the form in which a call holds it. */
export interface ResolvedInput {
  /** They are checked, and include the files and the parts of the message. */
  readonly options: Readonly<Record<string, RawOption>>;
  /** Whether only the caller may see the reply. */
  readonly isPrivate: boolean;
}

/**
 * Decides a call's options and privacy for every platform. `isPersonal` says that only one person sees the
 * conversation (the page). Only an explicit `private` option then hides the reply.
 * @throws ParleyError `invalid-option` for an unknown, missing or wrong option, or a file that fits none
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
 * Puts the text, the files and the parts of the message into the command's options, without checking them.
 * @throws ParleyError `invalid-option` for free text or a file that fits no option
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

/** Names of the required options that are missing. */
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

/** Prefers a file whose claimed type is of the wanted kind, and else takes one that may be of that kind. */
function firstFile(option: Option, files: readonly Attachment[]): Attachment | undefined {
  const fitting = files.filter((file) => accepts(option, file));
  const isOfKind = (file: Attachment): boolean =>
    option.kind === "attachment" && claimedKind(file) === option.accepts;
  return fitting.find((file) => isOfKind(file)) ?? fitting[0];
}

/** Judges a file by its claimed type, because its bytes are sniffed later. Unknown types may be anything. */
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

/**
 * Writes a call as a person would, for example `/imagine a red fox size:1024x1024`. Values with spaces are
 * quoted, and options without a value are left out.
 */
export function toWrittenCall(
  name: string,
  freeText: string | undefined,
  options: Readonly<Record<string, string | number | boolean | undefined>> = {},
): string {
  const given = Object.entries(options).flatMap(([option, value]) =>
    value === undefined ? [] : [`${option}:${quoteIfNeeded(toText(value))}`],
  );
  return [`/${name}`, ...(freeText === undefined || freeText === "" ? [] : [freeText]), ...given].join(" ");
}

function toText(value: string | number | boolean): string {
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
}

function quoteIfNeeded(text: string): string {
  return /\s/.test(text) ? `"${text}"` : text;
}

/**
 * Writes a call as its person has typed it, except for the order of its options. Where it was text, its free
 * text has no name. Files appear by their names. `command` is the call's, if it is known.
 */
export function toCommandLine(call: CommandCall, command?: Command): string {
  if (call.problem !== undefined) return call.problem.written;
  const free = call.isInputVisible === true && command !== undefined ? freeTextOption(command) : undefined;
  let freeText: string | undefined;
  const named: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(call.options)) {
    if (name === free && typeof value === "string") freeText = value;
    else named[name] = typeof value === "object" ? value.name : value;
  }
  return toWrittenCall(call.name, freeText, named);
}

type Named = Pick<Command, "name">;

/** The name of a command as people see it. Registration and written calls use the declared name. */
export function commandName({ name }: Named, language: Language): string {
  return translateDeclared(language, `command.${name}.name`, name);
}

/** The name of a command's option as people see it. */
export function optionName(command: Named, name: string, language: Language = currentLanguage()): string {
  return translateDeclared(language, `command.${command.name}.option-name.${name}`, name);
}

/** The names of commands and options in a language. */
export function namesIn(language: Language): ShownNames {
  return {
    command: (name) => commandName({ name }, language),
    option: (command, name) => optionName(command, name, language),
  };
}

/** The description of a command, by default in the person's language. */
export function commandDescription(
  { name, description }: Named & Pick<Command, "description">,
  language: Language = currentLanguage(),
): string {
  return translateDeclared(language, `command.${name}.description`, description);
}

/** The description of a command's option. */
export function optionDescription(
  command: Named & Pick<Command, "options">,
  option: string,
  language: Language = currentLanguage(),
): string {
  const declared = command.options[option]?.description ?? option;
  return translateDeclared(language, `command.${command.name}.option.${option}`, declared);
}

/** The label of a message command in a message's menu. It is empty where the command has none. */
export function menuLabel(
  { name, messageCommand }: Named & Pick<Command, "messageCommand">,
  language: Language = currentLanguage(),
): string {
  return translateDeclared(language, `command.${name}.menu`, messageCommand?.label ?? "");
}

/** An option's name as a label, for example "Prompt". It has at most 32 characters. */
export function optionTitle(command: Named, name: string): string {
  const words = optionName(command, name).replaceAll(/[-_]/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A choice of a command's option as people see it. */
export function choiceLabel(command: Named, choice: string, language: Language = currentLanguage()): string {
  return translateDeclared(language, `command.${command.name}.choice.${choice}`, choice);
}

/** Several words stand in the quotation marks of any language. */
const quoted = /"[^"]*"|[“”„][^“”„]*[“”]|[«»][^«»]*[«»]|[‹›][^‹›]*[‹›]|「[^「」]*」|『[^『』]*』/;
const assigned = `([a-z0-9_-]{1,32}):(${quoted.source}|\\S+)`;
const assignment = new RegExp(`(?:^|\\s)${assigned}`, "gi");
const soleAssignment = new RegExp(`^${assigned}$`, "i");
const soleQuotation = new RegExp(`^(?:${quoted.source})$`);

const unquote = (value: string): string => (soleQuotation.test(value) ? value.slice(1, -1).trim() : value);

/**
 * Reads options out of a line of text. An option is written `name:value` or `name:"several words"` anywhere
 * in it, and the rest is the free text. `image:https://…` becomes a link attachment. Values are not checked.
 */
export function parseCommandText(command: Command, text: string): Record<string, RawOption> {
  const options: Record<string, RawOption> = {};
  const free = freeTextOption(command);
  const rest = text.replace(assignment, (whole: string, rawName: string, rawValue: string) => {
    const name = rawName.toLowerCase();
    const option = Object.hasOwn(command.options, name) ? command.options[name] : undefined;
    // A required free text may itself contain "prompt: …". An optional one is only set by its name.
    if (option === undefined || (name === free && option.required === true)) return whole;
    const value = unquote(rawValue);
    options[name] = option.kind === "attachment" ? linkAttachment(value) : value;
    return "";
  });
  // The name of a required free text is no part of it where nothing else stands beside its value.
  const [, name, value = ""] = soleAssignment.exec(rest.trim()) ?? [];
  const freeText = name !== undefined && name.toLowerCase() === free ? unquote(value) : rest.trim();
  if (freeText === "") return options;
  if (free === undefined) {
    throw new ParleyError("invalid-option", `command ${command.name} takes no free text`, {
      detail: { command: command.name, problem: translate("option.no-free-text"), usage: usageOf(command) },
    });
  }
  const named = options[free];
  options[free] = typeof named === "string" ? `${named} ${freeText}` : freeText;
  return options;
}

/** What a text asks: a written command's text, without its name and options. Other texts stay as they are. */
export function toAsked(text: string): string {
  const asked = parseCommandLine(text)?.text.replaceAll(assignment, " ").trim() ?? "";
  return asked === "" ? text : asked;
}

function linkAttachment(url: string): Attachment {
  return { id: url, name: url.split(/[?#]/)[0]?.split("/").at(-1) ?? "link", source: { url }, linkUrl: url };
}

/**
 * Checks raw values against the declaration and gives them their types.
 * @throws ParleyError `invalid-option`, whose `detail.option` and `detail.problem` say what is wrong
 */
export function parseOptions(
  command: Command,
  raw: Readonly<Record<string, RawOption>>,
): OptionValues<Readonly<Record<string, Option>>> {
  const values: Record<string, string | number | boolean | Attachment> = {};
  for (const name of Object.keys(raw)) {
    if (!Object.hasOwn(command.options, name))
      throw invalidOption(command, name, translate("option.unknown"));
  }
  for (const [name, option] of Object.entries(command.options)) {
    const given = raw[name];
    if (given === undefined || given === "") {
      if (option.required === true) throw invalidOption(command, name, translate("option.needed"));
      continue;
    }
    values[name] = parseOption(command, name, option, given);
  }
  return values as OptionValues<Readonly<Record<string, Option>>>;
}

function parseOption(command: Command, name: string, option: Option, given: RawOption) {
  switch (option.kind) {
    case "string": {
      if (typeof given !== "string") throw invalidOption(command, name, translate("option.text"));
      const maxChars = option.maxChars ?? 6000;
      if (given.length > maxChars)
        throw invalidOption(command, name, translate("option.too-long", { max: maxChars }));
      if (option.choices !== undefined && !option.choices.includes(given))
        throw invalidOption(
          command,
          name,
          translate("option.choice", { choices: option.choices.join(", ") }),
        );
      return given;
    }
    case "integer": {
      const number = typeof given === "string" ? Number(given) : given;
      if (
        typeof number !== "number" ||
        !Number.isInteger(number) ||
        number < option.min ||
        number > option.max
      )
        throw invalidOption(command, name, translate("option.integer", { min: option.min, max: option.max }));
      return number;
    }
    case "boolean": {
      if (typeof given === "boolean") return given;
      if (given === "true" || given === "yes" || given === "on") return true;
      if (given === "false" || given === "no" || given === "off") return false;
      throw invalidOption(command, name, translate("option.boolean"));
    }
    case "attachment": {
      if (typeof given !== "object") throw invalidOption(command, name, translate("option.file"));
      if (given.linkUrl !== undefined && !isPublicHttps(given.linkUrl))
        throw invalidOption(command, name, translate("option.address"));
      return given;
    }
  }
}

/** The gateway receives the address and may download it from inside its own network, so it must be public. */
function isPublicHttps(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, username, password, hostname } = new URL(address);
  return protocol === "https:" && username === "" && password === "" && isPublicHost(hostname);
}

/** The error for an option that cannot be used. `problem` follows the option's name in a sentence. */
export function invalidOption(command: Command, option: string, problem: string): ParleyError {
  return new ParleyError("invalid-option", `command ${command.name}, option ${option}: ${problem}`, {
    detail: { command: command.name, option, problem, usage: usageOf(command) },
  });
}
