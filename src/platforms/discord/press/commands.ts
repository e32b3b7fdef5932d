import {
  ApplicationCommandOptionType as OptionType,
  ApplicationCommandType,
  type APIApplicationCommand,
  type APIApplicationCommandBasicOption,
  type APIApplicationCommandOptionChoice,
  type FileUploadType,
  type RESTPostAPIApplicationCommandsJSONBody,
} from "discord.js";
import type { Command, Option } from "../../../core/command.ts";
import {
  choiceLabel,
  commandDescription,
  commandName,
  menuLabel,
  optionDescription,
  optionName,
} from "../../../core/command-input.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { Log } from "../../../core/telemetry.ts";
import type { DiscordApi } from "../transport/api.ts";
import { toLocalizations } from "../intake/locales.ts";

/** These are servers and direct messages with the bot. */
const contexts = [0, 1];
/** The bot is installed for servers, not for single users. */
const integrationTypes = [0];

/** Returns the body of the registration: each command as a slash command, some also as message commands. */
function toRegistration(commands: Iterable<Command>): RESTPostAPIApplicationCommandsJSONBody[] {
  return [...commands].flatMap((command) => {
    const slash: RESTPostAPIApplicationCommandsJSONBody = {
      type: ApplicationCommandType.ChatInput,
      name: command.name,
      name_localizations: toLocalizations(command.name, (language) => commandName(command, language)),
      description: command.description,
      description_localizations: toLocalizations(command.description, (language) =>
        commandDescription(command, language),
      ),
      options: Object.entries(command.options).map(([name, option]) => toOption(command, name, option)),
      contexts,
      integration_types: integrationTypes,
    };
    if (command.messageCommand === undefined) return [slash];
    return [
      slash,
      {
        type: ApplicationCommandType.Message,
        name: command.messageCommand.label,
        name_localizations: toLocalizations(command.messageCommand.label, (language) =>
          menuLabel(command, language),
        ),
        contexts,
        integration_types: integrationTypes,
      },
    ];
  });
}

/**
 * The file types of an attachment option: Discord's own sets, whose members it does not list, and the other
 * extensions that Parley reads. Discord looks at the name alone. The bytes are examined when the file is
 * read.
 */
const fileTypes: Readonly<Record<"image" | "audio", FileUploadType[]>> = {
  image: ["image", ".heic", ".heif", ".avif", ".bmp", ".tif", ".tiff"],
  audio: ["audio", ".oga", ".opus", ".m4a", ".mp4", ".webm"],
};

/** Discord's limit of a text option. */
const maxTextChars = 6000;

function toOption(command: Command, name: string, option: Option): APIApplicationCommandBasicOption {
  const base = {
    name,
    name_localizations: toLocalizations(name, (language) => optionName(command, name, language)),
    description: option.description,
    description_localizations: toLocalizations(option.description, (language) =>
      optionDescription(command, name, language),
    ),
    required: option.required === true,
  };
  switch (option.kind) {
    case "string": {
      const text = {
        ...base,
        type: OptionType.String as const,
        ...(option.maxChars === undefined ? {} : { max_length: Math.min(option.maxChars, maxTextChars) }),
      };
      if (option.choices !== undefined)
        return { ...text, choices: option.choices.map((choice) => toChoice(command, choice)) };
      return option.completes !== undefined ? { ...text, autocomplete: true } : text;
    }
    case "integer":
      return { ...base, type: OptionType.Integer, min_value: option.min, max_value: option.max };
    case "boolean":
      return { ...base, type: OptionType.Boolean };
    case "attachment":
      return { ...base, type: OptionType.Attachment, file_types: fileTypes[option.accepts] };
  }
}

function toChoice(command: Command, value: string): APIApplicationCommandOptionChoice<string> {
  const name_localizations = toLocalizations(value, (language) => choiceLabel(command, value, language));
  return { name: value, name_localizations, value };
}

/**
 * Registers the commands.
 * @throws ParleyError; `platform-rejected` names the command and the field that Discord refuses
 */
export async function registerCommands(
  api: DiscordApi,
  applicationId: string,
  commands: Iterable<Command>,
  log: Log,
): Promise<void> {
  const wanted = toRegistration(commands);
  try {
    await api.putCommands(applicationId, wanted);
  } catch (error) {
    throw nameFields(error, wanted);
  }
  log.info({ commands: wanted.length }, "commands registered");
}

/** Finds the commands that Discord lacks, and those that Parley does not have. */
export function findCommandChanges(
  registered: readonly Pick<APIApplicationCommand, "type" | "name">[],
  commands: Iterable<Command>,
): { readonly wanted: number; readonly changed: readonly string[] } {
  const [wanted, present] = [toRegistration(commands), registered].map(
    (list) =>
      new Map(list.map(({ type = ApplicationCommandType.ChatInput, name }) => [`${type} ${name}`, name])),
  ) as [Map<string, string>, Map<string, string>];
  const changed = [...wanted, ...present].filter(([key]) => !wanted.has(key) || !present.has(key));
  return { wanted: wanted.size, changed: changed.map(([, name]) => name) };
}

/** Replaces positions in field names, such as `3.options.0.description`, by commands and options. */
function nameFields(error: unknown, wanted: readonly RESTPostAPIApplicationCommandsJSONBody[]): unknown {
  if (!isParleyError(error, "platform-rejected")) return error;
  const { fields } = error.detail;
  if (typeof fields !== "string") return error;
  const named = fields.replaceAll(
    /(^|; )(\d+)((?:\.\w+)*): /g,
    (_, start: string, at: string, path: string) => {
      const command = wanted[Number(at)];
      const options = command !== undefined && "options" in command ? command.options : undefined;
      const field = path.slice(1).replace(/^options\.(\d+)/, (whole, index: string) => {
        const name = options?.[Number(index)]?.name;
        return name === undefined ? whole : `options.${name}`;
      });
      return `${start}command "${command?.name ?? at}"${field === "" ? "" : `, field ${field}`}: `;
    },
  );
  return new ParleyError("platform-rejected", `Discord refuses the commands: ${named}`, {
    detail: { ...error.detail, fields: named },
  });
}
