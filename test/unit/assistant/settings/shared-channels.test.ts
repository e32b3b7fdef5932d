import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Origin } from "../../../../src/core/events.ts";
import { createWorld, type World } from "../../../support/assistant-world.ts";
import { call } from "../../../support/fakes.ts";

let world: World;
const models = ["chatty", "clever", "quick"].map((id) => ({ id, capabilities: { chats: true } }));

beforeEach(async () => {
  world = await createWorld({ models });
});

afterEach(async () => {
  await world.close();
});

const originIn = (workspace: string, isManager = false): Origin => ({
  user: "fake:user:ada",
  server: `fake:guild:${workspace}`,
  channel: "fake:channel:1",
  channelPlace: `fake:channel:${workspace}:1`,
  isMember: true,
  isManager,
});

/** Sets the model of the channel in a workspace, as a manager. */
async function set(workspace: string, value: string): Promise<void> {
  const origin = originIn(workspace, true);
  const options = { name: "chat-model", value, for: "channel" };
  await world.answered(
    call("settings", options, { origin, isPrivate: true, conversationId: `fake:${workspace}` }),
  );
}

/** Returns the model that answers in the channel, as a workspace sees it. */
async function askIn(workspace: string): Promise<string> {
  const where = { origin: originIn(workspace), conversationId: `fake:${workspace}` };
  await world.ask("one", where);
  return world.gateway.requests.at(-1)?.model ?? "none";
}

describe("a channel that several workspaces share", () => {
  it("has settings in each of them", async () => {
    await set("a", "clever");
    expect([await askIn("a"), await askIn("b")]).toEqual(["clever", "chatty"]);
    await set("b", "quick");
    expect([await askIn("a"), await askIn("b")]).toEqual(["clever", "quick"]);
    await world.assistant.changed({ kind: "delete-place", place: "fake:channel:a:1" });
    expect([await askIn("a"), await askIn("b")]).toEqual(["chatty", "quick"]);
  });

  it("has budgets in each of them", async () => {
    await world.close();
    world = await createWorld({
      models,
      prices: { chatty: { inputPerMillionUsd: 1e6, outputPerMillionUsd: 1e6 } },
    });
    expect(await askIn("a")).toBe("chatty");
    const spentIn = async (id: string) =>
      (await world.store.spending.spent({ kind: "place", id }, world.clock.now())).spentUsd;
    expect(await spentIn("fake:channel:a:1")).toBeGreaterThan(0);
    expect([await spentIn("fake:channel:b:1"), await spentIn("fake:channel:1")]).toEqual([0, 0]);
  });
});
