import { AsyncLocalStorage } from "node:async_hooks";
import type { Span } from "./telemetry.ts";

/** The turn that the running code belongs to. */
export interface TurnScope {
  /** Key of the turn's first event: the `turn` of every log line. */
  readonly turn: string;
  /** What steps of the turn are traced under. */
  readonly span: Span;
  /** Called when a request of the turn is repeated only after this time, in milliseconds: the other side is busy. */
  readonly onWait?: (waitMs: number) => void;
}

const scopes = new AsyncLocalStorage<TurnScope>();

/** Runs `work`, and everything that it starts, as part of a turn: log lines and traces name it. */
export function inTurn<T>(scope: TurnScope, work: () => T): T {
  return scopes.run(scope, work);
}

/** `undefined` outside of turns. */
export function currentTurn(): TurnScope | undefined {
  return scopes.getStore();
}
