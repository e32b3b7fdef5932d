import { resolveInput, type ResolvedInput } from "../../core/command-input.ts";
import { parseCommandLine, usageOf, type Command } from "../../core/command.ts";
import { isParleyError } from "../../core/errors.ts";
import type { CommandCall, IncomingEvent, IncomingMessage } from "../../core/events.ts";
import type { Platform } from "../../core/platform.ts";
import { translate } from "../../words/translate.ts";

/**
 * A message that is written as a command (`/imagine a red fox`) becomes that command's call in its conversation:
 * some platforms take no slash commands inside threads, and people type them after a mention anywhere. A call that cannot be
 * run says so in its reply. Everything else stays what it is.
 */
export function toCallIfWritten(
  event: IncomingEvent,
  commands: ReadonlyMap<string, Command>,
  platform: Pick<Platform, "toPrivateAddress"> | undefined,
): IncomingEvent {
  if (event.kind !== "message") return event;
  const line = parseCommandLine(event.text);
  const command = line === undefined ? undefined : commands.get(line.name);
  if (line === undefined || command === undefined) return event;
  const { kind: _kind, text: _text, attachments, model: _model, ...base } = event;
  const call = {
    ...base,
    kind: "call",
    name: command.name,
    options: {},
    inConversation: true,
    isPrivate: false,
    isInputVisible: true,
  } as const satisfies CommandCall;
  let resolved: ResolvedInput;
  try {
    resolved = resolveInput(command, { text: line.text, files: attachments });
  } catch (error) {
    if (!isParleyError(error, "invalid-option")) throw error;
    return { ...call, problem: { written: event.text, detail: error.detail } };
  }
  if (!resolved.isPrivate) return { ...call, options: resolved.options };
  return toPrivateCall(event, { ...call, options: resolved.options, isPrivate: true }, command, platform);
}

function toPrivateCall(
  event: IncomingMessage,
  call: CommandCall,
  command: Command,
  platform: Pick<Platform, "toPrivateAddress"> | undefined,
): CommandCall {
  const address = platform?.toPrivateAddress(event.address);
  if (address !== undefined) return { ...call, address };
  return {
    ...call,
    isPrivate: false,
    options: {},
    problem: {
      written: event.text,
      detail: {
        command: command.name,
        problem: translate("command.only-slash"),
        usage: usageOf(command),
      },
    },
  };
}
