import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createWorld, message, type World } from "../../../support/fakes.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.close();
});

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
  await world.store.queue.idle();
  expect(texts()).toEqual(["finished: you said: harmless", "finished: you said: later"]);
});
