import { describe, expect, it } from "vitest";
import { toOpenTurns } from "../../../../src/assistant/scheduling/open-turns.ts";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import { call, message } from "../../../support/fakes.ts";

const entry = (event: IncomingEvent, attempts?: number) => ({
  event,
  acceptedAt: 0,
  ...(attempts === undefined ? {} : { turn: { keys: [event.key], address: {}, attempts } }),
});
const sent = (key: string, sentAt: number) => message(key, { key, sentAt });
const order = (...entries: readonly ReturnType<typeof entry>[]) =>
  toOpenTurns(entries, 0).map(({ event }) => event.key);

describe("open turns", () => {
  it("are in the order of sending where several processes accepted the messages in another order", () => {
    expect(order(entry(sent("b", 2)), entry(sent("a", 1)), entry(sent("c", 3)))).toEqual(["a", "b", "c"]);
  });

  it("of the same millisecond are in the order of the platform's ids", () => {
    const keys = ["slack:T1:C1:1700000000.000100", "slack:T1:C1:1700000000.000200"];
    const [first = "", second = ""] = keys;
    expect(order(entry(sent(second, 5)), entry(sent(first, 5)))).toEqual(keys);
    expect(order(entry(sent("b", 5)), entry(sent("a", 5)))).toEqual(["b", "a"]);
  });

  it("come after what has begun, and do not change places with commands, whose time is another clock's", () => {
    expect(order(entry(sent("b", 2), 1), entry(sent("a", 1)))).toEqual(["b", "a"]);
    expect(order(entry(sent("b", 2)), entry(sent("a", 1), 1))).toEqual(["a", "b"]);
    const ask = call("ask", {}, { key: "ask", sentAt: 9 });
    expect(order(entry(ask), entry(sent("a", 1)))).toEqual(["ask", "a"]);
  });
});
