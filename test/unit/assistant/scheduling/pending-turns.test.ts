import { describe, expect, it } from "vitest";
import { keysOf, reconcile, type Waiting } from "../../../../src/assistant/scheduling/pending-turns.ts";
import { message } from "../../../support/fakes.ts";

const fresh = (key: string): Waiting => ({ event: message(key, { key }), progress: undefined, others: [] });
/** As the inbox lists it: begun `attempts` times, answering `others` as well. */
const listed = (key: string, attempts = 0, others: readonly string[] = []): Waiting => ({
  event: message(key, { key }),
  progress: { keys: [key, ...others], address: { at: `reply to ${key}` }, attempts },
  others: others.map((other) => message(other, { key: other })),
});
const shown = (line: readonly Waiting[]) =>
  line.map(
    (turn) => `${keysOf(turn).join("+")}${turn.progress === undefined ? "" : ` ${turn.progress.attempts}`}`,
  );

describe("the line of a conversation that other processes have been at", () => {
  it("stays as it is where they have done nothing", () => {
    expect(shown(reconcile([fresh("a"), fresh("b")], [listed("a"), listed("b")]))).toEqual(["a", "b"]);
  });

  it("drops what they have answered", () => {
    expect(shown(reconcile([fresh("a"), fresh("b")], [listed("b")]))).toEqual(["b"]);
    expect(reconcile([fresh("a")], [])).toEqual([]);
  });

  it("has what they accepted before come first, and what they accepted later not at all", () => {
    const line = reconcile([fresh("b")], [listed("a"), listed("b"), listed("c")]);
    expect(shown(line)).toEqual(["a 0", "b"]);
  });

  it("goes on with what they have begun, in its reply", () => {
    const [turn] = reconcile([fresh("a")], [listed("a", 1)]);
    expect(turn?.progress).toMatchObject({ attempts: 1, address: { at: "reply to a" } });
  });

  it("answers a burst that they began as one, also where only its end waited here", () => {
    expect(shown(reconcile([fresh("b")], [listed("a", 1, ["b"])]))).toEqual(["a+b 1"]);
    expect(shown(reconcile([fresh("a"), fresh("b")], [listed("a", 1, ["b"])]))).toEqual(["a+b 1"]);
  });

  it("does not seal a Retry for its age", () => {
    const retried: Waiting = { ...listed("a", 4), others: [] };
    const [turn] = reconcile([retried], [{ ...listed("a", 4), isSealed: true }]);
    expect(turn?.isSealed).toBeUndefined();
  });
});
