import { afterEach, expect, test, vi } from "vitest";
import { createWorld, message, type World } from "../../../support/fakes.ts";

const guild = "discord:guild:1";
const guest = { user: "discord:user:7", server: guild, isMember: true, isManager: false } as const;

let world: World;
afterEach(async () => {
  await world.close();
});

test("somebody whom the rules refuse leaves no trace in the store, the channel and the gateway", async () => {
  world = await createWorld({ rules: { deny: ["discord:user:7"] } });
  const event = message("hello", { origin: guest });
  await expect(world.assistant.receive(event)).rejects.toMatchObject({
    code: "access-denied",
    detail: { because: "denied" },
  });
  expect(world.assistant.pending()).toBe(0);
  expect(await world.store.inbox.lookUp([event.key])).toEqual([]);
  expect(world.platform.replies).toEqual([]);
  expect(world.gateway.requests).toEqual([]);
});

test("somebody whom the rules allow is answered", async () => {
  world = await createWorld({ rules: { allow: [guild] } });
  await world.assistant.receive(message("hello", { origin: guest }));
  await vi.waitFor(() => {
    expect(world.platform.replies).toMatchObject([{ text: "you said: hello", state: "finished" }]);
  });
});

test("a stored turn of somebody who is refused since then is told to the author alone, and not run", async () => {
  world = await createWorld();
  const event = message("hello", { origin: guest });
  await world.store.inbox.accept(event);
  const restarted = world.restart({ rules: { deny: [guild] } });
  expect(await restarted.recover("fake")).toBe(1);
  await vi.waitFor(async () => {
    expect(await world.store.inbox.listOpen()).toEqual([]);
  });
  await world.store.queue.idle();
  expect(world.gateway.requests).toEqual([]);
  expect(world.platform.replies).toMatchObject([
    { state: "failed", failure: { text: expect.stringContaining("not on the list") as string } },
  ]);
});

test("events of earlier versions, which say nothing of their origin, are run", async () => {
  world = await createWorld();
  await world.store.inbox.accept(message("hello"));
  await world.restart({ rules: { allow: [guild] } }).recover("fake");
  await vi.waitFor(() => {
    expect(world.platform.replies).toMatchObject([{ state: "finished" }]);
  });
});
