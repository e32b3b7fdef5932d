import { describe, expect, it } from "vitest";
import { keysOf, type PendingTurn, reconcile } from "../../../../src/assistant/scheduling/pending-turn.ts";
import { message } from "../../../support/fakes.ts";

const fresh = (key: string): PendingTurn => ({
  event: message(key, { key }),
  progress: undefined,
  others: [],
});
/** As the inbox lists it: started `attempts` times, answering `others` too. */
const listed = (key: string, attempts = 0, others: readonly string[] = []): PendingTurn => ({
  event: message(key, { key }),
  progress: { keys: [key, ...others], address: { at: `reply to ${key}` }, attempts },
  others: others.map((other) => message(other, { key: other })),
});
const shown = (turns: readonly PendingTurn[]) =>
  turns.map(
    (turn) => `${keysOf(turn).join("+")}${turn.progress === undefined ? "" : ` ${turn.progress.attempts}`}`,
  );

describe("pending turns of a conversation that other processes share", () => {
  it("are unchanged where the others have done nothing", () => {
    expect(shown(reconcile([fresh("a"), fresh("b")], [listed("a"), listed("b")]))).toEqual(["a", "b"]);
  });

  it("drop what the others have answered", () => {
    expect(shown(reconcile([fresh("a"), fresh("b")], [listed("b")]))).toEqual(["b"]);
    expect(reconcile([fresh("a")], [])).toEqual([]);
  });

  it("begin with what the others accepted earlier, without what they accepted later", () => {
    const turns = reconcile([fresh("b")], [listed("a"), listed("b"), listed("c")]);
    expect(shown(turns)).toEqual(["a 0", "b"]);
  });

  it("resume what the others started, in its reply", () => {
    const [turn] = reconcile([fresh("a")], [listed("a", 1)]);
    expect(turn?.progress).toMatchObject({ attempts: 1, address: { at: "reply to a" } });
  });

  it("resume a batch as one turn, also where only its last message is pending here", () => {
    expect(shown(reconcile([fresh("b")], [listed("a", 1, ["b"])]))).toEqual(["a+b 1"]);
    expect(shown(reconcile([fresh("a"), fresh("b")], [listed("a", 1, ["b"])]))).toEqual(["a+b 1"]);
  });

  it("resume a batch whole, also where its first message was about to be resumed here", () => {
    expect(shown(reconcile([listed("a")], [listed("a", 1, ["b", "c"])]))).toEqual(["a+b+c 1"]);
  });

  it("do not seal a Retry for its age", () => {
    const retried: PendingTurn = { ...listed("a", 4), others: [] };
    const [turn] = reconcile([retried], [{ ...listed("a", 4), isSealed: true }]);
    expect(turn?.isSealed).toBeUndefined();
  });
});
