import { describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { ChatRequest } from "../../../../src/core/gateway.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { ada, bo, call, message, said } from "../../../support/fakes.ts";
import { beginAgain } from "../../../support/left-turns.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

const world = worldOfEachTest(async () => ({
  files: { png: await fixture("picture.png"), ogg: await fixture("voice.ogg") },
}));

/** Makes the gateway say a word, then nothing until the request is ended. The next ones are answered. */
function hangOnce(): void {
  let isFirst = true;
  world.gateway.answerWith(async function* hang(request: ChatRequest, signal: AbortSignal) {
    yield { kind: "text", text: isFirst ? "half" : "whole" };
    if (isFirst) {
      isFirst = false;
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }
    yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
  });
}

const kept = async () => JSON.stringify(await world.history.history("fake:c1", { maxMessages: 50 }));

describe("messages that people removed", () => {
  it("leave no unfinished reply where the process that answered has died", async () => {
    const event = message("the secret is 42");
    await world.leaveBegun([event]);
    await world.assistant.changed({ kind: "delete-messages", conversationId: "fake:c1", keys: [event.key] });
    await vi.waitFor(() => expect(world.platform.replies).toHaveLength(1));
    await world.settled();
    expect(world.platform.replies).toMatchObject([{ address: { message: 7 }, state: "finished", text: "" }]);
    expect(world.platform.replies[0]?.notices.join()).toMatch(/deleted/);
    expect(world.gateway.requests).toEqual([]);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it("leave no unfinished reply either where the store fails for a moment", async () => {
    const event = message("the secret is 42");
    await world.leaveBegun([event]);
    vi.spyOn(world.store.queue, "run").mockImplementationOnce(() =>
      Promise.reject(new ParleyError("store-unavailable", "no lease")),
    );
    await world.assistant.changed({ kind: "delete-messages", conversationId: "fake:c1", keys: [event.key] });
    await world.clock.advance(500);
    await world.settled();
    expect(world.platform.replies).toMatchObject([{ state: "finished" }]);
    expect(world.platform.replies[0]?.notices.join()).toMatch(/deleted/);
  });

  it("leave no unfinished reply either where the turn they stop has just lost its conversation", async () => {
    const lost = new AbortController();
    const realRun = world.store.queue.run.bind(world.store.queue);
    vi.spyOn(world.store.queue, "run").mockImplementationOnce((id, work) =>
      realRun(id, () => work(lost.signal, () => true)),
    );
    hangOnce();
    const event = message("the secret is 42");
    await world.assistant.receive(event);
    await vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("half"));
    const deletion = world.assistant.changed({
      kind: "delete-messages",
      conversationId: "fake:c1",
      keys: [event.key],
    });
    lost.abort(new ParleyError("store-unavailable", "lease lost"));
    await deletion;
    await world.settled();
    await vi.waitFor(() => expect(world.platform.replies.at(-1)).toMatchObject({ state: "finished" }));
    expect(world.platform.replies.at(-1)?.notices.join()).toMatch(/deleted/);
  });

  it("leave no unfinished reply either where this process dies before it has ended it", async () => {
    const event = message("the secret is 42");
    await world.leaveBegun([event]);
    await world.store.inbox.change({ kind: "delete", of: event.key });
    expect(JSON.stringify(await world.store.inbox.open())).not.toContain("secret");
    expect(await world.restart().recover("fake")).toBe(1);
    await vi.waitFor(() => expect(world.platform.replies).toMatchObject([{ state: "finished", text: "" }]));
    await vi.waitFor(async () => expect(await world.store.inbox.open()).toEqual([]));
    expect(world.gateway.requests).toEqual([]);
  });

  it("leave the reply of a dead process to the other messages that it answered", async () => {
    const [gone, stays] = [message("never mind"), message("but this")];
    await world.leaveBegun([gone, stays]);
    await world.assistant.changed({ kind: "delete-messages", conversationId: "fake:c1", keys: [gone.key] });
    await world.settled();
    expect(world.platform.replies).toMatchObject([
      { address: { message: 7 }, state: "finished", text: "you said: but this" },
    ]);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it("leave no unfinished reply either while another turn of the conversation runs", async () => {
    hangOnce();
    await world.assistant.receive(message("first"));
    await vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("half"));
    const event = message("the secret is 42");
    await world.leaveBegun([event], { message: 77 });
    await world.assistant.changed({ kind: "delete-messages", conversationId: "fake:c1", keys: [event.key] });
    await world.assistant.press({ kind: "stop", key: "fake:c1" }, ada);
    await world.settled();
    const ended = world.platform.replies.find(({ address }) => address["message"] === 77);
    expect(ended).toMatchObject({ state: "finished", text: "" });
    expect(world.platform.replies[0]).toMatchObject({ state: "finished", text: "half" });
  });

  it("stop the turn that answers them, where another process learns of the deletion", async () => {
    const { inbox, queue } = world.store;
    Object.assign(queue, { isShared: true });
    const here = world.restart();
    hangOnce();
    const event = message("the secret is 42");
    const accepted = here.receive(event);
    await world.passingTime(vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("half")));
    await accepted;
    await inbox.change({ kind: "delete", of: event.key });
    expect(await kept()).not.toContain("secret");
    await world.clock.advance(700);
    await world.settled();
    expect(world.platform.replies).toMatchObject([{ state: "finished" }]);
    expect(world.platform.replies[0]?.notices.join()).toMatch(/deleted/);
    expect(await inbox.open()).toEqual([]);
  });

  it("leave no file that a dead process had kept for them", async () => {
    const event = message("look");
    await world.leaveBegun([event]);
    const { hash } = await world.store.conversations.putBlob(
      "fake:c1",
      await fixture("picture.png"),
      "image/png",
    );
    await world.assistant.changed({ kind: "delete-messages", conversationId: "fake:c1", keys: [event.key] });
    await world.settled();
    expect(await world.store.conversations.getBlob("fake:c1", hash)).toBeUndefined();
  });

  it("and everything else of a person leave nothing, where a turn of theirs runs when they are forgotten", async () => {
    hangOnce();
    const event = message("the secret is 42");
    await world.assistant.receive(event);
    await vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("half"));
    const forget = call(
      "forget",
      { where: "everywhere", confirm: true },
      { conversationId: "fake:c2", isPrivate: true },
    );
    await world.assistant.receive(forget);
    await world.clock.advance(5000);
    await world.assistant.press({ kind: "stop", key: "fake:c1" }, ada);
    await world.settled();
    expect(world.platform.replies.at(-1)).toMatchObject({ state: "finished" });
    expect(await kept()).toBe("[]");
    expect(await world.store.inbox.read([event.key])).toMatchObject([{ state: "erased" }]);
  });

  it("are not sent to the model any more, and a late delivery is a duplicate", async () => {
    const first = await world.ask("the secret is 42");
    // Its answer stays in the log, but no request begins with an answer to nothing.
    await world.ask("and the weather?");
    await world.assistant.changed({ kind: "delete-messages", conversationId: "fake:c1", keys: [first.key] });
    await world.ask("what now?");
    expect(said(world.gateway.requests.at(-1))).toEqual([
      "system: Be brief.",
      "user: and the weather?",
      "assistant: you said: and the weather?",
      "user: what now?",
    ]);
    expect(await world.assistant.receive(first)).toBe("duplicate");
    await world.settled();
    expect(world.platform.replies).toHaveLength(3);
    expect(await world.assistant.press({ kind: "retry", key: first.key }, ada)).toEqual({ kind: "gone" });
  });

  it("take their pictures along, unless another message shows the same", async () => {
    const picture = { attachments: [{ id: "png", name: "a.png", source: null }] };
    const first = await world.ask("one", picture);
    const second = await world.ask("two", picture);
    const [stored] = await world.history.history("fake:c1", { maxMessages: 9 });
    const hash = stored?.parts.flatMap((part) => (part.kind === "image" ? [part.blob.hash] : []))[0] ?? "";
    await world.assistant.changed({ kind: "delete-messages", conversationId: "fake:c1", keys: [first.key] });
    expect(await world.history.readBlob("fake:c1", hash)).toBeDefined();
    await world.assistant.changed({ kind: "delete-messages", conversationId: "fake:c1", keys: [second.key] });
    expect(await world.history.readBlob("fake:c1", hash)).toBeUndefined();
  });

  it("are not answered where an earlier process accepted them", async () => {
    const event = message("before the crash", { conversationId: "fake:new" });
    await world.store.inbox.accept(event);
    const restarted = world.restart();
    await restarted.changed({ kind: "delete-messages", conversationId: "fake:new", keys: [event.key] });
    expect(await restarted.recover("fake")).toBe(0);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it("do not take the other messages of a burst along: those are answered anew", async () => {
    hangOnce();
    await world.assistant.receive(message("first"));
    await vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("half"));
    const [one, two] = [message("burst one"), message("burst two")];
    await world.assistant.receive(one);
    await world.assistant.receive(two);
    hangOnce();
    await world.assistant.press({ kind: "stop", key: "fake:c1" }, ada);
    await vi.waitFor(() => expect(world.platform.replies[1]?.text).toBe("half"));
    await world.assistant.changed({ kind: "delete-messages", conversationId: "fake:c1", keys: [two.key] });
    await world.settled();
    expect(world.platform.replies.at(-1)).toMatchObject({ text: "whole", state: "finished" });
    expect(said(world.gateway.requests.at(-1)).at(-1)).toBe("user: burst one");
    const answers = await world.history.history("fake:c1", { maxMessages: 50 });
    expect(answers.at(-1)).toMatchObject({ parts: [{ kind: "text", text: "whole" }], outcome: "complete" });
    expect(await kept()).not.toContain("burst two");
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it("may be the bot's own answer", async () => {
    await world.ask("hello");
    const shown = world.platform.replies[0]?.address["message"];
    await world.assistant.changed({
      kind: "delete-messages",
      conversationId: "fake:c1",
      keys: [`fake:reply:${JSON.stringify(shown)}`],
    });
    expect(await kept()).not.toContain("you said");
    expect(await kept()).toContain("hello");
  });

  it("may be a message of its answer that was posted after the answer was stored", async () => {
    const { platform } = world.platform;
    world.assistant.addPlatform({
      ...platform,
      shownMessageKeys: (address) =>
        platform.shownMessageKeys(address).filter(() => address["late"] === true),
      openReply(address, hooks) {
        const reply = platform.openReply(address, hooks);
        return {
          ...reply,
          async finish(ending) {
            await reply.finish(ending);
            await hooks.saveAddress({ ...address, message: 7, late: true });
          },
        };
      },
    });
    await world.ask("hello");
    expect(await kept()).toContain("you said");
    await world.assistant.changed({
      kind: "delete-messages",
      conversationId: "fake:c1",
      keys: ["fake:reply:7"],
    });
    await world.settled();
    expect(await kept()).toContain("hello");
    expect(await kept()).not.toContain("you said");
  });

  it("leave a reset where it was", async () => {
    const old = await world.ask("before the reset");
    await world.ask("last before the reset");
    const last = world.platform.replies[1]?.address["message"];
    await world.answered(call("reset", {}, { inConversation: true }));
    await world.assistant.changed({
      kind: "delete-messages",
      conversationId: "fake:c1",
      keys: [`fake:reply:${JSON.stringify(last)}`],
    });
    await world.ask("anew");
    expect(said(world.gateway.requests.at(-1))).toEqual(["system: Be brief.", "user: anew"]);
    expect(await kept()).toContain(old.text);
  });

  it("of nobody's conversation change nothing", async () => {
    await world.assistant.changed({
      kind: "delete-messages",
      conversationId: "fake:unknown",
      keys: ["fake:nothing"],
    });
    expect(await world.assistant.history.knows("fake:unknown")).toBe(false);
    expect(await world.assistant.receive(message("hi", { key: "fake:nothing" }))).toBe("accepted");
    await world.settled();
  });
});

describe("a conversation deleted on the platform", () => {
  it("is erased with what runs and waits in it", async () => {
    await world.ask("old");
    await world.ask("elsewhere", { conversationId: "fake:c2" });
    hangOnce();
    await world.assistant.receive(message("running"));
    await vi.waitFor(() => expect(world.platform.replies[2]?.text).toBe("half"));
    await world.assistant.receive(message("waiting"));
    await world.assistant.changed({ kind: "delete-conversation", conversationId: "fake:c1" });
    await world.settled();
    expect(await world.assistant.history.knows("fake:c1")).toBe(false);
    expect(await world.assistant.history.knows("fake:c2")).toBe(true);
    expect(world.platform.replies).toHaveLength(3);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it("is erased with a place that contains it", async () => {
    const within = ["fake:server:1", "fake:channel:1"];
    await world.ask("here", { within });
    await world.ask("there", { conversationId: "fake:c2", within: ["fake:server:1", "fake:channel:2"] });
    await world.assistant.changed({ kind: "delete-place", place: "fake:channel:1" });
    expect(await world.assistant.history.knows("fake:c1")).toBe(false);
    expect(await world.assistant.history.knows("fake:c2")).toBe(true);
    await world.assistant.changed({ kind: "delete-place", place: "fake:server:1" });
    expect(await world.assistant.history.knows("fake:c2")).toBe(false);
  });

  it("is erased with a place that contains it also where its first question could not be read", async () => {
    vi.spyOn(world.gateway.gateway, "transcribe").mockRejectedValue(new ParleyError("gateway-error", "down"));
    const attachments = [{ id: "ogg", name: "voice.ogg", source: null }];
    await world.answered(message("", { attachments, within: ["fake:server:1"] }));
    expect(await world.assistant.history.knows("fake:c1")).toBe(true);
    await world.assistant.changed({ kind: "delete-place", place: "fake:server:1" });
    expect(await world.assistant.history.knows("fake:c1")).toBe(false);
  });

  it("go with a place that is deleted while their first turn runs, and the turn ends", async () => {
    hangOnce();
    await world.assistant.receive(message("a secret", { within: ["fake:server:1"] }));
    await vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("half"));
    await world.assistant.changed({ kind: "delete-place", place: "fake:server:1" });
    await world.settled();
    expect(await world.assistant.history.knows("fake:c1")).toBe(false);
    expect(await kept()).not.toContain("a secret");
    expect(await world.store.inbox.open()).toEqual([]);
  });
});

describe("a conversation with nothing but a command in it", () => {
  it("is erased with a place that contains it", async () => {
    await world.answered(
      call("imagine", { prompt: "a fox" }, { inConversation: true, within: ["fake:server:1"] }),
    );
    expect(await world.assistant.history.knows("fake:c1")).toBe(true);
    await world.assistant.changed({ kind: "delete-place", place: "fake:server:1" });
    expect(await world.assistant.history.knows("fake:c1")).toBe(false);
  });
});

describe("a command that is stored apart from the conversation", () => {
  it.each([
    ["private", call("summarize", {}, { inConversation: true, isPrivate: true })],
    ["outside of one", call("imagine", { prompt: "a fox" }, {})],
  ])("is erased with a place that contains it: %s", async (_, event) => {
    await world.ask("a secret", { within: ["fake:server:1"] });
    await world.answered({ ...event, within: ["fake:server:1"] });
    const { conversations } = world.store;
    expect(await conversations.recent(event.key, { maxMessages: 9 })).not.toEqual([]);
    await world.assistant.changed({ kind: "delete-place", place: "fake:server:1" });
    expect(await conversations.recent(event.key, { maxMessages: 9 })).toEqual([]);
  });
});

describe("a command that asks first", () => {
  const here = { inConversation: true };

  it("does nothing until the one who asked has confirmed it, and then says what it did in the same reply", async () => {
    await world.ask("a secret", { attachments: [{ id: "png", name: "a.png", source: null }] });
    const event = await world.answered(call("forget", {}, here));
    const reply = world.platform.replies.at(-1);
    expect(reply?.text).toContain("2 messages and 1 file (1 whole conversation) in this conversation");
    expect(reply?.confirm).toEqual({ label: "Remove 2 messages", key: event.key });

    expect(await world.assistant.press({ kind: "confirm", key: event.key }, bo)).toMatchObject({
      kind: "told",
    });
    await world.settled();
    expect(await kept()).toContain("a secret");

    expect(await world.assistant.press({ kind: "confirm", key: event.key }, ada)).toEqual({ kind: "done" });
    await world.settled();
    expect(world.platform.replies).toHaveLength(2);
    expect(reply?.text).toContain("Removed in this conversation: 2 messages and 1 file");
    expect(reply?.confirm).toBeUndefined();
    expect(await kept()).toBe("[]");
  });

  it("asks again where it is run again without a confirmation", async () => {
    await world.ask("a secret");
    const event = await world.answered(call("forget", {}, here));
    await world.store.inbox.change({ kind: "again", of: event.key, reason: "retry", isLastOnly: false });
    expect(await world.recover(world.restart())).toBe(1);
    expect(world.platform.replies.at(-1)?.confirm?.key).toBe(event.key);
    expect(await kept()).toContain("a secret");
  });

  it("is done after a crash between the confirmation and the removal, because its person has confirmed it", async () => {
    await world.ask("a secret");
    const event = await world.answered(call("forget", {}, here));
    await world.store.inbox.change({ kind: "again", of: event.key, reason: "confirm", isLastOnly: false });
    await beginAgain(world.store.inbox, event);
    expect(await world.recover(world.restart())).toBe(1);
    expect(world.platform.replies.at(-1)?.text).toContain("Removed in this conversation");
    expect(await kept()).toBe("[]");
  });

  it("cannot be confirmed where nothing asked", async () => {
    const event = await world.ask("a message, no command");
    expect(await world.assistant.press({ kind: "confirm", key: event.key }, ada)).toEqual({ kind: "gone" });
    expect(await world.assistant.press({ kind: "confirm", key: "fake:never" }, ada)).toEqual({
      kind: "gone",
    });
    await world.settled();
    expect(world.gateway.requests).toHaveLength(1);
  });
});
