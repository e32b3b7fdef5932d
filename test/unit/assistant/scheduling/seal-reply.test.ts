import { expect, it, vi } from "vitest";
import { createActiveTurn } from "../../../../src/assistant/scheduling/active-turn.ts";
import { endWithdrawn } from "../../../../src/assistant/scheduling/end-withdrawn.ts";
import { sealReply } from "../../../../src/assistant/scheduling/recovery.ts";
import { refuseTurn } from "../../../../src/assistant/scheduling/refuse-turn.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { ReplyHooks } from "../../../../src/core/platform.ts";
import { createFakePlatform, createWorld, message, silentLog } from "../../../support/fakes.ts";

/** A turn that was begun and is still open, and its reply, which calls `onEnd` before it shows its end. */
async function begin(onEnd: () => void = () => {}) {
  const world = await createWorld();
  const event = message("asked");
  const keys = [event.key];
  await world.store.inbox.accept(event);
  const progress = { keys, address: { at: "c1", message: 77 }, attempts: 4 };
  await world.store.inbox.saveTurn(progress);
  const { platform, replies } = createFakePlatform();
  const opened: ReplyHooks[] = [];
  const openReply = platform.openReply.bind(platform);
  vi.spyOn(platform, "openReply").mockImplementation((address, hooks) => {
    opened.push(hooks);
    const reply = openReply(address, hooks);
    let isAbandoned = false;
    return {
      ...reply,
      abandon() {
        isAbandoned = true;
        reply.abandon();
      },
      async fail(failure) {
        onEnd();
        if (isAbandoned) throw new ParleyError("stopping", "the reply was abandoned");
        await reply.fail(failure);
      },
    };
  });
  const { inbox, conversations } = world.store;
  return {
    turn: { event, progress, others: [] },
    active: createActiveTurn(keys),
    inbox,
    conversations,
    platform,
    replies,
    opened,
    isOpen: () => inbox.isOpen(event.key),
    close: () => world.close(),
  };
}

const otherTurnsShow = () => Promise.resolve([]);

type Begun = Awaited<ReturnType<typeof begin>>;

const ends: Record<string, (begun: Begun) => Promise<void>> = {
  "a turn that is sealed": ({ turn, active, inbox, conversations, platform }) =>
    sealReply(turn, {
      active,
      otherTurnsShow,
      inbox,
      conversations,
      platform,
      isAnswered: () => Promise.resolve(false),
      log: silentLog,
      meter: { refused: () => {} },
    }),
  "a turn whose author is refused by now": ({ turn, active, inbox, platform }) =>
    refuseTurn(turn, { active, inbox, platform, log: silentLog }),
};

for (const [what, end] of Object.entries(ends)) {
  it(`${what} shows its end alone, and is closed`, async () => {
    const begun = await begin();
    await end(begun);
    // What the runs before have posted without saving its address is looked for.
    expect(begun.opened).toMatchObject([{ isEndOnly: true, isResumed: true }]);
    expect(begun.replies.at(-1)).toMatchObject({ state: "failed" });
    expect(await begun.isOpen()).toBe(false);
    await begun.close();
  });

  it(`${what} shows nothing and stays open where the lease is lost meanwhile`, async () => {
    let begun: Begun | undefined;
    begun = await begin(() => begun?.active.abandon(new ParleyError("stopping", "lease lost")));
    await end(begun);
    expect(begun.replies.at(-1)?.state).toBe("abandoned");
    expect(await begun.isOpen()).toBe(true);
    await begun.close();
  });
}

it("a turn whose message was deleted takes no reply of another turn for its own", async () => {
  const { turn, active, inbox, platform, opened, close } = await begin();
  expect(await endWithdrawn(turn, { active, otherTurnsShow, inbox, platform, log: silentLog })).toBe("ended");
  expect(opened).toMatchObject([{ isEndOnly: true, isResumed: true, otherTurnsShow }]);
  await close();
});

it("a turn that another process has claimed by now is not sealed", async () => {
  const begun = await begin();
  vi.spyOn(begun.inbox, "claimTurn").mockResolvedValue(false);
  await ends["a turn that is sealed"]?.(begun);
  expect(begun.opened).toEqual([]);
  expect(await begun.isOpen()).toBe(true);
  await begun.close();
});
