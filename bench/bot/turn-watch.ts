import type { ScriptedGateway } from "./scripted-gateway.ts";
import { marks } from "./scripted-gateway.ts";

/** The times of one turn as `performance.now()` of this process. NaN means that it did not happen. */
export interface Turn {
  readonly sentAt: number;
  /** The arrival of the acknowledgement, for interactions only. */
  readonly ackedAt: number;
  readonly askedAt: number;
  readonly firstTokenAt: number;
  /** The time when the gateway wrote the last piece of the answer. */
  readonly lastTokenAt: number;
  /** The arrival at the platform of the first request that contains the first token. */
  readonly firstVisibleAt: number;
  /** The arrival of the first request that contains the last token. NaN means that the turn is lost. */
  readonly lastVisibleAt: number;
}

interface Watch {
  ackedAt: number;
  firstVisibleAt: number;
  done(lastVisibleAt: number): void;
}

/** Follows turns from the question to the whole answer by the marks in their texts. */
export interface TurnWatch {
  /**
   * Sends a question and resolves when the platform has the whole answer, or after `withinMs`, when the turn
   * is lost. `send` gets the text of the question and returns the interaction, if it is one.
   */
  follow(send: (text: string) => string | undefined, withinMs: number): Promise<Turn>;
  /** Inspects a request that a platform has accepted. `at` is its arrival. */
  inspect(content: unknown, at: number): void;
  acknowledged(interactionId: string, at: number): void;
}

/** Creates a {@link TurnWatch}. */
export function createTurnWatch(gateway: ScriptedGateway): TurnWatch {
  const watches = new Map<number, Watch>();
  const interactions = new Map<string, Watch>();
  let turns = 0;
  return {
    follow(send, withinMs) {
      turns += 1;
      const turn = turns;
      return new Promise((resolve) => {
        let interactionId: string | undefined;
        const timer = setTimeout(() => watch.done(Number.NaN), withinMs);
        const sentAt = performance.now();
        const watch: Watch = {
          ackedAt: Number.NaN,
          firstVisibleAt: Number.NaN,
          done(lastVisibleAt) {
            clearTimeout(timer);
            watches.delete(turn);
            if (interactionId !== undefined) interactions.delete(interactionId);
            resolve({
              sentAt,
              ackedAt: watch.ackedAt,
              askedAt: gateway.askedAt.get(turn) ?? Number.NaN,
              firstTokenAt: gateway.firstTokenAt.get(turn) ?? Number.NaN,
              lastTokenAt: gateway.lastTokenAt.get(turn) ?? Number.NaN,
              firstVisibleAt: watch.firstVisibleAt,
              lastVisibleAt,
            });
          },
        };
        watches.set(turn, watch);
        interactionId = send(marks.question(turn));
        if (interactionId !== undefined) interactions.set(interactionId, watch);
      });
    },
    inspect(content, at) {
      const text = JSON.stringify(content);
      for (const [, turn] of text.matchAll(/first(\d+)\./g)) {
        const watch = watches.get(Number(turn));
        if (watch !== undefined && Number.isNaN(watch.firstVisibleAt)) watch.firstVisibleAt = at;
      }
      for (const [, turn] of text.matchAll(/last(\d+)\./g)) watches.get(Number(turn))?.done(at);
    },
    acknowledged(interactionId, at) {
      const watch = interactions.get(interactionId);
      if (watch !== undefined && Number.isNaN(watch.ackedAt)) watch.ackedAt = at;
    },
  };
}
