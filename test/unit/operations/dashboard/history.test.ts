import { beforeEach, expect, test } from "vitest";
import type { ChatEvent, Gateway } from "../../../../src/core/gateway.ts";
import { noTracer } from "../../../../src/core/telemetry.ts";
import { createMeasuredGateway } from "../../../../src/gateway/client.ts";
import { createHistory } from "../../../../src/operations/dashboard/history.ts";
import { createMetrics, type MetricsSources } from "../../../../src/operations/metrics.ts";
import { createManualClock } from "../../../support/manual-clock.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";
import { silentLog } from "../../../support/silent-log.ts";

let clock = createManualClock();
let { records } = createSharedMemory();

/** Opens the history of a process, whose counters begin at zero. */
function open(load?: MetricsSources["load"]) {
  const metrics = createMetrics(() => (load === undefined ? {} : { load }));
  const history = createHistory({ metrics, records, clock, log: silentLog });
  return { ...history, take: metrics.take };
}

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
  ({ records } = createSharedMemory());
});

test("knows how long each model takes until its first words and its end", async () => {
  const history = open();
  for (let n = 0; n < 9; n++) await ask(watched(history, gatewayOf("fast", 400, 2000)));
  await ask(watched(history, gatewayOf("fast", 8000, 20_000)));
  await ask(watched(history, gatewayOf("slow", 5000, 30_000)));
  await expect(ask(watched(history, gatewayOf("slow")))).rejects.toThrow("refused");
  const [fast, slow, asked] = (await history.day()).models;
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
  expect((await history.day()).models).toMatchObject([{ model: "quick", answers: 1, failed: 0 }]);
  expect((await history.day()).models[0]!.wholeP50).toBeGreaterThan(1);
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
  const [painter] = (await history.day()).models;
  expect(painter).toMatchObject({ model: "painter", answers: 1, firstP50: null });
  expect(painter!.wholeP50).toBeGreaterThan(10);
  expect(painter!.wholeP50).toBeLessThan(14);
});

test("does not count what a person stops as a failure of the model", async () => {
  const history = open();
  await expect(ask(watched(history, gatewayOf("fast")), AbortSignal.abort())).rejects.toThrow();
  expect((await history.day()).models).toEqual([]);
});

test("keeps the last hour by minutes, with what ran at their end and the minute that has begun", async () => {
  let running = 5;
  const history = open(() => ({ turns: { running, waiting: 1 }, gatewayCalls: { running: 2, waiting: 3 } }));
  history.take({ ...turn, outcome: "failed" });
  history.take({ kind: "refused", platform: "slack", code: "busy" });
  await clock.advance(60_000);
  running = 7;
  history.take(turn);
  const from = Date.UTC(2026, 0, 1) / 1000;
  const [first, present] = await history.minutes();
  expect(first).toMatchObject({
    time: from + 60,
    turns: 1,
    failed: 1,
    refused: { busy: 1 },
    turnsRunning: 5,
  });
  expect(present).toMatchObject({ time: from + 60, turns: 1, failed: 0, refused: {}, turnsRunning: 7 });
  expect(present).toMatchObject({ turnsWaiting: 1, callsRunning: 2 });
  await clock.advance(3 * 3_600_000);
  expect(await history.minutes()).toHaveLength(61);
  await history.close();
  expect(clock.waiting()).toBe(0);
});

test("a day begins at midnight UTC, and outlives a restart, also one without a farewell", async () => {
  const first = open();
  first.take(turn);
  await ask(watched(first, gatewayOf("fast", 400, 2000)));
  await first.close();
  const second = open();
  second.take({ ...turn, outcome: "failed" });
  expect(await second.day()).toMatchObject({ turns: 2, failed: 1, models: [{ model: "fast", answers: 1 }] });
  expect(await second.minutes()).toMatchObject([{ turns: 1 }]);
  await clock.advance(60_000);
  const third = open();
  expect(await third.day()).toMatchObject({ turns: 2, failed: 1 });
  await clock.advance(24 * 3_600_000);
  third.take(turn);
  expect(await third.day()).toMatchObject({ turns: 1, failed: 0, models: [] });
  await third.close();
  expect(await open().day()).toMatchObject({ turns: 1, failed: 0 });
});

test("another day's or a damaged record counts nothing, and a store that is down stops nobody", async () => {
  for (const stored of [{ day: "2025-12-31", counts: [] }, { day: "2026-01-01" }, "x", undefined]) {
    const history = createHistory({
      metrics: createMetrics(),
      records: { get: async () => stored, set: async () => Promise.reject(new Error("down")) },
      clock,
      log: silentLog,
    });
    expect(await history.day()).toMatchObject({ turns: 0 });
    await history.close();
  }
  const get = async () => Promise.reject(new Error("down"));
  const history = createHistory({
    metrics: createMetrics(),
    records: { ...records, get },
    clock,
    log: silentLog,
  });
  expect(await history.day()).toMatchObject({ turns: 0 });
  await history.close();
});
