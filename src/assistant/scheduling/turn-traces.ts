import { LRUCache } from "lru-cache";
import type { IncomingEvent } from "../../core/events.ts";
import { noSpan, type Span, type Tracer } from "../../core/telemetry.ts";

/** Events whose traces are open at once; older ones are ended. */
const maxOpen = 2000;

/** The traces of events, from their arrival until they are answered. */
export interface TurnTraces {
  /** Begins the trace of an event. It stays open until `end`. */
  arrived(event: IncomingEvent): Span;
  /** Begins one run of a turn: part of its first event's trace, or a trace of its own after a restart. */
  run(events: readonly IncomingEvent[], attempt: number): Span;
  /** Ends the traces of events that this process began. Others are ignored. */
  end(keys: readonly string[], outcome: string): void;
}

/** @see {@link TurnTraces} */
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
