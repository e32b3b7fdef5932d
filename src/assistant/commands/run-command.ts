import { parseOptions } from "../../core/command-options.ts";
import type { Command } from "../../core/command.ts";
import { isWorthRetrying, toNotice } from "../../core/error-messages.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { CommandCall } from "../../core/events.ts";
import { throwIfAbandoned } from "../turn/abandoned.ts";
import type { TurnDependencies, TurnOutcome } from "../turn/turn.ts";
import { createCommandServices } from "./command-services.ts";
import { storeQuestion, storeResult, type CommandRun } from "./command-run.ts";

type NewRun = Omit<CommandRun, "ended"> & { readonly isConfirmed: boolean };

/**
 * Runs one call of a command until its reply has ended. Failures are shown in the reply and, in a conversation, stored.
 * @throws ParleyError `stopping` and `store-unavailable`, so that the call stays open for recovery
 */
export async function runCommand(
  dependencies: TurnDependencies,
  commands: ReadonlyMap<string, Command>,
  run: NewRun,
): Promise<TurnOutcome> {
  const { call } = run;
  let outcome: TurnOutcome = "complete";
  try {
    const command = findCommand(commands, call);
    const options = parseOptions(command, call.options);
    const ended = (how: TurnOutcome): void => {
      outcome = how;
    };
    const services = createCommandServices(dependencies, { ...run, ended });
    await command.run({ call, options, services, commands, isConfirmed: run.isConfirmed });
    return outcome;
  } catch (error) {
    return await concludeFailure(dependencies, { ...run, ended: () => {} }, error);
  }
}

function findCommand(commands: ReadonlyMap<string, Command>, call: CommandCall): Command {
  const command = commands.get(call.name);
  if (command === undefined) {
    throw new ParleyError("unknown-command", "no such command", {
      detail: { command: call.name, commands: [...commands.keys()].map((name) => `/${name}`).join(", ") },
    });
  }
  if (call.problem !== undefined)
    throw new ParleyError("invalid-option", "the command as written cannot be run", {
      detail: call.problem.detail,
    });
  return command;
}

async function concludeFailure(
  dependencies: TurnDependencies,
  run: CommandRun,
  error: unknown,
): Promise<TurnOutcome> {
  const { call, reply } = run;
  if (isParleyError(error, "stopping")) throw error;
  throwIfAbandoned(run.signal);
  dependencies.log.warn({ key: call.key, command: call.name, err: error }, "command failed");
  const text = toNotice(error);
  if (call.inConversation && !call.isPrivate && !isParleyError(error, "store-unavailable")) {
    // Changes nothing where the command has stored its question already. A Retry stores it in its better form.
    if (!isWorthRetrying(error))
      await storeQuestion(dependencies, run, [{ kind: "text", text: toCommandLine(call) }], false);
    await storeResult(dependencies, run, { parts: [], outcome: "failed", failure: text });
  }
  await reply.show();
  if (isParleyError(error, "cancelled")) {
    await reply.finish({ notices: [text] });
    return "cancelled";
  }
  // Shown as failed, and left open: recovery runs it again once there is a store.
  const isTemporary = isParleyError(error, "store-unavailable");
  await reply.fail({ text, ...(isWorthRetrying(error) ? { retryKey: call.key } : {}), isTemporary });
  if (isTemporary) throw error;
  return "failed";
}

/** The call as a person would type it; files by their names. */
function toCommandLine(call: CommandCall): string {
  if (call.problem !== undefined) return call.problem.written;
  const options = Object.entries(call.options).map(
    ([name, value]) => `${name}:${typeof value === "object" ? value.name : value}`,
  );
  return [`/${call.name}`, ...options].join(" ");
}
