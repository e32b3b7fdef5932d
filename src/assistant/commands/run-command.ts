import {
  resolveInput,
  type ResolvedInput,
  parseOptions,
  namesIn,
  toCommandLine,
} from "../../core/command-input.ts";
import { parseCommandLine, usageOf, type Command } from "../../core/command.ts";
import { isWorthRetrying, toNotice } from "../../core/error-messages.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { CommandCall, IncomingEvent, IncomingMessage } from "../../core/events.ts";
import type { Platform } from "../../core/platform.ts";
import { toLanguage } from "../../words/languages.ts";
import { translate } from "../../words/translate.ts";
import { throwIfAbandoned, type TurnDependencies, type TurnOutcome } from "../turn/turn.ts";
import { keepsEarlier, showEarlier } from "../turn/continued-answer.ts";
import { storeQuestion, storeResult, type CommandRun } from "./command-run.ts";
import { createCommandServices } from "./command-services.ts";
import { unknownCommand } from "../../support/text.ts";

type Failed = CommandRun & { readonly commands: ReadonlyMap<string, Command> };
type NewRun = Omit<CommandRun, "ended" | "written"> & { readonly isConfirmed: boolean };

/**
 * Runs a command's call until its reply has ended. The reply shows failures, and a conversation stores them.
 * @throws ParleyError `stopping` and `store-unavailable`, so that the call stays open for recovery
 */
export async function runCommand(
  dependencies: TurnDependencies,
  commands: ReadonlyMap<string, Command>,
  run: NewRun,
): Promise<TurnOutcome> {
  const { call } = run;
  const written = toCommandLine(call, commands.get(call.name));
  let outcome: TurnOutcome = "complete";
  try {
    const command = findCommand(commands, call);
    const options = parseOptions(command, call.options);
    const ended = (how: TurnOutcome): void => {
      outcome = how;
    };
    const services = createCommandServices(dependencies, { ...run, written, ended });
    await command.run({ call, options, services, commands, isConfirmed: run.isConfirmed });
    return outcome;
  } catch (error) {
    return await concludeFailure(dependencies, { ...run, written, ended: () => {}, commands }, error);
  }
}

function findCommand(commands: ReadonlyMap<string, Command>, call: CommandCall): Command {
  const command = commands.get(call.name);
  if (command === undefined) throw unknownCommand(call.name, commands.keys());
  if (call.problem !== undefined)
    throw new ParleyError("invalid-option", "the command as written cannot be run", {
      detail: call.problem.detail,
    });
  return command;
}

/** Explains a wrong option with the names that the caller sees. Written commands use English names. */
function withShownNames(error: unknown, { call, platform, commands }: Failed): unknown {
  const command = commands.get(call.name);
  if (!isParleyError(error, "invalid-option") || command === undefined) return error;
  if (!platform.guide.hasLocalNames || call.isInputVisible === true) return error;
  const names = namesIn(toLanguage(call.author.locale));
  const { option, usage } = error.detail;
  return new ParleyError("invalid-option", error.message, {
    cause: error,
    detail: {
      ...error.detail,
      command: names.command(command.name),
      ...(typeof option === "string" ? { option: names.option(option) } : {}),
      ...(usage === undefined ? {} : { usage: usageOf(command, names) }),
    },
  });
}

async function concludeFailure(
  dependencies: TurnDependencies,
  run: Failed,
  error: unknown,
): Promise<TurnOutcome> {
  const { call, reply } = run;
  if (isParleyError(error, "stopping")) throw error;
  throwIfAbandoned(run.signal);
  dependencies.log.warn({ command: call.name, err: error }, "command failed");
  const text = toNotice(withShownNames(error, run));
  if (keepsEarlier(run.redo) && !isParleyError(error, "store-unavailable")) {
    await reply.show();
    const earlier = { ...run, key: call.key, lead: "" };
    if (await showEarlier(dependencies, earlier, text))
      return isParleyError(error, "cancelled") ? "cancelled" : "failed";
  }
  if (call.inConversation && !call.isPrivate && !isParleyError(error, "store-unavailable")) {
    // This changes nothing if the command has stored its question. A Retry stores it in a better form.
    if (!isWorthRetrying(error))
      await storeQuestion(dependencies, run, [{ kind: "text", text: run.written }], {
        inContext: false,
      });
    await storeResult(dependencies, run, { parts: [], outcome: "failed", failure: text });
  }
  await reply.show();
  if (isParleyError(error, "cancelled")) {
    await reply.finish({ notices: [text] });
    return "cancelled";
  }
  // The reply shows the failure, but the event stays open. Recovery runs it again when there is a store.
  const isTemporary = isParleyError(error, "store-unavailable");
  await reply.fail({ text, ...(isWorthRetrying(error) ? { retryKey: call.key } : {}), isTemporary });
  if (isTemporary) throw error;
  return "failed";
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
