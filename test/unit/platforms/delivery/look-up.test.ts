import { expect, onTestFinished, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createLookUp, type MissedMessage } from "../../../../src/platforms/delivery/look-up.ts";
import { createManualClock } from "../../../support/manual-clock.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";
import { silentLog } from "../../../support/silent-log.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** A platform with messages in places, and processes that hear it and share a store. */
function createWorld(messagesIn: Readonly<Record<string, readonly number[]>>) {
  const clock = createManualClock();
  const { records } = createSharedMemory(clock);
  const taken: string[] = [];
  const told: string[] = [];
  const reads: string[] = [];
  /** `isSlow`: one place a minute may be read. */
  const state: { isSlow: boolean; takeFailure: ParleyError | undefined } = {
    isSlow: false,
    takeFailure: undefined,
  };
  let readAt = Number.NEGATIVE_INFINITY;
  const startedAt = clock.now();

  function start() {
    const closing = new AbortController();
    onTestFinished(() => closing.abort());
    const lookUp = createLookUp({
      name: "test T1",
      records,
      places: async () =>
        Object.entries(messagesIn).map(([id, times]) => ({
          id,
          channel: id,
          read: (since: number, ask) =>
            ask(async () => {
              const retryAfterMs = readAt + minuteMs - clock.now();
              if (state.isSlow && retryAfterMs > 0)
                throw new ParleyError("platform-unreachable", "too fast", { retryAfterMs });
              readAt = clock.now();
              reads.push(id);
              return times
                .map((at) => toMessage(id, startedAt + at))
                .filter(({ sentAt }) => sentAt > since && sentAt <= clock.now());
            }),
        })),
      async tellOld(conversationId, messages) {
        told.push(`${conversationId}: ${messages.length}`);
      },
      pauseMs: 2000,
      clock,
      log: silentLog,
      signal: closing.signal,
    });
    return { ...lookUp, stop: () => closing.abort(new ParleyError("stopping", "stopped")) };
  }

  function toMessage(place: string, sentAt: number): MissedMessage {
    const key = `${place}:${(sentAt - startedAt) / minuteMs}`;
    return {
      key,
      sentAt,
      async take() {
        if (state.takeFailure !== undefined) throw state.takeFailure;
        taken.push(key);
      },
      askedIn: () => Promise.resolve(place),
    };
  }

  /** Lets time pass in which these hear the platform, each half minute. */
  async function hear(ms: number, ...processes: readonly { heard(): Promise<void> }[]): Promise<void> {
    for (let passed = 0; passed < ms; passed += 30_000) {
      for (const one of processes) void one.heard();
      await clock.advance(30_000);
    }
  }
  return { clock, records, taken, told, reads, state, start, hear };
}

test("without a mark nothing was missed, and with a fresh one nothing is looked for", async () => {
  const { start, hear, reads } = createWorld({ a: [minuteMs] });
  await hear(10 * minuteMs, start());
  await hear(10 * minuteMs, start());
  expect(reads).toEqual([]);
});

test("after an outage one of three processes looks, from the mark on", async () => {
  const { clock, start, hear, taken, told, reads } = createWorld({
    a: [-30 * minuteMs, 20 * minuteMs, 21 * minuteMs],
    b: [3 * hourMs],
  });
  await hear(10 * minuteMs, start());
  await clock.advance(20 * minuteMs);
  await hear(5 * minuteMs, start(), start(), start());
  expect(taken).toEqual(["a:20", "a:21"]);
  expect(told).toEqual([]);
  expect(reads).toEqual(["a", "b"]);
});

test("what is older than an hour is named once in its place, and what is older than a day is left", async () => {
  const { clock, start, hear, taken, told } = createWorld({
    a: [hourMs, 2 * hourMs, 29.5 * hourMs],
    b: [20 * hourMs],
    c: [hourMs],
  });
  await hear(10 * minuteMs, start());
  await clock.advance(30 * hourMs);
  await hear(5 * minuteMs, start());
  expect(taken).toEqual(["a:1770"]);
  expect(told).toEqual(["b: 1"]);
  await clock.advance(5 * minuteMs);
  await hear(5 * minuteMs, start());
  expect(told).toHaveLength(1);
});

test("while the store is away the mark stays, and the look-up is begun again", async () => {
  const { clock, start, hear, taken, state } = createWorld({ a: [20 * minuteMs], b: [21 * minuteMs] });
  await hear(10 * minuteMs, start());
  await clock.advance(20 * minuteMs);
  state.takeFailure = new ParleyError("store-unavailable", "away");
  const process = start();
  await hear(15 * minuteMs, process);
  expect(taken).toEqual([]);
  state.takeFailure = undefined;
  await hear(5 * minuteMs, process);
  expect(taken).toEqual(["a:20", "b:21"]);
});

test("a process that stops leaves the rest to the next one at once", async () => {
  const { clock, start, hear, taken, state } = createWorld({ a: [20 * minuteMs], b: [21 * minuteMs] });
  await hear(10 * minuteMs, start());
  await clock.advance(20 * minuteMs);
  const first = start();
  void first.heard();
  await clock.advance(2000);
  expect(taken).toEqual(["a:20"]);
  state.takeFailure = new ParleyError("stopping", "stopped");
  first.stop();
  await clock.advance(1000);
  state.takeFailure = undefined;
  await hear(minuteMs, start());
  expect(taken).toEqual(["a:20", "a:20", "b:21"]);
});

test("a message that cannot be taken keeps nothing else from being taken", async () => {
  const { clock, start, hear, taken, state } = createWorld({ a: [20 * minuteMs], b: [21 * minuteMs] });
  await hear(10 * minuteMs, start());
  await clock.advance(20 * minuteMs);
  state.takeFailure = new ParleyError("platform-forbidden", "closed");
  const process = start();
  void process.heard();
  await clock.advance(2000);
  state.takeFailure = undefined;
  await hear(2 * minuteMs, process);
  expect(taken).toEqual(["b:21"]);
});

test("a live message brings its place forward, and waits only for what is not read", async () => {
  const places = Object.fromEntries(["a", "b", "c", "d"].map((id) => [id, [20 * minuteMs]]));
  const { clock, start, hear, reads } = createWorld(places);
  await hear(10 * minuteMs, start());
  await clock.advance(20 * minuteMs);
  const process = start();
  expect(process.mayFindIn("c")).toBe(false);
  void process.heard();
  await clock.advance(2000);
  expect(process.mayFindIn("d")).toBe(true);
  expect(process.mayFindIn("a")).toBe(false);
  await hear(2 * minuteMs, process);
  expect(reads).toEqual(["a", "b", "d", "c"]);
  expect(process.mayFindIn("d")).toBe(false);
});

test("where the platform lets few be read, it goes on at that pace and ends after ten minutes", async () => {
  const places = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`p${n}`, [20 * minuteMs]]));
  const { clock, start, hear, taken, state } = createWorld(places);
  await hear(10 * minuteMs, start());
  await clock.advance(20 * minuteMs);
  state.isSlow = true;
  await hear(15 * minuteMs, start());
  expect(taken).toEqual(Array.from({ length: 10 }, (_, n) => `p${n}:20`));
});
