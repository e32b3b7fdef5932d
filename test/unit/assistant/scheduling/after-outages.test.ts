import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createWorld, message, type World } from "../../../support/fakes.ts";

let world: World;

beforeEach(async () => {
  world = await createWorld();
});

afterEach(async () => {
  await world.close();
});

async function settled(): Promise<void> {
  await vi.waitFor(() => {
    expect(world.assistant.pending()).toBe(0);
  });
  await world.store.queue.idle();
}

describe("after an outage", () => {
  it("a turn that it left open runs before a later message of its conversation", async () => {
    vi.spyOn(world.store.queue, "run").mockImplementationOnce(() =>
      Promise.reject(new ParleyError("store-unavailable", "no lease")),
    );
    await world.assistant.receive(message("one"));
    await settled();
    await world.assistant.receive(message("two"));
    await settled();
    expect(world.platform.replies.map(({ text }) => text)).toEqual(["you said: one", "you said: two"]);
    expect(await world.store.inbox.listOpen()).toEqual([]);
  });

  it("what failed too often is not sealed where its answer is stored: the answer is shown", async () => {
    const event = message("asked");
    await world.assistant.receive(event);
    await settled();
    const asked = world.gateway.requests.length;
    await world.store.inbox.reopen(event.key);
    await world.store.inbox.saveTurn({ keys: [event.key], address: { at: "c1", message: 77 }, attempts: 4 });
    const restarted = world.restart();
    await restarted.recover("fake");
    await vi.waitFor(() => {
      expect(restarted.pending()).toBe(0);
    });
    expect(world.gateway.requests).toHaveLength(asked);
    expect(world.platform.replies.at(-1)).toMatchObject({ text: "you said: asked", state: "finished" });
    expect(await world.store.inbox.listOpen()).toEqual([]);
  });

  it("an answer whose showing fails again and again is sealed at last", async () => {
    const event = message("asked");
    await world.assistant.receive(event);
    await settled();
    await world.store.inbox.reopen(event.key);
    await world.store.inbox.saveTurn({ keys: [event.key], address: { at: "c1", message: 77 }, attempts: 20 });
    const restarted = world.restart();
    await restarted.recover("fake");
    await world.store.queue.idle();
    expect(world.platform.replies.at(-1)).toMatchObject({ state: "failed" });
  });
});
