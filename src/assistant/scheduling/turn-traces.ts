import { LRUCache } from "lru-cache";
import type { IncomingEvent } from "../../core/events.ts";
import { inTurn, noSpan, type Span, type Tracer } from "../../core/telemetry.ts";
import { toLanguage } from "../../words/languages.ts";
import { inLanguage } from "../../words/translate.ts";
import { type ActiveTurn, eventsOf, type PendingTurn } from "./pending-turn.ts";

/** How many traces of events are open at once. Older ones are ended. */
const maxOpen = 2000;

/** The traces of events from their arrival until they are answered. */
interface TurnTraces {
  /** Begins the trace of an event, which stays open until `end`. */
  arrived(event: IncomingEvent): Span;
  /** Begins a run of a turn as part of its first event's trace, or as a new trace after a restart. */
  run(events: readonly IncomingEvent[], attempt: number): Span;
  /** Ends the traces of events that this process began, and ignores others. */
  end(keys: readonly string[], outcome: string): void;
}

/** Creates {@link TurnTraces}. */
export function createTurnTraces(tracer: Tracer): TurnTraces {
  if (!tracer.isOn) return { arrived: () => noSpan, run: () => noSpan, end() {} };
  const open = new LRUCache<string, Span>({ max: maxOpen, dispose: (span) => span.end() });
  return {
    arrived(event) {
      const known = open.get(event.key);
      if (known !== undefined) return known;
      const span = tracer.start(event.kind === "call" ? `command ${event.name}` : "message", {
        parent: undefined,
        kind: "consumer",
        fields: { "parley.turn": event.key, "parley.platform": event.platform },
      });
      open.set(event.key, span);
      return span;
    },
    run([first, ...others], attempt) {
      if (first === undefined) return noSpan;
      return tracer.start("turn", {
        parent: open.get(first.key),
        links: others.flatMap(({ key }) => open.get(key) ?? []),
        fields: {
          "parley.turn": first.key,
          "parley.platform": first.platform,
          "parley.attempt": attempt,
          "parley.events": others.length + 1,
        },
      });
    },
    end(keys, outcome) {
      for (const key of keys) {
        open.get(key)?.set({ "parley.outcome": outcome });
        open.delete(key);
      }
    },
  };
}

type RunBatch = (batch: readonly PendingTurn[], active: ActiveTurn) => Promise<"ended" | "left-open">;

/**
 * Runs each batch in the scope of its turn. Its log lines name the turn, it is one step of a trace, and it
 * uses the language of the person who asked first.
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
