import type { Command } from "../../core/command.ts";
import { isParleyError, type ParleyError } from "../../core/errors.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { ModelOperation } from "../../core/gateway.ts";
import type { ModelChoice } from "../turn/model-choice.ts";
import type { Budgets } from "./budgets.ts";

export interface SpentCheckOptions {
  readonly budgets: Pick<Budgets, "spentError" | "isFree">;
  readonly commands: ReadonlyMap<string, Command>;
  /** The choice of models by the settings in force for an event. */
  readonly modelsFor: (event: IncomingEvent) => Promise<Pick<ModelChoice, "choose">>;
}

/** How long finding the usual model may take, in milliseconds: a platform waits for its acknowledgement. */
const choiceMs = 1000;

/**
 * Returns a function that resolves to the error `over-budget` for an event that asks a model which costs something,
 * while a budget of its author is spent. It reads the store only where there are budgets. What is only reserved, and
 * what is not certain, is decided when the turn calls the gateway.
 */
export function createSpentCheck({ budgets, commands, modelsFor }: SpentCheckOptions) {
  function askedOf(event: IncomingEvent): { operation: ModelOperation; model: unknown } | undefined {
    if (event.kind === "message") return { operation: "chat", model: event.model };
    const operation = event.problem === undefined ? commands.get(event.name)?.spends : undefined;
    return operation === undefined ? undefined : { operation, model: event.options["model"] };
  }

  /** @param model asked instead of the one that the event asks for */
  return async function overBudget(event: IncomingEvent, model?: string): Promise<ParleyError | undefined> {
    const own = askedOf(event);
    if (own === undefined) return undefined;
    const asked = model === undefined ? own : { ...own, model };
    try {
      const { author, platform, origin } = event;
      const error = await budgets.spentError({ personId: author.id, platform, origin });
      if (error === undefined) return undefined;
      const chosen =
        typeof asked.model === "string"
          ? asked.model
          : await (await modelsFor(event)).choose(asked.operation, undefined, AbortSignal.timeout(choiceMs));
      return budgets.isFree(asked.operation, chosen) ? undefined : error;
    } catch (error) {
      if (!isParleyError(error)) throw error;
      // Without the store, or without a model, the turn says what is wrong.
      return undefined;
    }
  };
}
