import type { CommandServices } from "./command-services.ts";
import { ParleyError } from "./errors.ts";
import type { Attachment, CommandCall } from "./events.ts";
import type { ModelOperation } from "./gateway.ts";
import type { Result } from "./result.ts";

interface OptionBase {
  /** It is shown beside the option on every platform and has 1 to 100 characters. */
  readonly description: string;
  readonly required?: boolean;
}

/** A command option. `parseOptions` checks every value again, because platforms check less. */
export type Option =
  | (OptionBase & {
      readonly kind: "string";
      readonly maxChars?: number;
      readonly choices?: readonly string[];
      /**
       * `models` makes the platform complete it from {@link Receiver.suggestModels}. `setting-values`
       * completes it with the values of the setting that the option `name` names.
       */
      readonly completes?: "models" | "setting-values";
      /** Limits `models` to those that support this operation. */
      readonly operation?: ModelOperation;
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

/** The option that names the model of an operation. */
export function modelOption(
  operation: ModelOperation,
  description = "Another model than the default",
): Extract<Option, { readonly kind: "string" }> {
  return { kind: "string", description, completes: "models", operation, maxChars: 200 };
}

/** The checked values of a command's options. */
export type OptionValues<O extends Readonly<Record<string, Option>>> = {
  readonly [K in keyof O]: O[K]["required"] extends true ? ValueOf<O[K]> : ValueOf<O[K]> | undefined;
};

/** What a command's `run` receives. */
interface CommandContext<Values> {
  readonly call: CommandCall;
  readonly options: Values;
  readonly services: CommandServices;
  /** All commands by name. */
  readonly commands: ReadonlyMap<string, Command>;
  /** Whether the caller has pressed the confirm button of {@link CommandServices.say}. */
  readonly isConfirmed: boolean;
}

/** A command that is also offered in a message's menu. */
interface MessageCommand {
  /** The menu entry: 1 to 24 characters on Slack, 32 on Discord. */
  readonly label: string;
  /** Options taken from the message. `text` is its text, `file` its first file of the accepted kind. */
  readonly fills?: Readonly<Record<string, "text" | "file">>;
  /**
   * At most five options that a form asks for first, without attachments. It is absent if nothing is asked.
   */
  readonly asks?: readonly string[];
}

/** A command, which is declared once for every platform. */
export interface Command<O extends Readonly<Record<string, Option>> = Readonly<Record<string, Option>>> {
  /** It has 1 to 32 of the characters a–z, 0–9, `-` and `_`. */
  readonly name: string;
  /** It has 1 to 100 characters. */
  readonly description: string;
  /** Required options come first. On platforms with text only, free text is the first required string. */
  readonly options: O;
  /**
   * `private` shows the reply to the caller only. The boolean option `private` overrides it for one call. On
   * the page, whose chats have one person, only that option keeps a call out of the conversation.
   */
  readonly visibility: "public" | "private";
  readonly messageCommand?: MessageCommand;
  /** Set where it has no use on a platform whose conversations have one person each. */
  readonly needsOthers?: true;
  /**
   * The operation that it asks of a model. Callers whose budget is spent are refused in private before
   * anything is shown. An option called `model` names the model. Without `spends`, budgets are checked only
   * when a model is called.
   */
  readonly spends?: ModelOperation;
  /** Example calls that `/help` shows, such as `/imagine a red fox count:2`. */
  readonly examples?: readonly string[];
  /** Resolves to the result of one of the services, which ends the reply. */
  readonly run: (context: CommandContext<OptionValues<O>>) => Promise<Result>;
}

const namePattern = /^[a-z0-9_-]{1,32}$/;
const maxAskedOptions = 5;

/**
 * Declares a command. The types of `run`'s options follow from the declaration.
 * @throws ParleyError `config` where Discord or Slack would refuse the declaration for one of their limits
 */
export function defineCommand<const O extends Readonly<Record<string, Option>>>(
  command: Command<O>,
): Command {
  const problem = problemOf(command) ?? problemOfMessageCommand(command);
  if (problem !== undefined) throw new ParleyError("config", `command /${command.name}: ${problem}`);
  return command as unknown as Command;
}

function problemOf(command: Omit<Command, "run">): string | undefined {
  if (!namePattern.test(command.name)) return "a name is 1 to 32 of a-z, 0-9, - and _";
  if (command.description.length < 1 || command.description.length > 100)
    return "a description is 1 to 100 characters";
  const options = Object.entries(command.options);
  if (options.length > 25) return "at most 25 options";
  const foreign = (command.examples ?? []).find((line) => parseCommandLine(line)?.name !== command.name);
  if (foreign !== undefined) return `the example "${foreign}" is of another command`;
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

function problemOfMessageCommand({ options, messageCommand }: Omit<Command, "run">): string | undefined {
  if (messageCommand === undefined) return undefined;
  const { label, fills = {}, asks = [] } = messageCommand;
  if (label.length < 1 || label.length > 32) return "a message command's label is 1 to 32 characters";
  if (asks.length > maxAskedOptions) return `a message command asks for at most ${maxAskedOptions} options`;
  for (const [name, from] of Object.entries(fills)) {
    const kind = options[name]?.kind;
    if (kind !== (from === "file" ? "attachment" : "string"))
      return `message command: option ${name} cannot be filled with the message's ${from}`;
  }
  for (const name of asks) {
    const kind = options[name]?.kind;
    if (kind === undefined || kind === "attachment")
      return `message command: option ${name} cannot be asked for`;
  }
  const missing = Object.entries(options).find(
    ([name, option]) => option.required === true && fills[name] === undefined && !asks.includes(name),
  );
  return missing === undefined
    ? undefined
    : `message command: the required option ${missing[0]} is neither filled nor asked for`;
}

const commandLine = /^\/([a-z0-9_-]{1,32})(?:\s([\s\S]*))?$/i;

/** Reads a message that begins with `/name`. The name is in lower case. Other text returns `undefined`. */
export function parseCommandLine(
  message: string,
): { readonly name: string; readonly text: string } | undefined {
  const [, name, text = ""] = commandLine.exec(message.trim()) ?? [];
  return name === undefined ? undefined : { name: name.toLowerCase(), text: text.trimStart() };
}

/** The option that gets free text: the first required string, or else the first option if it is a string. */
export function freeTextOption(command: Command): string | undefined {
  const options = Object.entries(command.options);
  const required = options.find(([, option]) => option.kind === "string" && option.required === true);
  if (required !== undefined) return required[0];
  return options[0]?.[1].kind === "string" ? options[0][0] : undefined;
}

/** The names of commands and options as people see them. */
export interface ShownNames {
  readonly command: (name: string) => string;
  readonly option: (command: Pick<Command, "name">, name: string) => string;
}

const declaredNames: ShownNames = { command: (name) => name, option: (_, name) => name };

/** One line that shows how to write a command, for example `/imagine <prompt> [size:…] [count:1-4]`. */
export function usageOf(command: Command, names = declaredNames): string {
  const free = freeTextOption(command);
  const words = Object.entries(command.options).map(([declared, option]) => {
    const name = names.option(command, declared);
    if (declared === free) return option.required === true ? `<${name}>` : `[${name}]`;
    const value =
      option.kind === "integer" ? `${option.min}-${option.max}` : option.kind === "boolean" ? "yes" : "…";
    const word = `${name}:${value}`;
    return option.required === true ? word : `[${word}]`;
  });
  return [`/${names.command(command.name)}`, ...words].join(" ");
}

/**
 * Collects all commands by name.
 * @throws ParleyError `config` where two commands or two message commands share a name
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
