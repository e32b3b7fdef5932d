import { beforeEach, expect, test } from "vitest";
import type { Json } from "../../../../src/core/events.ts";
import type { ChatEvent, Gateway } from "../../../../src/core/gateway.ts";
import { noTracer } from "../../../../src/core/telemetry.ts";
import { createMeasuredGateway } from "../../../../src/gateway/client.ts";
import { createDayHistory } from "../../../../src/operations/dashboard/history.ts";
import { createManualClock } from "../../../support/manual-clock.ts";
import { silentLog } from "../../../support/silent-log.ts";

let clock = createManualClock();
const stored = new Map<string, { readonly value: Json; readonly ttlMs: number | undefined }>();
let writes = 0;
let isDown = false;
let isUnreadable = false;
const records = {
  get: (key: string) =>
    isUnreadable ? Promise.reject(new Error("down")) : Promise.resolve(stored.get(key)?.value),
  set(key: string, value: Json, ttlMs?: number) {
    if (isDown) return Promise.reject(new Error("down"));
    writes++;
    stored.set(key, { value: JSON.parse(JSON.stringify(value)) as Json, ttlMs });
    return Promise.resolve();
  },
};
const open = (retentionMs?: number) =>
  createDayHistory({ records, key: "dashboard", retentionMs, clock, log: silentLog });
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
  stored.clear();
  writes = 0;
  isDown = false;
  isUnreadable = false;
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
  await history.close();
  expect(clock.waiting()).toBe(0);
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
  await history.close();
});

test("does not count what a person stops as a failure of the model", async () => {
  const history = open();
  await expect(ask(watched(history, gatewayOf("fast")), AbortSignal.abort())).rejects.toThrow();
  expect(history.modelsSince(0)).toEqual([]);
  await history.close();
});

test("survives a restart, and goes on in the slice that it stopped in", async () => {
  const first = open();
  first.take({ ...turn, outcome: "failed" });
  first.take({ kind: "refused", platform: "slack", code: "busy" });
  await ask(watched(first, gatewayOf("fast", 400, 2000)));
  await first.close();
  const second = open();
  second.take(turn);
  await clock.advance(0);
  expect(second.slices()).toMatchObject([
    { turns: 2, failed: 1, refused: { busy: 1 }, models: [{ model: "fast", answers: 1 }] },
  ]);
  await clock.advance(23 * 3_600_000);
  second.take(turn);
  expect(second.slices()).toHaveLength(2);
  await clock.advance(2 * 3_600_000);
  expect(second.slices()).toHaveLength(1);
  await second.close();
});

test("writes one bounded record every five minutes, and nothing while nothing happens", async () => {
  const history = open();
  await clock.advance(3_600_000);
  expect(writes).toBe(0);
  for (let n = 0; n < 40; n++) {
    for (let model = 0; model < 20; model++)
      await ask(watched(history, gatewayOf(`model ${model}`, model, 2 ** model)));
    history.take({ kind: "refused", platform: "slack", code: `reason ${n}` });
  }
  await clock.advance(300_000);
  const before = writes;
  await clock.advance(3_600_000);
  expect(writes).toBe(before);
  const { value, ttlMs } = stored.get("dashboard")!;
  expect(ttlMs).toBe(48 * 3_600_000);
  const { slices } = value as unknown as { slices: { models: object }[] };
  for (const { models } of slices) expect(Object.keys(models).length).toBeLessThanOrEqual(7);
  expect(JSON.stringify(value).length).toBeLessThan(slices.length * 3000);
  await history.close();
});

test("is kept no longer than anything else, and a store that is down costs no figure", async () => {
  const history = open(3_600_000);
  isDown = true;
  history.take(turn);
  await clock.advance(300_000);
  expect(stored.size).toBe(0);
  isDown = false;
  await clock.advance(300_000);
  expect(stored.get("dashboard")?.ttlMs).toBe(3_600_000);
  await history.close();
});

test("starts anew where what is stored is of another version", async () => {
  stored.set("dashboard", { value: { version: 99, slices: 7 }, ttlMs: undefined });
  const history = open();
  await clock.advance(0);
  expect(history.slices()).toEqual([]);
  await history.close();
});

test("keeps the stored day where it could not be read at the start", async () => {
  const first = open();
  first.take(turn);
  await first.close();
  isUnreadable = true;
  const second = open();
  second.take(turn);
  await clock.advance(300_000);
  expect(second.slices()).toMatchObject([{ turns: 1 }]);
  isUnreadable = false;
  await clock.advance(300_000);
  expect(second.slices()).toMatchObject([{ turns: 2 }]);
  await second.close();
  const third = open();
  await clock.advance(0);
  expect(third.slices()).toMatchObject([{ turns: 2 }]);
  await third.close();
});

test("overwrites nothing at the end while it cannot read", async () => {
  const first = open();
  first.take(turn);
  await first.close();
  isUnreadable = true;
  const second = open();
  second.take(turn);
  await second.close();
  expect(writes).toBe(1);
});
