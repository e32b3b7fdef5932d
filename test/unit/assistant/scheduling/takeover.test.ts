import { describe, expect, it, vi } from "vitest";
import { createActiveTurn } from "../../../../src/assistant/scheduling/pending-turn.ts";
import { endTurn, type EndReason, type TurnToEnd } from "../../../../src/assistant/scheduling/end-turn.ts";
import { messageIds, withoutRetriedAttempts } from "../../../../src/assistant/turn/stored-messages.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { ReplyHooks } from "../../../../src/core/platform.ts";
import type { StoredMessage } from "../../../../src/core/storage.ts";
import { createWorld } from "../../../support/assistant-world.ts";
import { createFakePlatform, message, silentLog } from "../../../support/fakes.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

describe("several processes", () => {
  const world = worldOfEachTest();

  const answer = (key: string, attempt: number, text: string): StoredMessage => ({
    id: messageIds.assistant(key, attempt),
    role: "assistant",
    turnKey: key,
    attempt,
    parts: [{ kind: "text", text }],
    createdAt: 1,
    estimatedTokens: 1,
    outcome: "complete",
  });

  describe("a turn that several processes may run", () => {
    it("is not run by one that waited for the conversation while another has answered it", async () => {
      const event = message("hello");
      const realRun = world.store.queue.run.bind(world.store.queue);
      vi.spyOn(world.store.queue, "run").mockImplementationOnce(async (id, work) => {
        await world.store.inbox.close([event.key]);
        return await realRun(id, work);
      });
      await world.answered(event);
      await world.settled();
      expect(world.gateway.requests).toEqual([]);
      expect(world.platform.replies).toEqual([]);
    });

    it("is left alone by the recovery while another process is at its conversation, and does not pile up", async () => {
      await world.store.inbox.accept(message("held elsewhere"));
      const taken = vi.spyOn(world.store.queue, "runUnlessTaken").mockResolvedValue(false);
      for (let round = 0; round < 3; round++) {
        expect(await world.recover()).toBe(1);
      }
      expect(world.platform.replies).toEqual([]);
      taken.mockRestore();
      await world.recover();
      expect(world.platform.replies).toMatchObject([{ state: "finished" }]);
    });

    it("is neither kept nor ended by a process that lost the conversation while it had the whole answer", async () => {
      const lost = new AbortController();
      const realRun = world.store.queue.run.bind(world.store.queue);
      vi.spyOn(world.store.queue, "run").mockImplementationOnce((id, work) =>
        realRun(id, () => work(lost.signal)),
      );
      world.gateway.answerWith(async function* answers(request) {
        yield { kind: "text", text: "whole" };
        lost.abort(new ParleyError("store-unavailable", "lease lost"));
        await Promise.resolve();
        yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
      });
      await world.answered(message("talk"));
      expect(world.platform.replies[0]?.state).toBe("abandoned");
      expect(await world.store.inbox.listOpen()).toHaveLength(1);
      const kept = await world.store.conversations.recent("fake:c1", { maxMessages: 10 });
      expect(kept.map(({ role }) => role)).toEqual(["user"]);
    });

    it("is not begun by a process that lost the conversation while it read the inbox", async () => {
      const lost = new AbortController();
      const { queue, inbox } = world.store;
      const realRun = queue.run.bind(queue);
      vi.spyOn(queue, "run").mockImplementationOnce((id, work) => realRun(id, () => work(lost.signal)));
      const realList = inbox.listOpenIn.bind(inbox);
      vi.spyOn(inbox, "listOpenIn").mockImplementationOnce(async (id) => {
        lost.abort(new ParleyError("store-unavailable", "lease lost"));
        return await realList(id);
      });
      const event = await world.ask("hello");
      expect(world.gateway.requests).toEqual([]);
      expect(world.platform.replies).toEqual([]);
      expect((await inbox.listOpen()).map(({ event: { key } }) => key)).toEqual([event.key]);
    });

    it("is taken up once where two processes had each begun to answer the same two messages together", async () => {
      const [one, two] = [message("one"), message("two")];
      for (const event of [one, two]) await world.store.inbox.accept(event);
      const address = { at: "c1", message: 7 };
      await world.store.inbox.saveTurn({ keys: [one.key, two.key], address, attempts: 1 });
      await world.store.inbox.saveTurn({
        keys: [two.key, one.key],
        address: { at: "c1", message: 8 },
        attempts: 1,
      });
      expect(await world.recover()).toBe(1);
      expect(world.platform.replies).toMatchObject([{ address, state: "finished" }]);
      expect(await world.store.inbox.listOpen()).toEqual([]);
    });

    it.each([1, 4])(
      "is claimed where others have begun one of its messages more often, after %i attempts",
      async (attempts) => {
        const [one, two, three] = [message("one"), message("two"), message("three")];
        const { inbox } = world.store;
        await inbox.accept(three);
        await world.leaveBegun([one, two], { attempts });
        await inbox.claimTurn({ keys: [two.key], address: two.address, attempts: 6 });
        await inbox.claimTurn({ keys: [three.key, two.key], address: three.address, attempts: 7 });
        for (let round = 0; round < 3; round++) await world.recover();
        expect(await inbox.listOpen()).toEqual([]);
      },
    );

    it("is ended after too many attempts where one of its messages was answered by another process", async () => {
      const [one, two] = [message("one"), message("two")];
      await world.leaveBegun([one, two], { attempts: 4 });
      await world.store.inbox.close([two.key]);
      await world.recover();
      expect(world.platform.replies).toMatchObject([{ state: "failed" }]);
      expect(await world.store.inbox.listOpen()).toEqual([]);
    });

    it("has one complete answer: a second is not stored, and people see the stored one", async () => {
      const event = message("asked");
      world.gateway.answerWith(async function* answers(request) {
        const late = { ...answer(event.key, 1, "the other process's"), id: messageIds.complete(event.key) };
        await world.store.conversations.append("fake:c1", late);
        yield { kind: "text", text: "this process's" };
        yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
      });
      await world.answered(event);
      expect(world.platform.replies).toMatchObject([{ text: "the other process's", state: "finished" }]);
      const kept = await world.store.conversations.recent("fake:c1", { maxMessages: 10 });
      expect(kept.filter(({ role }) => role === "assistant")).toHaveLength(1);
      expect(await world.store.inbox.listOpen()).toEqual([]);
    });

    it("is claimed before its message is stored, else what was sent earlier could go before it after a crash", async () => {
      const { platform } = world.platform;
      const stored = Promise.withResolvers<void>();
      world.assistant.addPlatform({
        ...platform,
        openReply(address, hooks) {
          const reply = platform.openReply(address, hooks);
          // Slack takes its time for the reply's first message, whose address is saved then.
          return { ...reply, show: () => stored.promise.then(() => reply.show()) };
        },
      });
      const append = world.store.conversations.append.bind(world.store.conversations);
      const claims: unknown[] = [];
      vi.spyOn(world.store.conversations, "append").mockImplementationOnce(async (...message) => {
        claims.push((await world.store.inbox.listOpen()).map(({ attempts }) => attempts));
        const written = await append(...message);
        stored.resolve();
        return written;
      });
      await world.ask("hello");
      expect(claims).toEqual([[1]]);
      expect(world.platform.replies).toMatchObject([{ state: "finished" }]);
    });

    it("is left alone where another process has claimed the attempt", async () => {
      const [one, two] = [message("one"), message("two")];
      vi.spyOn(world.store.inbox, "claimTurn").mockResolvedValueOnce(false);
      await world.leaveBegun([one]);
      await world.recover();
      expect(world.gateway.requests).toEqual([]);
      expect((await world.store.inbox.listOpen()).map(({ event }) => event.key)).toEqual([one.key]);
      const before = world.platform.replies.length;
      Object.assign(world.store.queue, { isShared: true });
      vi.spyOn(world.store.inbox, "claimTurn").mockResolvedValueOnce(false);
      await world.answered(two);
      // Nothing is posted that nobody would end.
      expect(world.platform.replies).toHaveLength(before);
      expect(await world.store.inbox.listOpen()).toHaveLength(2);
    });

    it("shows the last attempt, also where an earlier one was kept after it", () => {
      const messages = [answer("k", 2, "second"), answer("k", 1, "first, late")];
      expect(withoutRetriedAttempts(messages)).toEqual([messages[0]]);
    });
  });

  describe("a turn that met a missing store", () => {
    it("is told of, stays open though the store is back, and is answered in the same reply", async () => {
      vi.spyOn(world.store.conversations, "append").mockRejectedValueOnce(
        new ParleyError("store-unavailable", "away for a moment"),
      );
      await world.answered(message("hello"));
      expect(world.platform.replies[0]?.failure?.text).toContain("cannot reach its store");
      expect(await world.store.inbox.listOpen()).toHaveLength(1);
      await world.settled();
      await world.recover();
      expect(world.platform.replies).toMatchObject([{ text: "you said: hello", state: "finished" }]);
      expect(await world.log()).toEqual(["user: hello", "assistant: you said: hello"]);
      expect(await world.store.inbox.listOpen()).toEqual([]);
    });
  });

  it("a turn is asked about all its messages, in order, where the store was away for one of them", async () => {
    const questions = [message("one"), message("two"), message("three")];
    const { conversations } = world.store;
    const append = conversations.append.bind(conversations);
    let isAway = true;
    vi.spyOn(conversations, "append").mockImplementation(async (id, stored, noted) => {
      const isTwo = stored.id === messageIds.user(questions[1]?.key ?? "");
      if (isTwo && isAway) throw new ParleyError("store-unavailable", "away for a moment");
      return await append(id, stored, noted);
    });
    await world.leaveBegun(questions);
    await world.recover();
    isAway = false;
    await world.recover();
    expect((await world.log()).slice(0, 3)).toEqual(["user: one", "user: two", "user: three"]);
    const asked = JSON.stringify(world.gateway.requests.at(-1)?.messages);
    for (const words of ["one", "two", "three"]) expect(asked).toContain(words);
    expect(await world.store.inbox.listOpen()).toEqual([]);
  });

  describe("stopping", () => {
    it("does not wait for turns that wait for another process's conversation", async () => {
      await world.assistant.receive(message("one"));
      const second = message("two");
      expect(await world.passingTime(world.assistant.stop({ deadlineMs: 5000 }))).toBe(0);
      await expect(world.store.queue.run("fake:c1", () => Promise.resolve())).rejects.toMatchObject({
        code: "stopping",
      });
      await expect(world.assistant.receive(second)).rejects.toMatchObject({ code: "stopping" });
    });
  });
});

