import { parseOptions } from "../../core/command-options.ts";
import { usageOf, type Command } from "../../core/command.ts";
import { namesIn } from "../../core/command-words.ts";
import { isWorthRetrying, toNotice } from "../../core/error-messages.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { CommandCall } from "../../core/events.ts";
import { toLanguage } from "../../words/languages.ts";
import { throwIfAbandoned } from "../turn/abandoned.ts";
import { keepsEarlier, showEarlier } from "../turn/earlier-answer.ts";
import type { TurnDependencies, TurnOutcome } from "../turn/turn.ts";
import { createCommandServices } from "./command-services.ts";
import { storeQuestion, storeResult, type CommandRun } from "./command-run.ts";
import { toCommandLine } from "../../core/written-call.ts";

type Failed = CommandRun & { readonly commands: ReadonlyMap<string, Command> };
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
    return await concludeFailure(dependencies, { ...run, ended: () => {}, commands }, error);
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

/** What is wrong with an option, by the names that the caller sees. What is written is written in English. */
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
    // Changes nothing where the command has stored its question already. A Retry stores it in its better form.
    if (!isWorthRetrying(error))
      await storeQuestion(dependencies, run, [{ kind: "text", text: toCommandLine(call) }], {
        inContext: false,
      });
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
