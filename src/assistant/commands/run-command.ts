import {
  resolveInput,
  type ResolvedInput,
  parseOptions,
  namesIn,
  toCommandLine,
} from "../../core/command-input.ts";
import { parseCommandLine, usageOf, type Command } from "../../core/command.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { CommandCall, IncomingEvent, IncomingMessage } from "../../core/events.ts";
import type { Platform } from "../../core/platform.ts";
import type { Result } from "../../core/result.ts";
import { translate } from "../../words/translate.ts";
import { toLanguage } from "../../words/languages.ts";
import { isOutage, throwIfAbandoned, type TurnDependencies } from "../turn/turn.ts";
import { toCallQuestion, type CommandRun } from "./command-run.ts";
import { createCommandServices } from "./offer-services.ts";
import { unknownCommand } from "../../support/text.ts";

/**
 * Runs a command's call to its result, or to what ended it.
 * @throws ParleyError `stopping`, `store-unavailable` and other outages, so that it runs again
 */
export async function runCommand(
  dependencies: TurnDependencies,
  commands: ReadonlyMap<string, Command>,
  given: Omit<CommandRun, "written">,
): Promise<Result> {
  const { call, again } = given;
  const command = commands.get(call.name);
  const run: CommandRun = { ...given, written: toCommandLine(call, command) };
  try {
    if (command === undefined) throw unknownCommand(call.name, commands.keys());
    if (call.problem !== undefined)
      throw new ParleyError("invalid-option", "the command as written cannot be run", {
        detail: call.problem.detail,
      });
    const options = parseOptions(command, call.options);
    const services = createCommandServices(dependencies, run);
    const isConfirmed = again?.kind === "confirm";
    return await command.run({ call, options, services, commands, isConfirmed });
  } catch (error) {
    throwIfAbandoned(run.signal);
    if (isOutage(error)) throw error;
    dependencies.log.warn({ command: call.name, err: error }, "command failed");
    return toFailure(run, withShownNames(error, run, command));
  }
}

function toFailure(run: CommandRun, error: unknown): Result {
  const { call, written } = run;
  const isKept = call.inConversation && !call.isPrivate;
  return {
    kind: isParleyError(error, "cancelled") ? "stopped" : "failed",
    notices: [],
    error,
    // A better question that the command has stored stays.
    ...(isKept
      ? { question: toCallQuestion(run, [{ kind: "text", text: written }], { inContext: false }) }
      : {}),
  };
}

/** Explains a wrong option with the names that the caller sees. Written commands use English names. */
function withShownNames(
  error: unknown,
  { call, platform }: CommandRun,
  command: Command | undefined,
): unknown {
  if (!isParleyError(error, "invalid-option") || command === undefined) return error;
  if (!platform.guide.hasLocalNames || call.isInputVisible === true) return error;
  const names = namesIn(toLanguage(call.author.locale));
  const { option, usage } = error.detail;
  return new ParleyError("invalid-option", error.message, {
    cause: error,
    detail: {
      ...error.detail,
      command: names.command(command.name),
      ...(typeof option === "string" ? { option: names.option(command, option) } : {}),
      ...(usage === undefined ? {} : { usage: usageOf(command, names) }),
    },
  });
}

/**
 * Turns a message that is written as a command (`/imagine a red fox`) into a call in its conversation. Some
 * platforms have no slash commands inside threads, and people type them after a mention anywhere. A call that
 * cannot run says so in its reply. Other events stay as they are.
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
