import { describe, expect, it, test, vi } from "vitest";
import { isParleyError, ParleyError } from "../../../src/core/errors.ts";
import { fixture } from "../../fixtures/fixtures.ts";
import { ada, call, message, said } from "../../support/fakes.ts";
import { worldOfEachTest } from "../../support/world-of-each-test.ts";

const world = worldOfEachTest(async () => ({
  files: {
    png: await fixture("picture.png"),
    voice: await fixture("voice.ogg"),
    text: await fixture("notes.txt"),
    nothing: new Uint8Array(),
  },
}));

function gate(): { readonly opened: Promise<void>; open(): void } {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

describe("a message", () => {
  it("is answered, and both are kept in order", async () => {
    await world.ask("hello");
    expect(world.platform.replies).toMatchObject([{ text: "you said: hello", state: "finished", shown: 1 }]);
    const log = await world.history.history("fake:c1", { maxMessages: 10 });
    expect(log.map(({ role, parts }) => [role, parts])).toEqual([
      ["user", [{ kind: "text", text: "hello" }]],
      ["assistant", [{ kind: "text", text: "you said: hello" }]],
    ]);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it("after 400 others is asked with the first one, until /reset", async () => {
    for (let index = 0; index < 400; index += 1) {
      const role = index % 2 === 0 ? "user" : "assistant";
      await world.store.conversations.append("fake:c1", {
        id: `m${index}`,
        role,
        turnKey: `m${index - (index % 2)}`,
        ...(role === "user" ? {} : { attempt: 1, outcome: "complete" as const }),
        parts: [{ kind: "text", text: index === 0 ? "My cat is called Mimi." : `words ${index}` }],
        createdAt: index,
        estimatedTokens: 10,
      });
    }
    await world.answered(message("what is her name?"));
    expect(said(world.gateway.requests[0]).join("\n")).toContain("My cat is called Mimi.");
    expect(world.platform.replies[0]?.notices.join()).toContain("Only the first message and the last");
    await world.answered(call("reset", {}, { inConversation: true }));
    await world.answered(message("and now?", { key: "fake:after" }));
    expect(said(world.gateway.requests.at(-1)).join("\n")).not.toContain("Mimi");
  });

  it("delivered twice is answered once", async () => {
    const event = message("once");
    expect(await world.assistant.receive(event)).toBe("accepted");
    expect(await world.assistant.receive(event)).toBe("duplicate");
    await world.settled();
    expect(await world.assistant.receive(event)).toBe("duplicate");
    await world.settled();
    expect(world.platform.replies).toHaveLength(1);
  });

  it("makes its conversation known as soon as it is accepted, before its turn runs", async () => {
    await world.store.inbox.accept(message("first"));
    expect(await world.assistant.history.knows("fake:c1")).toBe(true);
    expect(await world.assistant.history.knows("fake:c2")).toBe(false);
  });

  it("carries the conversation: earlier turns reach the gateway in order", async () => {
    for (const text of ["one", "two", "three"]) {
      await world.ask(text);
    }
    expect(said(world.gateway.requests.at(-1))).toEqual([
      "system: Be brief.",
      "user: one",
      "assistant: you said: one",
      "user: two",
      "assistant: you said: two",
      "user: three",
    ]);
  });

  it("that arrives while the bot is busy joins the next turn, with all others that do", async () => {
    const busy = gate();
    world.gateway.answerWith(async function* slow(request) {
      await busy.opened;
      yield { kind: "text", text: `answer ${world.gateway.requests.length}` };
      yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
    });
    await world.assistant.receive(message("first"));
    await vi.waitFor(() => expect(world.gateway.requests).toHaveLength(1));
    await world.assistant.receive(message("second"));
    await world.assistant.receive(message("third"));
    busy.open();
    await world.settled();
    expect(world.platform.replies.map(({ text }) => text)).toEqual(["answer 1", "answer 2"]);
    expect(said(world.gateway.requests[1])).toEqual([
      "system: Be brief.",
      "user: first",
      "assistant: answer 1",
      "user: second",
      "user: third",
    ]);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it("carries its author's name once several people take part", async () => {
    await world.ask("hi");
    await world.ask("me too", { author: { id: "fake:bo", name: "Bo" } });
    expect(said(world.gateway.requests[0])).toContain("user: hi");
    expect(said(world.gateway.requests[1])).toEqual([
      "system: Be brief.",
      "user: Ada: hi",
      "assistant: you said: hi",
      "user: Bo: me too",
    ]);
  });

  it("with a picture, a voice note and a text file has all three read", async () => {
    const attachments = [
      { id: "png", name: "cat.png", source: null },
      { id: "voice", name: "note.bin", source: null },
      { id: "text", name: "notes.txt", source: null },
    ];
    await world.ask("look", { attachments });
    const [prompt] = said(world.gateway.requests[0]).slice(-1);
    expect(prompt).toContain("look");
    expect(prompt).toContain("<data:image/png;>");
    expect(prompt).toContain("heard note.ogg");
    expect(prompt).toContain("[file notes.txt]");
    expect(world.platform.replies[0]?.text).toMatch(/^> Heard: heard note\.ogg\n\n/);
  });

  it("names the files it could not read", async () => {
    const attachments = [
      { id: "nothing", name: "empty.bin", source: null },
      { id: "gone", name: "lost.png", source: null },
    ];
    await world.ask("and these?", { attachments });
    expect(world.platform.replies[0]).toMatchObject({ state: "finished" });
    expect(world.platform.replies[0]?.notices).toEqual([
      "Not read: `empty.bin` (the file is empty).",
      "Not read: `lost.png` (`lost.png` no longer exists. Upload it again).",
    ]);
  });

  it("with nothing readable fails with words and asks no model", async () => {
    await world.ask("", { attachments: [{ id: "nothing", name: "empty.bin", source: null }] });
    expect(world.platform.replies[0]).toMatchObject({
      state: "failed",
      failure: { text: "There was nothing in it that Parley can read." },
    });
    expect(world.gateway.requests).toEqual([]);
  });
});

describe("an answer that goes wrong", () => {
  it("fails with a reason and a Retry that runs the turn again into the same reply", async () => {
    world.gateway.answerWith(() => {
      throw new ParleyError("gateway-unreachable", "refused");
    });
    const event = await world.ask("are you there?");
    const [reply] = world.platform.replies;
    expect(reply).toMatchObject({ state: "failed", failure: { retryKey: event.key } });
    expect(reply?.failure?.text).toContain("cannot be reached");
    const [, failed] = await world.history.history("fake:c1", { maxMessages: 10 });
    expect(failed).toMatchObject({
      turnKey: event.key,
      attempt: 1,
      failure: reply?.failure?.text,
      notices: [],
    });

    world.answerWith("yes");
    expect(await world.assistant.press({ kind: "retry", key: event.key }, ada)).toEqual({ kind: "done" });
    await world.settled();
    expect(world.platform.replies).toHaveLength(1);
    expect(reply).toMatchObject({ state: "finished", text: "yes" });
    const log = await world.history.history("fake:c1", { maxMessages: 10 });
    expect(log.map(({ role, outcome }) => [role, outcome])).toEqual([
      ["user", undefined],
      ["assistant", "complete"],
    ]);
  });

  it("keeps what had arrived when the stream breaks off", async () => {
    world.gateway.answerWith(async function* broken() {
      yield { kind: "text", text: "half of it" };
      throw new ParleyError("gateway-interrupted", "cut");
    });
    await world.ask("tell me");
    expect(world.platform.replies[0]).toMatchObject({ state: "failed", text: "half of it" });
    const log = await world.history.history("fake:c1", { maxMessages: 10 });
    expect(log.at(-1)).toMatchObject({
      outcome: "interrupted",
      failure: world.platform.replies[0]?.failure?.text,
      parts: [{ kind: "text", text: "half of it" }],
    });
  });

  it("is cut and asked once more when the model says it is too long", async () => {
    let asked = 0;
    world.gateway.answerWith(async function* fussy(request) {
      asked++;
      if (asked === 3) throw new ParleyError("gateway-context-length", "too long");
      yield { kind: "text", text: "ok" };
      yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
    });
    await world.ask("word ".repeat(9000));
    await world.ask("word ".repeat(9000));
    await world.ask("and now?");
    // In between the model was asked for a summary of what did not fit.
    expect(world.gateway.requests[2]?.messages).toHaveLength(6);
    expect(said(world.gateway.requests.at(-1)).map((line) => line.slice(0, 40))).toEqual([
      expect.stringContaining("system: Be brief."),
      expect.stringContaining("user: [Summary of earlier messages]"),
      "user: and now?",
    ]);
    expect(world.platform.replies.at(-1)).toMatchObject({ state: "finished", text: "ok" });
    expect(world.platform.replies.at(-1)?.notices.join()).toContain("summed up");
  });
});

describe("after a restart", () => {
  it("an accepted, unanswered message is answered into its own reply", async () => {
    const event = message("before the crash");
    await world.leaveBegun([event], { message: 77 });
    expect(await world.recover(world.restart())).toBe(1);
    expect(world.platform.replies).toMatchObject([
      { address: { message: 77 }, text: "you said: before the crash" },
    ]);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it("a turn that could not begin begins when the outage is over", async () => {
    vi.spyOn(world.store.queue, "run").mockImplementationOnce(() =>
      Promise.reject(new ParleyError("store-unavailable", "no lease")),
    );
    const event = message("in an outage");
    await world.assistant.receive(event);
    expect(world.platform.replies).toEqual([]);
    await world.settled();
    expect(world.platform.replies).toMatchObject([{ text: "you said: in an outage", state: "finished" }]);
  });

  it("what is too old is sealed with a Retry", async () => {
    const event = message("long ago");
    await world.store.inbox.accept(event);
    await world.clock.advance(2 * 60 * 60_000);
    await world.recover(world.restart());
    expect(world.platform.replies[0]).toMatchObject({ state: "failed", failure: { retryKey: event.key } });
    expect(world.gateway.requests).toEqual([]);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it("stopping breaks a running turn off at the deadline and leaves it open", async () => {
    world.hang("so far");
    await world.assistant.receive(message("talk"));
    await vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("so far"));
    expect(await world.passingTime(world.assistant.stop({ deadlineMs: 5000 }))).toBe(1);
    expect(world.platform.replies[0]?.state).toBe("abandoned");
    expect(await world.store.inbox.open()).toHaveLength(1);
    await expect(world.assistant.receive(message("late"))).rejects.toMatchObject({ code: "stopping" });
  });
});

describe("a person with very much to ask", () => {
  it("is told when too much of theirs waits, and others are answered", async () => {
    const held = world.hold();
    const asked = Array.from({ length: 300 }, () =>
      world.assistant.receive(call("ask", { prompt: "again" })).then(
        () => "accepted",
        (error: unknown) => (isParleyError(error, "busy") ? "busy" : "failed"),
      ),
    );
    const results = await Promise.all(asked);
    expect(results.filter((result) => result === "accepted")).toHaveLength(50);
    expect(results.filter((result) => result === "busy")).toHaveLength(250);
    await vi.waitFor(() => expect(held.count()).toBe(4));
    const author = { id: "fake:bob", name: "Bob" };
    await world.assistant.receive(message("me too", { author, conversationId: "fake:c2" }));
    await vi.waitFor(() => expect(held.count()).toBe(5));
    held.release();
    await world.settled();
    expect(world.gateway.requests).toHaveLength(51);
  });

  it("is not refused in words what another process has accepted, though too much of theirs waits here", async () => {
    const held = world.hold();
    const elsewhere = message("accepted elsewhere");
    await world.store.inbox.accept(elsewhere);
    for (let n = 0; n < 50; n++) await world.assistant.receive(call("ask", { prompt: "again" }));
    expect(await world.assistant.receive(elsewhere)).toBe("duplicate");
    await expect(world.assistant.receive(message("new"))).rejects.toMatchObject({ code: "busy" });
    held.release();
    await world.settled();
  });
});

test("while too many calls wait under the platform's limits, new messages are refused before the model is asked", async () => {
  let isFull = true;
  world.assistant.addPlatform({
    ...world.platform.platform,
    delivery: { isFull: () => isFull, waiting: () => [] },
  });
  await expect(world.assistant.receive(message("one more"))).rejects.toMatchObject({ code: "busy" });
  expect(await world.store.inbox.open()).toEqual([]);
  isFull = false;
  expect(await world.assistant.receive(message("now"))).toBe("accepted");
  await world.settled();
  expect(world.gateway.requests).toHaveLength(1);
});

describe("an answer that the platform does not show", () => {
  it("stays open while the platform limits the rate, and is shown later", async () => {
    const limited = new ParleyError("platform-rejected", "too fast", { retryAfterMs: 30_000 });
    world.platform.failToShow(limited);
    const { key } = message("hi");
    await world.assistant.receive(message("hi", { key }));
    await world.clock.advance(5000);
    expect((await world.store.inbox.open()).map(({ event }) => event.key)).toEqual([key]);
    world.platform.failToShow(undefined);
    await world.settled();
    expect(world.platform.replies.at(-1)).toMatchObject({ text: "you said: hi", state: "finished" });
    expect(world.platform.told).toEqual([]);
  });

  it("because of an unexpected error ends with words and Retry, so that no placeholder stays", async () => {
    const event = message("hi");
    await world.leaveBegun([event], { message: 77 });
    const damage = vi
      .spyOn(world.store.conversations, "find")
      .mockRejectedValue(new ParleyError("store-corrupt", "a stored value is not JSON"));
    await world.recover();
    damage.mockRestore();
    expect(world.platform.replies.at(-1)).toMatchObject({
      state: "failed",
      failure: { retryKey: event.key },
    });
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it("is told to its person alone where the bot lacks a permission, and is over", async () => {
    const permission = "Send Messages";
    world.platform.failToShow(new ParleyError("platform-forbidden", "no", { detail: { permission } }));
    const { author } = await world.ask("hi");
    expect(world.platform.told).toEqual([{ authorId: author.id, text: expect.stringContaining(permission) }]);
    expect(await world.store.inbox.open()).toEqual([]);
  });
});

// A thread's id is its root message's, on Discord and Slack. So its key may be the conversation's id.
it("what was said in a thread before is sent with the message that the thread hangs on, when that is a question later", async () => {
  await world.ask("My ship is a sloop.");
  await world.ask("Which is it?", { key: "fake:c1" });
  expect(said(world.gateway.requests.at(-1))).toEqual([
    "system: Be brief.",
    "user: My ship is a sloop.",
    "assistant: you said: My ship is a sloop.",
    "user: Which is it?",
  ]);
});
