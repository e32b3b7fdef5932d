import {
  resolveInput,
  type ResolvedInput,
  parseOptions,
  namesIn,
  toCommandLine,
} from "../../core/command-input.ts";
import { parseCommandLine, usageOf, type Command } from "../../core/command.ts";
import { toNotice } from "../../core/error-messages.ts";
import { isParleyError, isWorthRetrying, ParleyError } from "../../core/errors.ts";
import type { CommandCall, IncomingEvent, IncomingMessage } from "../../core/events.ts";
import type { Platform } from "../../core/platform.ts";
import { translate } from "../../words/translate.ts";
import { toLanguage } from "../../words/languages.ts";
import { throwIfAbandoned, type TurnDependencies, type TurnOutcome } from "../turn/turn.ts";
import { keepsEarlier, showEarlier } from "../turn/continued-answer.ts";
import { storeQuestion, storeResult, type CommandRun } from "./command-run.ts";
import { createCommandServices } from "./command-services.ts";
import { unknownCommand } from "../../support/text.ts";

type NewRun = Omit<CommandRun, "ended" | "written"> & { readonly isConfirmed: boolean };

/**
 * Runs a command's call until its reply has ended. The reply shows failures, and a conversation stores them.
 * @throws ParleyError `stopping` and `store-unavailable`, so that the call stays open for recovery
 */
export async function runCommand(
  dependencies: TurnDependencies,
  commands: ReadonlyMap<string, Command>,
  { isConfirmed, ...given }: NewRun,
): Promise<TurnOutcome> {
  const { call } = given;
  const command = commands.get(call.name);
  let outcome: TurnOutcome = "complete";
  const run: CommandRun = {
    ...given,
    written: toCommandLine(call, command),
    ended(how) {
      outcome = how;
    },
  };
  try {
    if (command === undefined) throw unknownCommand(call.name, commands.keys());
    if (call.problem !== undefined)
      throw new ParleyError("invalid-option", "the command as written cannot be run", {
        detail: call.problem.detail,
      });
    const options = parseOptions(command, call.options);
    const services = createCommandServices(dependencies, run);
    await command.run({ call, options, services, commands, isConfirmed });
    return outcome;
  } catch (error) {
    return await concludeFailure(dependencies, run, withShownNames(error, run, command));
  }
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

async function concludeFailure(
  dependencies: TurnDependencies,
  run: CommandRun,
  error: unknown,
): Promise<TurnOutcome> {
  const { call, reply } = run;
  if (isParleyError(error, "stopping")) throw error;
  throwIfAbandoned(run.signal);
  dependencies.log.warn({ command: call.name, err: error }, "command failed");
  const text = toNotice(error);
  const isCancelled = isParleyError(error, "cancelled");
  if (keepsEarlier(run.redo) && !isParleyError(error, "store-unavailable")) {
    await reply.show();
    const earlier = { ...run, key: call.key, lead: "" };
    if (await showEarlier(dependencies, earlier, text)) return isCancelled ? "cancelled" : "failed";
  }
  if (call.inConversation && !call.isPrivate && !isParleyError(error, "store-unavailable")) {
    // This changes nothing if the command has stored its question. A Retry stores it in a better form.
    if (!isWorthRetrying(error))
      await storeQuestion(dependencies, run, [{ kind: "text", text: run.written }], {
        inContext: false,
      });
    const how = isCancelled
      ? ({ outcome: "interrupted", notices: [text] } as const)
      : ({ outcome: "failed", failure: text } as const);
    await storeResult(dependencies, run, { parts: [], ...how });
  }
  await reply.show();
  if (isCancelled) {
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
