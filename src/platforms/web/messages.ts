import { freeTextOption, parseCommandLine, type Command } from "../../core/command.ts";
import { resolveInput } from "../../core/command-input.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Attachment, IncomingEvent } from "../../core/events.ts";
import { keyOf, type WebAddress } from "./reply.ts";
import type { CommandView, OptionView } from "./views.ts";

/** Whoever sits in front of the page. */
export const localAuthor = { id: "web:local", name: "You" };

/**
 * The event that a sent message is: a command where it begins with one, else a message. The same address always
 * makes the same event, so that sending twice is noticed.
 * @throws ParleyError `unknown-command`, `invalid-option`: nothing was sent, the person mends the text
 */
export function toEvent(
  commands: ReadonlyMap<string, Command>,
  sent: { address: WebAddress; text: string; attachments: readonly Attachment[]; sentAt: number },
): IncomingEvent {
  const base = {
    key: keyOf(sent.address),
    platform: "web",
    conversationId: sent.address.conversationId,
    author: localAuthor,
    sentAt: sent.sentAt,
    address: { ...sent.address },
  };
  const line = parseCommandLine(sent.text);
  if (line === undefined) {
    return { ...base, kind: "message", text: sent.text.trim(), attachments: sent.attachments };
  }
  const { name } = line;
  const command = commands.get(name);
  if (command === undefined) {
    throw new ParleyError("unknown-command", `no command ${name}`, {
      detail: { command: name, commands: [...commands.keys()].map((known) => `/${known}`).join(", ") },
    });
  }
  const resolved = resolveInput(command, { text: line.text, files: sent.attachments }, { isPersonal: true });
  return {
    ...base,
    kind: "call",
    name,
    ...resolved,
    inConversation: true,
    isInputVisible: true,
  };
}

/** A command as the page completes it. */
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

/** Small ranges are offered whole. */
function numbers(min: number, max: number): string[] {
  if (max - min > 10) return [];
  return Array.from({ length: max - min + 1 }, (_, index) => `${min + index}`);
}
