import { describe, expect, it, vi } from "vitest";
import { createActiveTurn } from "../../../../src/assistant/scheduling/active-turn.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createFakePlatform, message, worldOfEachTest } from "../../../support/fakes.ts";

const world = worldOfEachTest();

const lost = () => new ParleyError("store-unavailable", "the lease was lost");

/** A restarted assistant whose next turn loses its lease when `abort` is called. */
function withLease() {
  const restarted = world.restart();
  const lease = new AbortController();
  vi.spyOn(world.store.queue, "runUnlessTaken").mockImplementationOnce(async (_id, work) => {
    await work(lease.signal);
    return true;
  });
  return { restarted, lose: () => lease.abort(lost()) };
}

describe("a lease that is lost", () => {
  it("while the turn is claimed: nothing is shown, not even of an answer that is stored", async () => {
    const event = message("asked");
    await world.assistant.receive(event);
    await vi.waitFor(async () => expect(await world.store.inbox.listOpen()).toEqual([]));
    await world.settled();
    const before = world.platform.replies.length;
    await world.store.inbox.reopen(event.key);
    await world.store.inbox.saveTurn({ keys: [event.key], address: { at: "c1", message: 77 }, attempts: 1 });
    const { restarted, lose } = withLease();
    const claim = world.store.inbox.claimTurn.bind(world.store.inbox);
    vi.spyOn(world.store.inbox, "claimTurn").mockImplementationOnce(async (turn) => {
      const isClaimed = await claim(turn);
      lose();
      return isClaimed;
    });
    await restarted.recover("fake");
    await world.settled();
    expect(world.platform.replies.slice(before)).toEqual([]);
    expect(await world.store.inbox.isOpen(event.key)).toBe(true);
  });

  it("while edits are applied: the turn is not run", async () => {
    const event = message("my secret");
    await world.leaveBegun([event]);
    await world.store.inbox.edit({ ...event, text: "harmless" }, { at: 5, attemptsBefore: 1 });
    const { restarted, lose } = withLease();
    const find = world.store.conversations.find.bind(world.store.conversations);
    vi.spyOn(world.store.conversations, "find").mockImplementationOnce(async (...what) => {
      lose();
      return await find(...what);
    });
    await restarted.recover("fake");
    await world.settled();
    expect(world.platform.replies).toEqual([]);
    expect(world.gateway.requests).toEqual([]);
    expect(await world.store.inbox.isOpen(event.key)).toBe(true);
  });
});

it("a reply that is opened after its turn was abandoned is abandoned", () => {
  const { platform, replies } = createFakePlatform();
  const active = createActiveTurn(["a"]);
  active.abandon(lost());
  active.reply = platform.openReply({ at: "c1" }, { saveAddress: () => Promise.resolve() });
  expect(replies.map(({ state }) => state)).toEqual(["abandoned"]);
});
