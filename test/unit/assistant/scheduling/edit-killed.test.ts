import { expect, it, vi } from "vitest";
import { message, worldOfEachTest } from "../../../support/fakes.ts";

const world = worldOfEachTest();

const texts = () => world.platform.replies.map(({ state, text }) => `${state}: ${text}`);

it("an edit that was being answered when the process died is answered, although people have written since", async () => {
  const event = message("my secret");
  await world.assistant.receive(event);
  await vi.waitFor(async () => expect(await world.store.inbox.listOpen()).toEqual([]));
  const { turn } = (await world.store.inbox.lookUp([event.key]))[0]!;
  await world.store.inbox.edit({ ...event, text: "harmless" }, { at: 5, attemptsBefore: turn!.attempts });
  // The reply may show half of the new answer by now.
  await world.store.inbox.claimTurn({ ...turn!, attempts: turn!.attempts + 1 });
  await world.store.inbox.accept(message("later"));
  expect(await world.restart().recover("fake")).toBe(2);
  await vi.waitFor(async () => expect(await world.store.inbox.listOpen()).toEqual([]), { timeout: 5000 });
  await world.settled();
  expect(texts()).toEqual(["finished: you said: harmless", "finished: you said: later"]);
});

it("an edit whose answer failed too often is sealed, and can be retried", async () => {
  const event = message("my secret");
  await world.assistant.receive(event);
  await vi.waitFor(async () => expect(await world.store.inbox.listOpen()).toEqual([]));
  const { turn } = (await world.store.inbox.lookUp([event.key]))[0]!;
  // It was edited after its answer was stored, and before it was closed.
  await world.store.inbox.reopen(event.key);
  await world.store.inbox.edit({ ...event, text: "harmless" }, { at: 5, attemptsBefore: turn!.attempts });
  await world.store.inbox.claimTurn({ ...turn!, attempts: turn!.attempts + 4 });
  const restarted = world.restart();
  await restarted.recover("fake");
  await vi.waitFor(async () => expect(await world.store.inbox.listOpen()).toEqual([]));
  await world.settled();
  const reply = world.platform.replies.at(-1)!;
  expect(reply).toMatchObject({ state: "failed", failure: { retryKey: event.key } });
  const log = () => world.store.conversations.recent("fake:c1", { maxMessages: 9 });
  expect((await log()).map(({ outcome }) => outcome)).toEqual([undefined, "failed"]);

  expect(await restarted.retry(event.key, event)).toBe("accepted");
  await vi.waitFor(async () => expect(await world.store.inbox.listOpen()).toEqual([]));
  await world.settled();
  expect(texts().at(-1)).toBe("finished: you said: harmless");
  expect((await log()).map(({ outcome }) => outcome)).toEqual([undefined, "complete"]);
});
