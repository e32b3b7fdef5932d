import { describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import type { Platform } from "../../../../src/core/platform.ts";
import type { ReplyHooks } from "../../../../src/core/reply.ts";
import { message } from "../../../support/fakes.ts";
import { leaveBegun } from "../../../support/left-turns.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

describe("the end of a turn that no process runs", () => {
  const world = worldOfEachTest();

  /** Notes how replies are opened. `onEnd` is called before one shows its end. */
  function watched(onEnd: () => void = () => {}): {
    readonly platform: Platform;
    readonly opened: ReplyHooks[];
  } {
    const { platform } = world.platform;
    const opened: ReplyHooks[] = [];
    return {
      opened,
      platform: {
        ...platform,
        openReply(address, hooks) {
          opened.push(hooks);
          const reply = platform.openReply(address, hooks);
          let isAbandoned = false;
          const ending = (): void => {
            onEnd();
            if (isAbandoned) throw new ParleyError("stopping", "the reply was abandoned");
          };
          return {
            ...reply,
            abandon() {
              isAbandoned = true;
              reply.abandon();
            },
            async finish(how) {
              ending();
              await reply.finish(how);
            },
            async fail(failure) {
              ending();
              await reply.fail(failure);
            },
          };
        },
      },
    };
  }

  const eve = { id: "fake:eve", name: "Eve" };
  const kinds: Readonly<Record<string, (event: IncomingEvent) => Promise<void>>> = {
    "that is sealed": async (event) => {
      await world.leaveBegun([event], { attempts: 4 });
    },
    "whose author is refused by now": async (event) => {
      await world.leaveBegun([{ ...event, author: eve }]);
    },
  };
  const rules = { deny: ["fake:user:eve"] };

  describe.each(Object.entries(kinds))("of a turn %s", (_, leave) => {
    const event = () =>
      message("asked", {
        key: "fake:asked",
        origin: { user: "fake:user:eve", isMember: true, isManager: false },
      });

    it("is shown in its reply, and closes it", async () => {
      await leave(event());
      const after = world.restart({ rules });
      const { opened, platform } = watched();
      after.addPlatform(platform);
      await world.recover(after);
      // Messages that earlier runs posted without saving their address are looked for.
      expect(opened).toMatchObject([{ isResumed: true }]);
      expect(world.platform.replies).toMatchObject([{ address: { message: 7 }, state: "failed" }]);
      expect(world.gateway.requests).toEqual([]);
      expect(await world.store.inbox.open()).toEqual([]);
    });

    it("is left to the next holder where the lease is lost before it is shown", async () => {
      await leave(event());
      const after = world.restart({ rules });
      const lease = new AbortController();
      vi.spyOn(world.store.queue, "runUnlessTaken").mockImplementationOnce(async (_id, work) => {
        await work(lease.signal, () => true);
        return true;
      });
      let openAtLoss: readonly unknown[] = [];
      const { platform } = watched(() => lease.abort(new ParleyError("stopping", "lease lost")));
      after.addPlatform(platform);
      await after.recover("fake");
      await vi.waitFor(() => expect(world.platform.replies[0]?.state).toBe("abandoned"));
      openAtLoss = await world.store.inbox.open();
      expect(openAtLoss).toHaveLength(1);
      after.addPlatform(world.platform.platform);
      await world.settled();
      await world.recover(after);
      expect(world.platform.replies.at(-1)).toMatchObject({ state: "failed" });
      expect(await world.store.inbox.open()).toEqual([]);
    });
  });

  it("is told to its author alone where they are refused by now and nobody sees a reply", async () => {
    const event = message("asked", {
      author: eve,
      origin: { user: "fake:user:eve", isMember: true, isManager: false },
    });
    await world.store.inbox.accept(event);
    await leaveBegun(world.store.inbox, [event], { address: { at: "c1" } });
    const { platform, replies } = world.platform;
    const after = world.restart({ rules });
    after.addPlatform({ ...platform, toPrivateAddress: () => ({ at: "eve alone" }) });
    await world.recover(after);
    expect(replies).toMatchObject([{}, { address: { at: "eve alone" }, state: "failed" }]);
    // The reply in the conversation was never shown.
    expect(replies[0]).toMatchObject({ shown: 0, state: "abandoned" });
    expect(await world.log()).toEqual([]);
    expect(await world.store.inbox.read([event.key])).toMatchObject([{ state: "erased" }]);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it("of a deleted message is taken up to end its reply", async () => {
    const event = message("asked");
    await world.leaveBegun([event]);
    await world.store.inbox.change({ kind: "delete", of: event.key });
    const { opened, platform } = watched();
    world.assistant.addPlatform(platform);
    await world.recover();
    expect(opened).toMatchObject([{ isEndOnly: true, isResumed: true }]);
    expect(world.platform.replies).toMatchObject([{ state: "finished", text: "" }]);
    expect(await world.store.inbox.open()).toEqual([]);
  });
});
