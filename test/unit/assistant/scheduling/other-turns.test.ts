import { expect, it } from "vitest";
import { createOtherTurns } from "../../../../src/assistant/scheduling/other-turns.ts";
import { createFakePlatform, createWorld, message } from "../../../support/fakes.ts";

it("the messages of other turns, open or answered, are told from the turn's own and from unknown ones", async () => {
  const world = await createWorld();
  const { store } = world;
  const { platform } = createFakePlatform();
  const [own, open, answered] = [message("own"), message("open"), message("answered")];
  for (const event of [own, open]) await store.inbox.accept(event);
  await store.inbox.saveTurn({ keys: [own.key], address: { at: "c1", message: 1 }, attempts: 1 });
  await store.inbox.saveTurn({ keys: [open.key], address: { at: "c1", message: 2 }, attempts: 1 });
  for (const [event, shownAs] of [
    [own, "own again"],
    [answered, "answer"],
  ] as const)
    await store.conversations.append(own.conversationId, {
      id: `m-${event.key}`,
      role: "assistant",
      turnKey: event.key,
      parts: [],
      createdAt: 1,
      estimatedTokens: 1,
      shownAs: [shownAs],
    });
  const keyOf = (n: number) => platform.shownMessageKeys({ at: "c1", message: n })[0] ?? "";
  const find = createOtherTurns(store.inbox, store.conversations)(own, [own.key], platform);
  expect(keyOf(1)).not.toBe("");
  expect(await find([keyOf(1), keyOf(2), "own again", "answer", "unknown"])).toEqual([keyOf(2), "answer"]);
  await world.close();
});
