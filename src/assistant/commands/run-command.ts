import { keepQuestion, keepResult, type CallRun } from "./command-run.ts";
import { createCommandServices } from "./command-services.ts";
import type { Command } from "../../core/command.ts";
import { parseOptions } from "../../core/command-options.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import { isWorthRetrying, toNotice } from "../../core/error-messages.ts";
import { throwIfLeft, type TurnOutcome, type TurnRoom } from "../turn/run-turn.ts";
import type { CommandCall } from "../../core/events.ts";

type Run = Omit<CallRun, "ended"> & { readonly isConfirmed: boolean };

/**
 * Runs one call of a command to its shown end. What goes wrong is shown in the reply and, in a conversation, kept;
 * only `stopping` is thrown, so that the call stays open for the next start.
 */
export async function runCall(
  room: TurnRoom,
  commands: ReadonlyMap<string, Command>,
  run: Run,
): Promise<TurnOutcome> {
  const { call } = run;
  let outcome: TurnOutcome = "complete";
  try {
    const command = commands.get(call.name);
    if (command === undefined) {
      throw new ParleyError("unknown-command", "no such command", {
        detail: { command: call.name, commands: [...commands.keys()].map((name) => `/${name}`).join(", ") },
      });
    }
    if (call.problem !== undefined)
      throw new ParleyError("invalid-option", "the command was written wrongly", {
        detail: call.problem.detail,
      });
    const options = parseOptions(command, call.options);
    const ended = (how: TurnOutcome): void => {
      outcome = how;
    };
    const services = createCommandServices(room, { ...run, ended });
    await command.run({ call, options, services, isConfirmed: run.isConfirmed });
    return outcome;
  } catch (error) {
    return await concludeFailure(room, { ...run, ended: () => {} }, error);
  }
}

async function concludeFailure(room: TurnRoom, run: CallRun, error: unknown): Promise<TurnOutcome> {
  const { call, reply } = run;
  if (isParleyError(error, "stopping")) throw error;
  throwIfLeft(run.signal);
  room.log.warn({ key: call.key, command: call.name, err: error }, "a command did not end well");
  const text = toNotice(error);
  if (call.inConversation && !call.isPrivate && !isParleyError(error, "store-unavailable")) {
    // Where the command came as far as keeping its question itself, this changes nothing; a Retry keeps it better.
    if (!isWorthRetrying(error))
      await keepQuestion(room, run, [{ kind: "text", text: asWritten(call) }], false);
    await keepResult(room, run, { parts: [], outcome: "failed", notices: [text] });
  }
  await reply.show();
  if (isParleyError(error, "cancelled")) {
    await reply.finish({ notices: [text] });
    return "cancelled";
  }
  await reply.fail({ text, ...(isWorthRetrying(error) ? { retryKey: call.key } : {}) });
  return "failed";
}

/** The call as a person would write it; files by their names. */
function asWritten(call: CommandCall): string {
  if (call.problem !== undefined) return call.problem.written;
  const options = Object.entries(call.options).map(
    ([name, value]) => `${name}:${typeof value === "object" ? value.name : value}`,
  );
  return [`/${call.name}`, ...options].join(" ");
}
