import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parseTitle } from "../../../../src/assistant/turn/make-title.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { ChatRequest } from "../../../../src/core/gateway.ts";
import { createWorld, type World } from "../../../support/assistant-world.ts";

let world: World;
let titled: string[];
let titleRequests: ChatRequest[];
/** What the model writes as a title. An error is thrown. */
let written: string | ParleyError;
/** It is awaited before the title is written. */
let meanwhile: () => Promise<unknown>;

beforeEach(async () => {
  world = await createWorld();
  [titled, titleRequests, written, meanwhile] = [[], [], "Names for a Parrot", () => Promise.resolve()];
  world.assistant.addPlatform({
    ...world.platform.platform,
    titled: (conversationId) => void titled.push(conversationId),
  });
  world.gateway.answerWith(async function* answer(request) {
    const [first] = request.messages;
    let text = "Rio and Kiwi.";
    if (typeof first?.content === "string" && first.content.startsWith("Write a title")) {
      titleRequests.push(request);
      await meanwhile();
      if (typeof written !== "string") throw written;
      text = written;
    }
    yield { kind: "text", text };
    yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
  });
});
afterEach(async () => {
  await world.close();
});

async function ask(text: string): Promise<string> {
  const event = await world.ask(text);
  return event.key;
}
const titleNow = async () => (await world.store.conversations.settings("fake:c1")).title;

describe("the title of a conversation", () => {
  it("is made by the model of the first question and its answer, once", async () => {
    await ask("Three names for a parrot?");
    await vi.waitFor(() => expect(titled).toEqual(["fake:c1"]));
    expect(await titleNow()).toBe("Names for a Parrot");
    await ask("And for a cat?");
    expect(titleRequests).toHaveLength(1);
    const [request] = titleRequests;
    expect(request).toMatchObject({ model: "chatty", stream: false, isAside: true });
    expect(request?.messages.at(-1)?.content).toBe(
      "Question:\n> Three names for a parrot?\n\nAnswer:\n> Rio and Kiwi.",
    );
  });

  it("stays the first words where the model fails or writes none, and the name that people gave", async () => {
    for (const one of [new ParleyError("gateway-unreachable", "away"), "\n\n"]) {
      written = one;
      await world.store.erasure.deleteConversation("fake:c1");
      const before = titleRequests.length;
      await ask("Three names for a parrot?");
      await vi.waitFor(() => expect(titleRequests).toHaveLength(before + 1));
    }
    await world.store.conversations.saveSettings("fake:c2", { name: "Birds" });
    await world.ask("Names?", { conversationId: "fake:c2" });
    expect(await titleNow()).toBeUndefined();
    expect(titled).toEqual([]);
    expect(titleRequests).toHaveLength(2);
  });

  it("says nothing of a question that is deleted while the model writes it", async () => {
    const { conversations } = world.store;
    const save = vi.spyOn(conversations, "saveSettings");
    written = "My Secret";
    const remove = (key: string) =>
      world.store.erasure.removeMessages("fake:c1", { ids: [`${key}/user`], shownAs: [] });
    const answer = Promise.withResolvers<undefined>();
    meanwhile = () => answer.promise;
    const first = await ask("my secret");
    await vi.waitFor(() => expect(titleRequests).toHaveLength(1));
    const look = vi.spyOn(conversations, "find");
    await remove(first);
    answer.resolve(undefined);
    await vi.waitFor(() => expect(look).toHaveBeenCalled());
    await world.store.erasure.deleteConversation("fake:c1");
    expect(save).not.toHaveBeenCalled();
    expect(titled).toEqual([]);
  });
});

it.each([
  ["Names for a Parrot", "Names for a Parrot"],
  ['"Names for a Parrot."', "Names for a Parrot"],
  ["**Title: Names for a Parrot**\nIt suits.", "Names for a Parrot"],
  ["\n\n# 「オウムの名前」", "オウムの名前"],
  ["…", "…"],
  ["", ""],
  ["word ".repeat(40), "word word word word word word word word word word word…"],
])("of %j the title is %j", (text, title) => {
  expect(parseTitle(text)).toBe(title);
});
