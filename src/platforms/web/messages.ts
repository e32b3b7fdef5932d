import { freeTextOption, parseCommandLine, type Command } from "../../core/command.ts";
import { resolveInput } from "../../core/command-input.ts";
import type { Actor } from "../../core/access.ts";
import type { Attachment, Author, IncomingEvent, Origin } from "../../core/events.ts";
import { currentLocale } from "../../words/translate.ts";
import { type WebAddress, toEventKey } from "./address.ts";
import { currentPerson } from "./page-person.ts";
import type { CommandView, OptionView } from "./views.ts";
import { unknownCommand } from "../../support/text.ts";

/** Returns the sender, an account or the operator, with the language of the browser. */
export function currentSender(): { readonly author: Author; readonly origin?: Origin } {
  const { author, origin } = currentPerson();
  return { author: { ...author, ...currentLocale() }, ...(origin === undefined ? {} : { origin }) };
}

/** Returns the same person as the one who presses a button. */
export function localActor(): Actor {
  return { platform: "web", ...currentSender() };
}

/**
 * Converts a sent message to an event: a call when the text begins with a command, otherwise a message. The
 * event's key depends only on the address, so that a message sent twice is a duplicate.
 * @throws ParleyError `unknown-command`, `invalid-option`: the page shows the error and the text stays
 *   editable
 */
export function toEvent(
  commands: ReadonlyMap<string, Command>,
  sent: { address: WebAddress; text: string; attachments: readonly Attachment[]; sentAt: number },
): IncomingEvent {
  const base = {
    key: toEventKey(sent.address),
    platform: "web",
    conversationId: sent.address.conversationId,
    ...currentSender(),
    sentAt: sent.sentAt,
    address: { ...sent.address },
  };
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

/** Returns what the page needs to complete a command. `usage` is one line, as in {@link CommandView}. */
export function toCommandView(command: Command, usage: string): CommandView {
  const freeText = freeTextOption(command);
  return {
    name: command.name,
    description: command.description,
    usage,
    ...(freeText === undefined ? {} : { freeText }),
    options: Object.entries(command.options).map(([name, option]): OptionView => {
      const base = { name, kind: option.kind, description: option.description };
      const isRequired = option.required === true;
      switch (option.kind) {
        case "string":
          return {
            ...base,
            isRequired,
            values: option.choices ?? [],
            completesModels: option.completes === "models",
            ...(option.operation === undefined ? {} : { operation: option.operation }),
          };
        case "integer":
          return { ...base, isRequired, values: numbers(option.min, option.max), completesModels: false };
        case "boolean":
          return { ...base, isRequired, values: ["yes", "no"], completesModels: false };
        case "attachment":
          return { ...base, isRequired, values: [], completesModels: false };
      }
    }),
  };
}

/** Returns all numbers of a range of at most 11 as completions, and none for a larger range. */
function numbers(min: number, max: number): string[] {
  if (max - min > 10) return [];
  return Array.from({ length: max - min + 1 }, (_, index) => `${min + index}`);
}
