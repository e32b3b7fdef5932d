import { expect, it } from "vitest";
import { readRoom, type RoomTarget } from "../../../../src/assistant/turn/read-room.ts";
import type { TurnDependencies } from "../../../../src/assistant/turn/turn.ts";
import type { RoomQuery } from "../../../../src/core/room.ts";
import { createManualClock } from "../../../support/manual-clock.ts";

/** Reads a room on a platform that never answers, and does not heed the signal of its query either. */
function readSilentRoom(stop: AbortController) {
  const clock = createManualClock();
  const queries: RoomQuery[] = [];
  const platform = {
    readRoom(_: unknown, query: RoomQuery) {
      queries.push(query);
      return new Promise(() => {});
    },
  };
  const reading = readRoom(
    {
      conversations: { settings: async () => ({}) },
      clock,
      room: { maxMessages: 10, maxChars: 1000 },
    } as unknown as TurnDependencies,
    { key: "k", platform, conversationId: "c", address: {}, signal: stop.signal } as unknown as RoomTarget,
  );
  return { clock, reading, queries };
}

it("a room that does not answer is not waited for, and that is said", async () => {
  const { clock, reading, queries } = readSilentRoom(new AbortController());
  await clock.advance(7999);
  expect(queries[0]?.signal.aborted).toBe(false);
  await clock.advance(1);
  expect(queries[0]?.signal.reason).toMatchObject({ code: "platform-unreachable" });
  await clock.advance(1000);
  expect((await reading).notices).toEqual([
    "What was said here before could not be read in time; this answer does without it.",
  ]);
  expect(clock.waiting()).toBe(0);
});

it("a turn that is stopped meanwhile ends at once", async () => {
  const stop = new AbortController();
  const { clock, reading, queries } = readSilentRoom(stop);
  await clock.advance(10);
  stop.abort(new Error("stopped"));
  await expect(reading).rejects.toThrow("stopped");
  expect(queries[0]?.signal.reason).toMatchObject({ message: "stopped" });
  expect(clock.waiting()).toBe(0);
});
