import { afterEach, describe, expect, test, vi } from "vitest";
import type { Actor } from "../../../../src/core/access.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import { ada, bo, call, createWorld, message, type World } from "../../../support/fakes.ts";

const guild = "discord:guild:1";
const guest = { user: "discord:user:7", server: guild, isMember: true, isManager: false } as const;

let world: World;
afterEach(async () => {
  await world.close();
});

test("somebody whom the rules refuse leaves no trace in the store, the channel and the gateway", async () => {
  world = await createWorld({ rules: { deny: ["discord:user:7"] } });
  const event = message("hello", { origin: guest });
  await expect(world.assistant.receive(event)).rejects.toMatchObject({
    code: "access-denied",
    detail: { because: "denied" },
  });
  expect(world.assistant.pending()).toBe(0);
  expect(await world.store.inbox.lookUp([event.key])).toEqual([]);
  expect(world.platform.replies).toEqual([]);
  expect(world.gateway.requests).toEqual([]);
});

test("somebody whom the rules allow is answered", async () => {
  world = await createWorld({ rules: { allow: [guild] } });
  await world.assistant.receive(message("hello", { origin: guest }));
  await vi.waitFor(() => {
    expect(world.platform.replies).toMatchObject([{ text: "you said: hello", state: "finished" }]);
  });
});

test("a stored turn of somebody who is refused since then is told to the author alone, and not run", async () => {
  world = await createWorld();
  const event = message("hello", { origin: guest });
  await world.store.inbox.accept(event);
  const restarted = world.restart({ rules: { deny: [guild] } });
  expect(await restarted.recover("fake")).toBe(1);
  await vi.waitFor(async () => {
    expect(await world.store.inbox.listOpen()).toEqual([]);
  });
  await world.settled();
  expect(world.gateway.requests).toEqual([]);
  expect(world.platform.replies).toMatchObject([
    { state: "failed", failure: { text: expect.stringContaining("not on the list") as string } },
  ]);
});

test("events of earlier versions, which say nothing of their origin, are run", async () => {
  world = await createWorld();
  await world.store.inbox.accept(message("hello"));
  await world.restart({ rules: { allow: [guild] } }).recover("fake");
  await vi.waitFor(() => {
    expect(world.platform.replies).toMatchObject([{ state: "finished" }]);
  });
});

describe("somebody whom the rules refuse", () => {
  const denied: Actor = { ...bo, origin: guest };
  const refusal = { code: "access-denied", detail: { because: "denied" } };

  test("cannot retry what somebody else asked; others can", async () => {
    world = await createWorld({ rules: { deny: ["discord:user:7"] } });
    world.gateway.answerWith(async function* broken() {
      yield { kind: "text", text: "half" };
      throw new ParleyError("gateway-interrupted", "cut");
    });
    const event = await world.ask("hello");
    await expect(world.assistant.retry(event.key, denied)).rejects.toMatchObject(refusal);
    expect(world.gateway.requests).toHaveLength(1);
    expect(await world.assistant.retry(event.key, bo)).toBe("accepted");
    await vi.waitFor(() => expect(world.gateway.requests).toHaveLength(2));
  });

  test("cannot confirm, also what they asked for themselves", async () => {
    world = await createWorld({ rules: { deny: ["discord:user:7"] } });
    await world.assistant.receive(message("a secret"));
    const event = call("forget", {}, { inConversation: true });
    await world.assistant.receive(event);
    await vi.waitFor(() => expect(world.platform.replies.at(-1)?.confirm).toBeDefined());
    const by: Actor = { ...ada, origin: guest };
    await expect(world.assistant.confirm(event.key, by)).rejects.toMatchObject(refusal);
    expect(JSON.stringify(await world.history.history("fake:c1", { maxMessages: 5 }))).toContain("a secret");
  });

  test("cannot stop an answer; who asked can", async () => {
    world = await createWorld({ rules: { deny: ["discord:user:7"] } });
    world.hang("and so on");
    const talk = message("talk");
    await world.assistant.receive(talk);
    await vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("and so on"));
    await expect(world.assistant.cancel("fake:c1", denied)).rejects.toMatchObject(refusal);
    // Nor can a bystander: only those who asked, and moderators.
    await expect(world.assistant.cancel("fake:c1", bo)).rejects.toMatchObject({ code: "not-permitted" });
    expect(world.platform.replies[0]?.state).not.toBe("finished");
    expect(await world.assistant.cancel("fake:c1", { ...bo, author: talk.author })).toBe(true);
    await vi.waitFor(() => expect(world.platform.replies[0]?.notices).toEqual(["Stopped."]));
  });
});