describe("leases", () => {
  const world = worldOfEachTest();

  const lost = () => new ParleyError("store-unavailable", "the lease was lost");

  /** Makes a restarted assistant whose next turn loses its lease when `abort` is called. */
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
      await world.store.inbox.reopen(event.key, "retry");
      await world.store.inbox.saveTurn({
        keys: [event.key],
        address: { at: "c1", message: 77 },
        attempts: 1,
      });
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
});

/** Begins a turn that stays open. Its reply calls `onEnd` before it shows its end. */
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
  const active = createActiveTurn(keys);
  const ending: TurnToEnd = {
    turn: { event, progress, others: [] },
    active,
    inbox,
    platform,
    otherTurnsShow,
    conversations,
    isAnswered: () => Promise.resolve(false),
    meter: () => undefined,
    log: silentLog,
  };
  return {
    ending,
    active,
    inbox,
    conversations,
    replies,
    opened,
    isOpen: () => inbox.isOpen(event.key),
    close: () => world.close(),
  };
}

const otherTurnsShow = () => Promise.resolve([]);

type Begun = Awaited<ReturnType<typeof begin>>;

const reasons: Readonly<Record<string, EndReason>> = {
  "a turn that is sealed": "sealed",
  "a turn whose author is refused by now": "refused",
};

