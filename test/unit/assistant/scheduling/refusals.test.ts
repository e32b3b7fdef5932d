import { describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { message, worldOfEachTest } from "../../../support/fakes.ts";

const world = worldOfEachTest();

const away = () => Promise.reject(new ParleyError("store-unavailable", "away"));

describe("a refusal", () => {
  it("is for good: the same event is a duplicate from then on, also for another process", async () => {
    const event = message("hello");
    expect(await world.assistant.refuse(event.key)).toBe("refused");
    expect(await world.assistant.receive(event)).toBe("duplicate");
    expect(await world.store.inbox.accept(event)).toBe("duplicate");
    expect(await world.store.inbox.listOpen()).toEqual([]);
    expect(await world.assistant.refuse(event.key)).toBe("refused");
  });

  it("counts from the moment it is said, although the store is unavailable until later", async () => {
    const event = message("hello");
    const refuse = vi.spyOn(world.store.inbox, "refuse").mockImplementation(away);
    const refusal = world.assistant.refuse(event.key);
    expect(await world.assistant.receive(event)).toBe("duplicate");
    refuse.mockRestore();
    expect(await refusal).toBe("refused");
    expect(await world.assistant.receive(event)).toBe("duplicate");
    expect(world.platform.replies).toEqual([]);
  });

  it("of an event that was written all the same is `accepted`, and the event is answered at once", async () => {
    const event = message("hello");
    await world.store.inbox.accept(event);
    expect(await world.assistant.refuse(event.key)).toBe("accepted");
    await vi.waitFor(() => expect(world.platform.replies).toMatchObject([{ state: "finished" }]));
  });

  it("of an event that was answered is `accepted`, and it is not answered again", async () => {
    const event = message("hello");
    await world.assistant.receive(event);
    await vi.waitFor(async () => expect(await world.store.inbox.listOpen()).toEqual([]));
    expect(await world.assistant.refuse(event.key)).toBe("accepted");
    await world.settled();
    expect(world.platform.replies).toHaveLength(1);
  });

  it("no longer waits for the store after the process has stopped", async () => {
    vi.spyOn(world.store.inbox, "refuse").mockImplementation(away);
    const refusal = world.assistant.refuse("fake:1");
    const failed = expect(refusal).rejects.toMatchObject({ code: "stopping" });
    await world.passingTime(world.assistant.stop({ deadlineMs: 100 }));
    await failed;
    await expect(world.assistant.refuse("fake:2")).rejects.toMatchObject({ code: "store-unavailable" });
  });
});

describe("keeping an event while the process stops", () => {
  it("leaves it open for another instance or the next start", async () => {
    const stopped = world.assistant.stop({ deadlineMs: 100 });
    const event = message("hello");
    await expect(world.assistant.receive(event)).rejects.toMatchObject({ code: "stopping" });
    expect(await world.assistant.keep(event)).toBe("accepted");
    await stopped;
    expect(await world.store.inbox.listOpen()).toMatchObject([{ event: { key: event.key } }]);
    expect(world.platform.replies).toEqual([]);
    expect(world.assistant.pending()).toBe(0);
  });
});
