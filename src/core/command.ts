import { ParleyError } from "./errors.ts";
import type { CommandServices } from "./command-services.ts";
import type { Attachment, CommandCall, RawOption } from "./events.ts";

interface OptionBase {
  /** Shown beside the option on every platform; 1 to 100 characters. */
  readonly description: string;
  readonly required?: boolean;
}

/** A command option. What a platform cannot check (or checks by file extension only) `parseOptions` checks again. */
export type Option =
  | (OptionBase & {
      readonly kind: "string";
      readonly maxChars?: number;
      readonly choices?: readonly string[];
      /** The platform completes it from {@link Receiver.suggestModels}. */
      readonly completes?: "models";
    })
  | (OptionBase & { readonly kind: "integer"; readonly min: number; readonly max: number })
  | (OptionBase & { readonly kind: "boolean" })
  | (OptionBase & { readonly kind: "attachment"; readonly accepts: "image" | "audio" });

type ValueOf<O extends Option> = O["kind"] extends "string"
  ? string
  : O["kind"] extends "integer"
    ? number
    : O["kind"] extends "boolean"
      ? boolean
      : Attachment;

/** The checked values of a command's options. */
export type OptionValues<O extends Readonly<Record<string, Option>>> = {
  readonly [K in keyof O]: O[K]["required"] extends true ? ValueOf<O[K]> : ValueOf<O[K]> | undefined;
};

/** What a command's `run` works with. */
export interface CommandContext<Values> {
  readonly call: CommandCall;
  readonly options: Values;
  readonly services: CommandServices;
  /** Whether the caller has pressed the button of {@link CommandServices.askFirst}. */
  readonly isConfirmed: boolean;
}

/** One command, declared once for every platform. */
export interface Command<O extends Readonly<Record<string, Option>> = Readonly<Record<string, Option>>> {
  /** 1 to 32 of a–z, 0–9, `-`, `_`. */
  readonly name: string;
  /** 1 to 100 characters. */
  readonly description: string;
  /** Required ones first; the first required string takes the free text where a platform has only text. */
  readonly options: O;
  /** `private`: only the caller sees the reply. A `private` boolean option overrides it call by call. */
  readonly visibility: "public" | "private";
  /** Also offered on a message: the label of that menu entry, and what of the message is used. */
  readonly messageCommand?: {
    readonly label: string;
    /** `file`: runs at once with the message's first fitting file. `prompt`: asks for the prompt first. */
    readonly takes: "file" | "prompt";
  };
  readonly run: (context: CommandContext<OptionValues<O>>) => Promise<void>;
}

const namePattern = /^[a-z0-9_-]{1,32}$/;

/**
 * Declares a command. `run`'s option types follow from the declaration.
 * @throws ParleyError `config` when the declaration breaks a limit that Discord or Slack would refuse it for.
 */
export function defineCommand<const O extends Readonly<Record<string, Option>>>(
  command: Command<O>,
): Command {
  const problem = problemOf(command);
  if (problem !== undefined) throw new ParleyError("config", `command /${command.name}: ${problem}`);
  return command as unknown as Command;
}

function problemOf(command: Omit<Command, "run">): string | undefined {
  if (!namePattern.test(command.name)) return "a name is 1 to 32 of a-z, 0-9, - and _";
  if (command.description.length < 1 || command.description.length > 100)
    return "a description is 1 to 100 characters";
  const options = Object.entries(command.options);
  if (options.length > 25) return "at most 25 options";
  let optionalSeen = false;
  for (const [name, option] of options) {
    if (!namePattern.test(name)) return `option ${name}: a name is 1 to 32 of a-z, 0-9, - and _`;
    if (option.description.length < 1 || option.description.length > 100)
      return `option ${name}: a description is 1 to 100 characters`;
    if (option.required === true && optionalSeen) return `option ${name}: required options come first`;
    if (option.required !== true) optionalSeen = true;
    if (option.kind === "string" && (option.choices?.length ?? 0) > 25)
      return `option ${name}: at most 25 choices`;
  }
  return undefined;
}

/** The option that free text goes to: the first required string, else the first option where that is a string. */
export function freeTextOption(command: Command): string | undefined {
  const options = Object.entries(command.options);
  const required = options.find(([, option]) => option.kind === "string" && option.required === true);
  if (required !== undefined) return required[0];
  return options[0]?.[1].kind === "string" ? options[0][0] : undefined;
}

/** Whether only the caller may see the reply to this call. */
export function isPrivate(command: Command, options: Readonly<Record<string, unknown>>): boolean {
  const asked = command.options["private"] === undefined ? undefined : options["private"];
  if (typeof asked === "boolean") return asked;
  return command.visibility === "private";
}

const assignment = /(?:^|\s)([a-z0-9_-]{1,32}):("[^"]*"|\S+)/gi;

/**
 * Reads options out of a line of text: `name:value` or `name:"several words"` anywhere, for the names the command
 * has; the rest is its free text. `image:https://…` becomes a link attachment. Values stay unchecked.
 */
