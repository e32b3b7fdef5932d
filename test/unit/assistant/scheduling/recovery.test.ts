import { describe, expect, it, vi } from "vitest";
import { message, worldOfEachTest } from "../../../support/fakes.ts";

const world = worldOfEachTest();

/** Requests that the gateway holds until they are ended. */
function holdRequests(): (() => void)[] {
  const ends: (() => void)[] = [];
  world.gateway.answerWith(async function* hold(request) {
    await new Promise<void>((resolve) => ends.push(resolve));
    yield { kind: "text", text: "answer" };
    yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
  });
  return ends;
}

/** As an earlier process left it: accepted and not answered. */
async function leaveOpen(count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const author = { id: `fake:person-${n}`, name: `Person ${n}` };
    await world.store.inbox.accept(message(`question ${n}`, { conversationId: `fake:old-${n}`, author }));
  }
}

describe("recovery", () => {
  it("resumes a few conversations at a time, and a new one does not wait for the rest", async () => {
    await leaveOpen(200);
    const ends = holdRequests();
    expect(await world.assistant.recover("fake")).toBe(200);
    await vi.waitFor(() => expect(ends).toHaveLength(16));
    expect(world.assistant.pending()).toBe(16);
    await world.assistant.receive(message("what about me?", { conversationId: "fake:new" }));
    await vi.waitFor(() => expect(ends).toHaveLength(17));
    const ended = new Set<() => void>();
    await expect
      .poll(
        () => {
          for (const end of ends) {
            ended.add(end);
            end();
          }
          return ended.size;
        },
        { timeout: 20_000, interval: 5 },
      )
      .toBe(201);
    await vi.waitFor(async () => expect(await world.store.inbox.listOpen()).toEqual([]));
  });

  it("found twice, a turn is resumed once", async () => {
    await leaveOpen(40);
    const ends = holdRequests();
    await world.assistant.recover("fake");
    await vi.waitFor(() => expect(ends).toHaveLength(16));
    await world.assistant.recover("fake");
    await expect
      .poll(
        () => {
          for (const end of ends) end();
          return world.assistant.pending();
        },
        { timeout: 20_000, interval: 5 },
      )
      .toBe(0);
    await vi.waitFor(async () => expect(await world.store.inbox.listOpen()).toEqual([]));
    expect(world.gateway.requests).toHaveLength(40);
  });

  it("a conversation's old turn runs before its new one, though it waited for its turn to be resumed", async () => {
    await leaveOpen(30);
    const ends = holdRequests();
    await world.assistant.recover("fake");
    await vi.waitFor(() => expect(ends).toHaveLength(16));
    await world.assistant.receive(message("the new question", { conversationId: "fake:old-29" }));
    await expect
      .poll(
        () => {
          for (const end of ends) end();
          return world.assistant.pending();
        },
        { timeout: 20_000, interval: 5 },
      )
      .toBe(0);
    const log = await world.history.history("fake:old-29", { maxMessages: 10 });
    expect(log.filter(({ role }) => role === "user").map(({ parts }) => parts[0])).toEqual([
      { kind: "text", text: "question 29" },
      { kind: "text", text: "the new question" },
    ]);
  });
});

it("a thread whose first question is sealed is the bot's: what people say there is answered", async () => {
  const conversationId = "fake:sealed-thread";
  const place = { server: "fake:s", channel: "fake:c", channelPlace: "fake:channel:1" };
  const event = message("question", { conversationId, within: ["fake:channel:1"] });
  await world.store.inbox.accept(event);
  await world.store.inbox.saveTurn({ keys: [event.key], address: event.address, attempts: 4 });
  await world.assistant.recover("fake");
  await vi.waitFor(async () => expect(await world.store.inbox.listOpen()).toEqual([]));
  expect(world.platform.replies.map(({ state }) => state)).toEqual(["failed"]);
  expect(await world.assistant.answersTo(conversationId, place)).toBe("every-message");
});

it("a resumed reply can ask which messages show the other open turns of its conversation", async () => {
  const [first, second] = [message("one"), message("two")];
  for (const [index, event] of [first, second].entries()) {
    await world.store.inbox.accept(event);
    const address = { ...event.address, message: 70 + index };
    await world.store.inbox.saveTurn({ keys: [event.key], address, attempts: 1 });
  }
  const { platform } = world.platform;
  const found: (readonly string[])[] = [];
  world.assistant.addPlatform({
    ...platform,
    openReply(address, hooks) {
      const reply = platform.openReply(address, hooks);
      const keys = ["fake:reply:70", "fake:reply:71", "fake:reply:72"];
      return {
        ...reply,
        async show() {
          found.push((await hooks.otherTurnsShow?.(keys)) ?? []);
          await reply.show();
        },
      };
    },
  });
  await world.assistant.recover("fake");
  await vi.waitFor(() => expect(found).toHaveLength(2));
  await world.settled();
  // The first turn is answered when the second one asks.
  expect(found).toEqual([["fake:reply:71"], ["fake:reply:70"]]);
});

it("and which show those that are answered", async () => {
  const [answered, open] = [message("one"), message("two")];
  await world.store.conversations.append(answered.conversationId, {
    id: `${answered.key}/answer`,
    role: "assistant",
    turnKey: answered.key,
    parts: [{ kind: "text", text: "One." }],
    createdAt: 1,
    estimatedTokens: 1,
    outcome: "complete",
    shownAs: ["fake:reply:70"],
  });
  await world.store.inbox.accept(open);
  await world.store.inbox.saveTurn({ keys: [open.key], address: open.address, attempts: 1 });
  const { platform } = world.platform;
  let found: readonly string[] = [];
  world.assistant.addPlatform({
    ...platform,
    openReply(address, hooks) {
      const reply = platform.openReply(address, hooks);
      return {
        ...reply,
        async show() {
          found = (await hooks.otherTurnsShow?.(["fake:reply:70", "fake:reply:71"])) ?? [];
          await reply.show();
        },
      };
    },
  });
  await world.assistant.recover("fake");
  await vi.waitFor(() => expect(found).toEqual(["fake:reply:70"]));
  await world.settled();
});
