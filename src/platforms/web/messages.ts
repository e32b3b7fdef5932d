import { freeTextOption, parseCommandLine, type Command } from "../../core/command.ts";
import { commandDescription, optionDescription, resolveInput } from "../../core/command-input.ts";
import type { Actor } from "../../core/access.ts";
import type { Attachment, CommandCall, IncomingEvent } from "../../core/events.ts";
import type { ActionCall } from "../../core/press.ts";
import { systemClock } from "../../support/clock.ts";
import { currentLocale } from "../../words/translate.ts";
import { type WebAddress, toEventKey, currentPerson } from "./address.ts";
import type { CommandView } from "./views.ts";
import { unknownCommand } from "../../support/text.ts";

/** Returns the person who sends the request, with the language of the browser. */
export function localActor() {
  const { author, origin } = currentPerson();
  return {
    platform: "web",
    author: { ...author, ...currentLocale() },
    ...(origin === undefined ? {} : { origin }),
  } satisfies Actor;
}

/** Returns what every event of the person who sends the request has. */
function eventAt(address: WebAddress) {
  return {
    ...localActor(),
    key: toEventKey(address),
    conversationId: address.conversationId,
    sentAt: systemClock.now(),
    address: { ...address },
  };
}

/**
 * Converts a sent message to an event: a call when the text begins with a command, otherwise a message. The
 * event's key depends only on the address, so that a message sent twice is a duplicate.
 * @throws ParleyError `unknown-command`, `invalid-option`: the page shows the error and the text stays
 *   editable
 */
export function toEvent(
  commands: ReadonlyMap<string, Command>,
  sent: { readonly address: WebAddress; readonly text: string; readonly attachments: readonly Attachment[] },
): IncomingEvent {
  const base = eventAt(sent.address);
  const line = parseCommandLine(sent.text);
  if (line === undefined) {
    return { ...base, kind: "message", text: sent.text.trim(), attachments: sent.attachments };
  }
  const { name } = line;
  const command = commands.get(name);
  if (command === undefined) throw unknownCommand(name, commands.keys());
  const resolved = resolveInput(command, { text: line.text, files: sent.attachments }, { isPersonal: true });
  return {
    ...base,
    kind: "call",
    name,
    ...resolved,
    ...(resolved.isPrivate ? { address: { ...sent.address, isPrivate: true } } : {}),
    inConversation: true,
    isInputVisible: true,
  };
}

/** Makes a call of its own from what a button asks for. */
export function toCommandCall(address: WebAddress, { name, options, pictures }: ActionCall): CommandCall {
  return {
    ...eventAt(address),
    kind: "call",
    name,
    options,
    ...(pictures === undefined ? {} : { pictures }),
    inConversation: true,
    isPrivate: address.isPrivate === true,
    isInputVisible: true,
  };
}

/** Returns what the page needs to complete a command. `usage` is one line, as in {@link CommandView}. */
export function toCommandView(command: Command, usage: string): CommandView {
  const freeText = freeTextOption(command);
  return {
    name: command.name,
    description: commandDescription(command),
    usage,
    ...(freeText === undefined ? {} : { freeText }),
    options: Object.entries(command.options).map(([name, option]) => ({
      name,
      kind: option.kind,
      description: optionDescription(command, name),
      isRequired: option.required === true,
      values: valuesOf(option),
      completesModels: option.kind === "string" && option.completes === "models",
      ...(option.kind === "string" && option.operation !== undefined ? { operation: option.operation } : {}),
    })),
  };
}

/** Returns all values of an option, or none where there are too many to list: over 11 numbers. */
function valuesOf(option: Command["options"][string]): readonly string[] {
  switch (option.kind) {
    case "string":
      return option.choices ?? [];
    case "integer":
      if (option.max - option.min > 10) return [];
      return Array.from({ length: option.max - option.min + 1 }, (_, index) => `${option.min + index}`);
    case "boolean":
      return ["yes", "no"];
    case "attachment":
      return [];
  }
}
