import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { startHarness, type Harness, until } from "./harness.ts";

describe("the order of missed messages", () => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await startHarness();
  });
  afterEach(() => harness.close());

  const received = (count: number) =>
    until(() => harness.receiver.events.length >= count && harness.receiver.events, {
      timeoutMs: 30_000,
      explain: () => ({ events: harness.receiver.events, log: harness.lines }),
    });

  test("live messages wait for missed ones that the store has kept from being found", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    receiver.known.add(`discord:${direct.id}`);
    const count = (words: string) => harness.lines.filter(({ message }) => message === words).length;
    simulator.gateway.invalidateSession(false);
    await until(() => !simulator.gateway.isConnected());
    receiver.outage = new ParleyError("store-unavailable", "down");
    const missed = ada.sends({ channel: direct, text: "missed" });
    await until(() => count("missed messages not read yet") > 0, { timeoutMs: 15_000 });
    const live = ["one", "two", "three"].map((text) => ada.sends({ channel: direct, text }));
    await until(() => count("missed messages not read yet") > 1, { timeoutMs: 15_000 });
    receiver.outage = undefined;
    const events = await received(4);
    expect(events.map(({ key }) => key)).toEqual([missed, ...live].map(({ id }) => `discord:${id}`));
    expect(direct.fromBot()).toEqual([]);
  });

  test("missed messages keep their order when the first is not accepted at once", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    receiver.known.add(`discord:${direct.id}`);
    simulator.gateway.invalidateSession(false);
    await until(() => !simulator.gateway.isConnected());
    const missed = ["one", "two", "three"].map((text) => ada.sends({ channel: direct, text }));
    const first = `discord:${missed[0]!.id}`;
    const isAccepted = receiver.receive.bind(receiver);
    const notAccepted = () => harness.lines.some(({ message }) => message === "message not accepted");
    receiver.receive = (event) =>
      event.key === first && !notAccepted()
        ? Promise.reject(new ParleyError("store-unavailable", "down"))
        : isAccepted(event);
    const events = await received(3);
    expect(events.map(({ key }) => key)).toEqual(missed.map(({ id }) => `discord:${id}`));
    expect(direct.fromBot()).toEqual([]);
  }, 40_000);
});
