import { inTurn } from "../../core/turn-scope.ts";
import type { ActiveTurn } from "./active-turn.ts";
import { toLanguage } from "../../words/languages.ts";
import { inLanguage } from "../../words/translate.ts";
import { eventsOf, type PendingTurn } from "./pending-turn.ts";
import type { TurnTraces } from "./turn-traces.ts";

type RunBatch = (batch: readonly PendingTurn[], active: ActiveTurn) => Promise<"ended" | "left-open">;

/**
 * Runs each batch in the scope of its turn: its log lines name it, it is one step of a trace, and it speaks the language
 * of the person who asked first.
 */
export function withTurnScope(runBatch: RunBatch, traces: TurnTraces): RunBatch {
  return async (batch, active) => {
    const [first] = batch;
    if (first === undefined) return "ended";
    const events = batch.flatMap(eventsOf);
    const span = traces.run(events, (first.progress?.attempts ?? 0) + 1);
    let end: "ended" | "left-open" = "left-open";
    try {
      const language = toLanguage(first.event.author.locale);
      end = await inTurn({ turn: first.event.key, span }, () =>
        inLanguage(language, () => runBatch(batch, active)),
      );
      return end;
    } catch (error) {
      span.fail(error);
      throw error;
    } finally {
      span.end();
      traces.end(
        events.map(({ key }) => key),
        end,
      );
    }
  };
}
