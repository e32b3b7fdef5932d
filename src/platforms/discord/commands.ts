import {
  ApplicationCommandOptionType as OptionType,
  ApplicationCommandType,
  type APIApplicationCommand,
  type APIApplicationCommandBasicOption,
  type RESTPostAPIApplicationCommandsJSONBody,
} from "discord.js";
import type { Command, Option } from "../../core/command.ts";
import type { Log } from "../../core/telemetry.ts";
import type { DiscordApi } from "./api.ts";

/** Servers, direct messages with the bot, and other private channels. */
const contexts = [0, 1, 2];
/** Installed for a server or for a user. */
const integrationTypes = [0, 1];

/** The body of the registration: each command as a slash command, some also as message commands. */
function toRegistration(commands: Iterable<Command>): RESTPostAPIApplicationCommandsJSONBody[] {
  return [...commands].flatMap((command) => {
    const slash: RESTPostAPIApplicationCommandsJSONBody = {
      type: ApplicationCommandType.ChatInput,
      name: command.name,
      description: command.description,
      options: Object.entries(command.options).map(([name, option]) => toOption(name, option)),
      contexts,
      integration_types: integrationTypes,
    };
    if (command.messageCommand === undefined) return [slash];
    return [
      slash,
      {
        type: ApplicationCommandType.Message,
        name: command.messageCommand.label,
        contexts,
        integration_types: integrationTypes,
      },
    ];
  });
}

/** Discord's limit of a text option. */
const maxTextChars = 6000;

function toOption(name: string, option: Option): APIApplicationCommandBasicOption {
  const base = { name, description: option.description, required: option.required === true };
  switch (option.kind) {
    case "string": {
      const text = {
        ...base,
        type: OptionType.String as const,
        ...(option.maxChars === undefined ? {} : { max_length: Math.min(option.maxChars, maxTextChars) }),
      };
      if (option.choices !== undefined)
        return { ...text, choices: option.choices.map((choice) => ({ name: choice, value: choice })) };
      return option.completes !== undefined ? { ...text, autocomplete: true } : text;
    }
    case "integer":
      return { ...base, type: OptionType.Integer, min_value: option.min, max_value: option.max };
    case "boolean":
      return { ...base, type: OptionType.Boolean };
    case "attachment":
      return { ...base, type: OptionType.Attachment };
  }
}

/** Registers the commands unless Discord has them already: registrations per day are limited. @throws ParleyError */
export async function registerCommands(
  api: DiscordApi,
  applicationId: string,
  commands: Iterable<Command>,
  log: Log,
): Promise<void> {
  const wanted = toRegistration(commands);
  const present = await api.listCommands(applicationId);
  if (fingerprint(wanted) === fingerprint(present)) {
    log.debug({ commands: wanted.length }, "commands already registered");
    return;
  }
  await api.putCommands(applicationId, wanted);
  log.info({ commands: wanted.length }, "commands registered");
}

/** The visible parts of commands in a fixed order, without the defaults that Discord adds or omits. */
function fingerprint(
  commands: readonly (RESTPostAPIApplicationCommandsJSONBody | APIApplicationCommand)[],
): string {
  const plain = commands.map((command) => ({
    type: command.type ?? ApplicationCommandType.ChatInput,
    name: command.name,
    description: "description" in command ? command.description : "",
    contexts: [...(command.contexts ?? [])].sort((a, b) => a - b),
    integrationTypes: [...(command.integration_types ?? [])].sort((a, b) => a - b),
    options: (("options" in command ? command.options : undefined) ?? []).map((option) => {
      const known = option as unknown as Readonly<Record<string, unknown>>;
      return [
        known["type"],
        known["name"],
        known["description"],
        known["required"] === true,
        known["autocomplete"] === true,
        known["min_value"] ?? null,
        known["max_value"] ?? null,
        known["max_length"] ?? null,
        ((known["choices"] ?? []) as { name: string; value: unknown }[]).map(({ name, value }) => [
          name,
          value,
        ]),
      ];
    }),
  }));
  // Sorted by code units: a collation would load megabytes of language data.
  return plain
    .map((command) => JSON.stringify(command))
    .sort()
    .join("\n");
}