export function parseCommandText(command: Command, text: string): Record<string, RawOption> {
  const options: Record<string, RawOption> = {};
  const rest = text.replace(assignment, (whole: string, rawName: string, rawValue: string) => {
    const name = rawName.toLowerCase();
    const option = command.options[name];
    // What must be said in words may itself contain "prompt: …"; an optional one can only be meant by its name.
    if (option === undefined || (name === freeTextOption(command) && option.required === true)) return whole;
    const value = rawValue.startsWith('"') ? rawValue.slice(1, -1) : rawValue;
    options[name] = option.kind === "attachment" ? linkAttachment(value) : value;
    return "";
  });
  const free = freeTextOption(command);
  const freeText = rest.trim();
  if (freeText === "") return options;
  if (free === undefined) {
    throw new ParleyError("invalid-option", `command ${command.name} takes no free text`, {
      detail: { command: command.name, problem: "it takes no text of its own", usage: usageOf(command) },
    });
  }
  const named = options[free];
  options[free] = typeof named === "string" ? `${named} ${freeText}` : freeText;
  return options;
}

function linkAttachment(url: string): Attachment {
  return { id: url, name: url.split(/[?#]/)[0]?.split("/").at(-1) ?? "link", source: { url }, linkUrl: url };
}

/**
 * Checks raw values against the declaration and gives them their types.
 * @throws ParleyError `invalid-option`; `detail.option` and `detail.problem` say which and how to mend it
 */
export function parseOptions(
  command: Command,
  raw: Readonly<Record<string, RawOption>>,
): OptionValues<Readonly<Record<string, Option>>> {
  const values: Record<string, string | number | boolean | Attachment> = {};
  for (const name of Object.keys(raw)) {
    if (command.options[name] === undefined) throw invalid(command, name, "there is no such option");
  }
  for (const [name, option] of Object.entries(command.options)) {
    const given = raw[name];
    if (given === undefined || given === "") {
      if (option.required === true) throw invalid(command, name, "it is needed");
      continue;
    }
    values[name] = parseOption(command, name, option, given);
  }
  return values as OptionValues<Readonly<Record<string, Option>>>;
}

function parseOption(command: Command, name: string, option: Option, given: RawOption) {
  switch (option.kind) {
    case "string": {
      if (typeof given !== "string") throw invalid(command, name, "it must be text");
      const maxChars = option.maxChars ?? 6000;
      if (given.length > maxChars) throw invalid(command, name, `at most ${maxChars} characters`);
      if (option.choices !== undefined && !option.choices.includes(given))
        throw invalid(command, name, `one of ${option.choices.join(", ")}`);
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
        throw invalid(command, name, `a whole number from ${option.min} to ${option.max}`);
      return number;
    }
    case "boolean": {
      if (typeof given === "boolean") return given;
      if (given === "true" || given === "yes" || given === "on") return true;
      if (given === "false" || given === "no" || given === "off") return false;
      throw invalid(command, name, "yes or no");
    }
    case "attachment": {
      if (typeof given !== "object") throw invalid(command, name, "it must be a file");
      if (given.linkUrl !== undefined && !isPublicHttps(given.linkUrl))
        throw invalid(command, name, "an address must start with https://");
      return given;
    }
  }
}

function isPublicHttps(url: string): boolean {
  return URL.canParse(url) && new URL(url).protocol === "https:" && new URL(url).username === "";
}

function invalid(command: Command, option: string, problem: string): ParleyError {
  return new ParleyError("invalid-option", `command ${command.name}, option ${option}: ${problem}`, {
    detail: { command: command.name, option, problem, usage: usageOf(command) },
  });
}

/** One line that shows how a command is written: `/imagine <prompt> [size:…] [count:1-4]`. */
export function usageOf(command: Command): string {
  const free = freeTextOption(command);
  const words = Object.entries(command.options).map(([name, option]) => {
    if (name === free) return option.required === true ? `<${name}>` : `[${name}]`;
    const value =
      option.kind === "integer" ? `${option.min}-${option.max}` : option.kind === "boolean" ? "yes" : "…";
    const word = `${name}:${value}`;
    return option.required === true ? word : `[${word}]`;
  });
  return [`/${command.name}`, ...words].join(" ");
}

/**
 * All commands by name.
 * @throws ParleyError `config` naming two commands (or two message commands) that share a name
 */
export function createCommandSet(commands: readonly Command[]): ReadonlyMap<string, Command> {
  const byName = new Map<string, Command>();
  const labels = new Set<string>();
  for (const command of commands) {
    if (byName.has(command.name)) throw new ParleyError("config", `two commands are called /${command.name}`);
    const label = command.messageCommand?.label;
    if (label !== undefined && labels.has(label))
      throw new ParleyError("config", `two message commands are called "${label}"`);
    if (label !== undefined) labels.add(label);
    byName.set(command.name, command);
  }
  return byName;
}