for (const [what, why] of Object.entries(reasons)) {
  it(`${what} shows its end alone, and is closed`, async () => {
    const begun = await begin();
    await endTurn(begun.ending, why);
    // Messages that earlier runs posted without saving their address are looked for.
    expect(begun.opened).toMatchObject([{ isEndOnly: true, isResumed: true }]);
    expect(begun.replies.at(-1)).toMatchObject({ state: "failed" });
    expect(await begun.isOpen()).toBe(false);
    await begun.close();
  });

  it(`${what} shows nothing and stays open where the lease is lost meanwhile`, async () => {
    let begun: Begun | undefined;
    begun = await begin(() => begun?.active.abandon(new ParleyError("stopping", "lease lost")));
    await endTurn(begun.ending, why);
    expect(begun.replies.at(-1)?.state).toBe("abandoned");
    expect(await begun.isOpen()).toBe(true);
    await begun.close();
  });
}

it("a turn whose message was deleted takes no reply of another turn for its own", async () => {
  const { ending, opened, close } = await begin();
  expect(await endTurn(ending, "deleted")).toBe("ended");
  expect(opened).toMatchObject([{ isEndOnly: true, isResumed: true, otherTurnsShow }]);
  await close();
});

it("a turn that another process has claimed by now is not sealed", async () => {
  const begun = await begin();
  vi.spyOn(begun.inbox, "claimTurn").mockResolvedValue(false);
  expect(await endTurn(begun.ending, "sealed")).toBe("ended");
  expect(begun.opened).toEqual([]);
  expect(await begun.isOpen()).toBe(true);
  await begun.close();
});
