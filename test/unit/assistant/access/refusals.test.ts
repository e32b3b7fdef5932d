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
