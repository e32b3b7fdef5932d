import { beforeEach, expect, test } from "vitest";
import type { ChatEvent, Gateway } from "../../../../src/core/gateway.ts";
import { noTracer } from "../../../../src/core/telemetry.ts";
import { createMeasuredGateway } from "../../../../src/gateway/client.ts";
import { createDayHistory } from "../../../../src/operations/dashboard/history.ts";
import { createManualClock } from "../../../support/manual-clock.ts";

let clock = createManualClock();
const open = () => createDayHistory(clock);
const turn = {
  kind: "turn",
  platform: "slack",
  event: "message",
  outcome: "complete",
  seconds: 1,
} as const;

/** Counts the calls of a gateway as the process does. */
const watched = (history: ReturnType<typeof open>, gateway: Gateway): Gateway =>
  createMeasuredGateway(gateway, { tracer: noTracer, meter: history.take, clock });

/** Makes a gateway whose model speaks after `firstMs` and ends after `wholeMs`. Without them it fails. */
function gatewayOf(model: string, firstMs?: number, wholeMs = 0): Gateway {
  const chat = async function* (): AsyncIterable<ChatEvent> {
    if (firstMs === undefined) throw new Error("refused");
    await clock.advance(firstMs);
    yield { kind: "text", text: "Hello" };
    await clock.advance(wholeMs - firstMs);
    yield { kind: "finish", reason: "stop", model, usage: { isEstimated: false } };
  };
  return { chat } as unknown as Gateway;
}

async function ask(gateway: Gateway, signal = new AbortController().signal): Promise<void> {
  // Like real callers, this reads nothing after the end.
  for await (const event of gateway.chat({ model: "asked", messages: [] }, signal))
    if (event.kind === "finish") break;
}

beforeEach(() => {
  clock = createManualClock(Date.UTC(2026, 0, 1));
});

test("knows how long each model takes until its first words and its end", async () => {
  const history = open();
  for (let n = 0; n < 9; n++) await ask(watched(history, gatewayOf("fast", 400, 2000)));
  await ask(watched(history, gatewayOf("fast", 8000, 20_000)));
  await ask(watched(history, gatewayOf("slow", 5000, 30_000)));
  await expect(ask(watched(history, gatewayOf("slow")))).rejects.toThrow("refused");
  const [fast, slow, asked] = history.modelsSince(0);
  expect(fast).toMatchObject({ model: "fast", answers: 10, failed: 0 });
  expect(fast!.firstP50).toBeGreaterThan(0.32);
  expect(fast!.firstP50).toBeLessThan(0.48);
  expect(fast!.firstP95).toBeGreaterThan(6);
  expect(fast!.wholeP95).toBeGreaterThan(16);
  expect(slow).toMatchObject({ model: "slow", answers: 1 });
  // The model that would have answered is not known.
  expect(asked).toMatchObject({ model: "asked", answers: 0, failed: 1, firstP50: null });
});

test("counts answers, and no titles or summaries that nobody reads as one", async () => {
  const history = open();
  const signal = new AbortController().signal;
  const aside = { model: "asked", messages: [], isAside: true } as const;
  for await (const event of watched(history, gatewayOf("quick", 10, 20)).chat(aside, signal)) void event;
  await expect(
    watched(history, gatewayOf("quick")).chat(aside, signal)[Symbol.asyncIterator]().next(),
  ).rejects.toThrow("refused");
  await ask(watched(history, gatewayOf("quick", 400, 2000)));
  expect(history.modelsSince(0)).toMatchObject([{ model: "quick", answers: 1, failed: 0 }]);
  expect(history.modelsSince(0)[0]!.wholeP50).toBeGreaterThan(1);
});

test("knows how long pictures take, which have no first words", async () => {
  const history = open();
  const gateway = {
    async generateImages() {
      await clock.advance(12_000);
      return { images: [], model: "painter", usage: { isEstimated: false }, notices: [] };
    },
  } as unknown as Gateway;
  const signal = new AbortController().signal;
  await watched(history, gateway).generateImages({ model: "asked", prompt: "a boat" }, signal);
  const [painter] = history.modelsSince(0);
  expect(painter).toMatchObject({ model: "painter", answers: 1, firstP50: null });
  expect(painter!.wholeP50).toBeGreaterThan(10);
  expect(painter!.wholeP50).toBeLessThan(14);
});

test("does not count what a person stops as a failure of the model", async () => {
  const history = open();
  await expect(ask(watched(history, gatewayOf("fast")), AbortSignal.abort())).rejects.toThrow();
  expect(history.modelsSince(0)).toEqual([]);
});

test("keeps a day, in slices of ten minutes", async () => {
  const history = open();
  history.take({ ...turn, outcome: "failed" });
  history.take({ kind: "refused", platform: "slack", code: "busy" });
  await ask(watched(history, gatewayOf("fast", 400, 2000)));
  history.take(turn);
  expect(history.slices()).toMatchObject([
    { turns: 2, failed: 1, refused: { busy: 1 }, models: [{ model: "fast", answers: 1 }] },
  ]);
  await clock.advance(23 * 3_600_000);
  history.take(turn);
  expect(history.slices()).toHaveLength(2);
  await clock.advance(2 * 3_600_000);
  expect(history.slices()).toHaveLength(1);
});

test("has bounded slices, whatever models and reasons are called", async () => {
  const history = open();
  for (let n = 0; n < 40; n++) {
    for (let model = 0; model < 20; model++)
      await ask(watched(history, gatewayOf(`model ${model}`, model, 2 ** model)));
    history.take({ kind: "refused", platform: "slack", code: `reason ${n}` });
  }
  for (const { models, refused } of history.slices()) {
    expect(models.length).toBeLessThanOrEqual(7);
    expect(Object.keys(refused).length).toBeLessThanOrEqual(21);
  }
});
