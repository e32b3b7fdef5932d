import { describe, expect, it, vi } from "vitest";
import { createActiveTurn } from "../../../../src/assistant/scheduling/active-turn.ts";
import { withoutRetriedAttempts } from "../../../../src/assistant/turn/stored-messages.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { RunWrite } from "../../../../src/core/inbox.ts";
import type { StoredMessage } from "../../../../src/core/storage.ts";
import type { World } from "../../../support/assistant-world.ts";
import { createFakePlatform, message } from "../../../support/fakes.ts";
import { beginAgain, leaveEnded } from "../../../support/left-turns.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

/** Does something before the next write of this kind, as another process does at that moment. */
function beforeWrite(world: World, kind: RunWrite["kind"], act: () => unknown): void {
  const { inbox } = world.store;
  const write = inbox.write.bind(inbox);
  let isDone = false;
  vi.spyOn(inbox, "write").mockImplementation(async (attempt, what) => {
    if (!isDone && what.kind === kind) {
      isDone = true;
      await act();
    }
    return await write(attempt, what);
  });
}

describe("several processes", () => {
  const world = worldOfEachTest();

  const answer = (key: string, attempt: number, text: string): StoredMessage => ({
    id: `${key}/answer/${attempt}`,
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
        const { inbox } = world.store;
        await inbox.begin(await inbox.read([event.key]));
        await leaveEnded(inbox, event);
        await inbox.write({ key: event.key, attempt: 1, conversationId: "fake:c1" }, { kind: "close" });
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
        realRun(id, () => work(lost.signal, () => true)),
      );
      let atLoss: unknown;
      world.gateway.answerWith(async function* answers(request) {
        if (lost.signal.aborted)
          atLoss = {
            replies: world.platform.replies.map(({ state }) => state),
            log: await world.log(),
            open: (await world.store.inbox.open()).length,
          };
        yield { kind: "text", text: "whole" };
        lost.abort(new ParleyError("store-unavailable", "lease lost"));
        await Promise.resolve();
        yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
      });
      await world.answered(message("talk"));
      // It is asked again by whoever has the conversation next.
      expect(atLoss).toMatchObject({ log: ["user: talk"], open: 1 });
      expect(world.gateway.requests).toHaveLength(2);
      expect(await world.log()).toEqual(["user: talk", "assistant: whole"]);
      expect(world.platform.replies.at(-1)).toMatchObject({ text: "whole", state: "finished" });
    });

    it("is not begun by a process that lost the conversation while it read the inbox", async () => {
      const lost = new AbortController();
      const { queue, inbox } = world.store;
      const realRun = queue.run.bind(queue);
      vi.spyOn(queue, "run").mockImplementationOnce((id, work) =>
        realRun(id, () => work(lost.signal, () => true)),
      );
      const realList = inbox.openIn.bind(inbox);
      vi.spyOn(inbox, "openIn").mockImplementationOnce(async (id) => {
        lost.abort(new ParleyError("store-unavailable", "lease lost"));
        return await realList(id);
      });
      const begun = vi.spyOn(inbox, "begin");
      await world.ask("hello");
      expect(begun).toHaveBeenCalledTimes(1);
      expect(world.gateway.requests).toHaveLength(1);
      expect(world.platform.replies).toMatchObject([{ state: "finished" }]);
    });

    it("is begun by one of two processes that begin it at once", async () => {
      const { inbox } = world.store;
      const [one, two] = [message("one"), message("two")];
      for (const event of [one, two]) await inbox.accept(event);
      const open = await inbox.openIn("fake:c1");
      const begun = await Promise.all([inbox.begin(open), inbox.begin(open.toReversed())]);
      expect(begun.filter((result) => result !== undefined)).toHaveLength(1);
      expect(await world.recover()).toBe(1);
      expect(world.platform.replies).toMatchObject([{ state: "finished" }]);
      expect(world.gateway.requests).toHaveLength(1);
      expect(await inbox.open()).toEqual([]);
    });

    it("is begun with what there is where a message changes at that moment", async () => {
      const { inbox } = world.store;
      const [one, two] = [message("one"), message("two")];
      for (const event of [one, two]) await inbox.accept(event);
      const begin = inbox.begin.bind(inbox);
      vi.spyOn(inbox, "begin").mockImplementationOnce(async (batch, questions) => {
        await inbox.change({ kind: "delete", of: one.key });
        return await begin(batch, questions);
      });
      await world.recover();
      expect(await world.log()).toEqual(["user: two", "assistant: you said: two"]);
      expect(world.platform.replies).toMatchObject([{ state: "finished" }]);
    });

    it("shows nothing, and stores no answer, where another attempt has begun meanwhile", async () => {
      const event = message("asked");
      world.gateway.answerWith(async function* answers(request) {
        await beginAgain(world.store.inbox, event);
        await leaveEnded(world.store.inbox, event, { parts: [{ kind: "text", text: "the other's" }] });
        yield { kind: "text", text: "this one's" };
        yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
      });
      await world.answered(event);
      // The other process has died before it could show its answer.
      expect(world.platform.replies.map(({ state, text }) => `${state}: ${text}`)).toEqual([
        "finished: the other's",
      ]);
      expect(await world.log()).toEqual(["user: asked", "assistant: the other's"]);
      expect(world.gateway.requests).toHaveLength(1);
      expect(await world.store.inbox.open()).toEqual([]);
    });

    it("is begun before anything of it is shown, else what was sent earlier could go before it after a crash", async () => {
      const { platform } = world.platform;
      const claims: unknown[] = [];
      world.assistant.addPlatform({
        ...platform,
        openReply(address, hooks) {
          const reply = platform.openReply(address, hooks);
          return {
            ...reply,
            async show() {
              claims.push((await world.store.inbox.open()).map(({ turn }) => turn?.attempt));
              await reply.show();
            },
          };
        },
      });
      await world.ask("hello");
      expect(claims).toEqual([[1]]);
      expect(world.platform.replies).toMatchObject([{ state: "finished" }]);
    });

    it("shows the last attempt, also where an earlier one was kept after it", () => {
      const messages = [answer("k", 2, "second"), answer("k", 1, "first, late")];
      expect(withoutRetriedAttempts(messages)).toEqual([messages[0]]);
    });
  });

  describe("a turn that met a missing store", () => {
    it("says nothing, stays open, and is answered in the same reply when the store is back", async () => {
      const away = new ParleyError("store-unavailable", "away for a moment");
      const { inbox } = world.store;
      const write = inbox.write.bind(inbox);
      let isAway = true;
      vi.spyOn(inbox, "write").mockImplementation(async (attempt, what) => {
        if (isAway && what.kind === "end") throw away;
        return await write(attempt, what);
      });
      await world.assistant.receive(message("hello"));
      await vi.waitFor(() => expect(world.platform.replies[0]?.state).toBe("abandoned"));
      expect(await world.store.inbox.open()).toHaveLength(1);
      isAway = false;
      await world.settled();
      expect(world.platform.replies).toMatchObject([{ text: "you said: hello", state: "finished" }]);
      expect(await world.log()).toEqual(["user: hello", "assistant: you said: hello"]);
      expect(await world.store.inbox.open()).toEqual([]);
    });
  });

  it("a turn is asked about all its messages, in order, where the store was away when they were stored", async () => {
    const questions = [message("one"), message("two"), message("three")];
    await world.leaveBegun(questions);
    beforeWrite(world, "asked", () => {
      throw new ParleyError("store-unavailable", "away for a moment");
    });
    await world.recover();
    expect((await world.log()).slice(0, 3)).toEqual(["user: one", "user: two", "user: three"]);
    const asked = JSON.stringify(world.gateway.requests.at(-1)?.messages);
    for (const words of ["one", "two", "three"]) expect(asked).toContain(words);
    expect(await world.store.inbox.open()).toEqual([]);
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
      await work(lease.signal, () => true);
      return true;
    });
    return { restarted, lose: () => lease.abort(lost()) };
  }

  describe("a lease that is lost", () => {
    it("while the turn is begun: nothing is shown, not even of an answer that is stored", async () => {
      const event = message("asked");
      await world.leaveBegun([event]);
      await leaveEnded(world.store.inbox, event);
      const { restarted, lose } = withLease();
      const begin = world.store.inbox.begin.bind(world.store.inbox);
      vi.spyOn(world.store.inbox, "begin").mockImplementationOnce(async (...given) => {
        const begun = await begin(...given);
        lose();
        return begun;
      });
      const shown = world.platform.replies;
      await restarted.recover("fake");
      await vi.waitFor(() => expect(shown.map(({ state }) => state)).toEqual(["abandoned"]));
      expect(shown[0]).toMatchObject({ text: "" });
      // The next holder shows it.
      await world.settled();
      expect(shown.at(-1)).toMatchObject({ text: "stored before the crash", state: "finished" });
      expect(world.gateway.requests).toEqual([]);
      expect(await world.store.inbox.open()).toEqual([]);
    });

    it("while the question is stored: nothing more is shown, and the next holder answers in the same reply", async () => {
      const event = message("my secret");
      await world.leaveBegun([event]);
      const { restarted, lose } = withLease();
      beforeWrite(world, "asked", lose);
      await restarted.recover("fake");
      await vi.waitFor(() => expect(world.platform.replies[0]?.state).toBe("abandoned"));
      await world.settled();
      expect(world.gateway.requests.length).toBeLessThanOrEqual(2);
      expect(world.platform.replies.at(-1)).toMatchObject({
        text: "you said: my secret",
        state: "finished",
      });
      expect(await world.log()).toEqual(["user: my secret", "assistant: you said: my secret"]);
    });
  });

  it("a reply that is opened after its turn was abandoned is abandoned", () => {
    const { platform, replies } = createFakePlatform();
    const active = createActiveTurn({ key: "a", attempt: 1, isFresh: () => true });
    active.abandon(lost());
    active.reply = platform.openReply({ at: "c1" }, { saveAddress: () => Promise.resolve() });
    expect(replies.map(({ state }) => state)).toEqual(["abandoned"]);
  });
});
