import { parseCommandText, type Command } from "../../core/command.ts";
import { isParleyError } from "../../core/errors.ts";
import type { Attachment, IncomingEvent, RawOption } from "../../core/events.ts";

const commandLine = /^\/([a-z0-9_-]{1,32})(?:\s+([\s\S]*))?$/;

/**
 * A message that is written as a command (`/imagine a red fox`) becomes that command's call in its conversation:
 * Slack takes no slash commands inside threads, and people type them after a mention anywhere. The message's
 * files fill the command's file options. Everything else stays what it is.
 */
export function toCallIfWritten(event: IncomingEvent, commands: ReadonlyMap<string, Command>): IncomingEvent {
  if (event.kind !== "message") return event;
  const [, name, text] = commandLine.exec(event.text.trim()) ?? [];
  const command = name === undefined ? undefined : commands.get(name);
  if (command === undefined) return event;
  const { kind: _kind, text: _text, attachments, model: _model, ...base } = event;
  return {
    ...base,
    kind: "call",
    name: command.name,
    options: { ...filesFor(command, attachments), ...optionsOf(command, text ?? "") },
    inConversation: true,
    isPrivate: false,
    isInputVisible: true,
  };
}

function optionsOf(command: Command, text: string): Record<string, RawOption> {
  try {
    return parseCommandText(command, text);
  } catch (error) {
    if (!isParleyError(error, "invalid-option")) throw error;
    // Named like no option, so that the check of the options refuses it and says how the command is written.
    return { text };
  }
}

function filesFor(command: Command, attachments: readonly Attachment[]): Record<string, RawOption> {
  const options: Record<string, RawOption> = {};
  const left = [...attachments];
  for (const [name, option] of Object.entries(command.options)) {
    if (option.kind !== "attachment") continue;
    const fitting = left.findIndex((one) => one.mediaType?.startsWith(`${option.accepts}/`) === true);
    const [file] = left.splice(Math.max(0, fitting), 1);
    if (file !== undefined) options[name] = file;
  }
  return options;
}
