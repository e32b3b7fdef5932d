import { freeTextOption, parseCommandText, parseOptions, type Command } from "../../core/command.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Attachment, IncomingEvent, RawOption } from "../../core/events.ts";
import { keyOf, type WebAddress } from "./reply.ts";
import type { CommandView, OptionView } from "./views.ts";

/** Whoever sits in front of the page. */
export const localAuthor = { id: "web:local", name: "You" };
const commandStart = /^\/([a-z0-9_-]{1,32})(?=\s|$)/i;

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
  const start = commandStart.exec(sent.text);
  if (start === null) {
    return { ...base, kind: "message", text: sent.text.trim(), attachments: sent.attachments };
  }
  const name = start[1]?.toLowerCase() ?? "";
  const command = commands.get(name);
  if (command === undefined) {
    throw new ParleyError("unknown-command", `no command ${name}`, {
      detail: { command: name, commands: [...commands.keys()].map((known) => `/${known}`).join(", ") },
    });
  }
  const options = parseCommandText(command, sent.text.slice(start[0].length));
  giveFiles(command, options, sent.attachments);
  parseOptions(command, options);
  return {
    ...base,
    kind: "call",
    name,
    options,
    inConversation: true,
    isPrivate: false,
    isInputVisible: true,
  };
}

/** Puts the message's files into the command's file options, each into the first that takes its kind. */
function giveFiles(
  command: Command,
  options: Record<string, RawOption>,
  attachments: readonly Attachment[],
): void {
  for (const attachment of attachments) {
    const fitting = Object.entries(command.options).find(
      ([name, option]) =>
        option.kind === "attachment" &&
        options[name] === undefined &&
        isLikely(attachment.mediaType, option.accepts),
    );
    if (fitting === undefined) {
      throw new ParleyError("invalid-option", `command ${command.name} has no place for a file`, {
        detail: {
          command: command.name,
          option: attachment.name,
          problem: "this command has no place for this file; remove it or send it without the command",
        },
      });
    }
    options[fitting[0]] = attachment;
  }
}

/** By what the browser claims; the bytes are looked at later. Unknown types get the benefit of the doubt. */
function isLikely(mediaType: string | undefined, accepts: "image" | "audio"): boolean {
  const kind = mediaType?.split("/")[0] ?? "";
  if (accepts === "audio" && kind === "video") return true;
  return kind !== "image" && kind !== "audio" ? kind !== "text" : kind === accepts;
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
