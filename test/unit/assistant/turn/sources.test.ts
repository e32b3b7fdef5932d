import { describe, expect, it } from "vitest";
import type { AnswerSource, ChatEvent } from "../../../../src/core/gateway.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import { messageIds } from "../../../../src/core/message-ids.ts";
import { message } from "../../../support/fakes.ts";
import { leaveEnded } from "../../../support/left-turns.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

const one = { url: "https://pages.example/1", title: "One" };
const two = { url: "https://pages.example/2" };
const three = { url: "https://pages.example/3" };
const ada = { platform: "fake", author: { id: "fake:ada", name: "Ada" } };

interface Answer {
  readonly text: string;
  readonly reason?: "stop" | "length";
  readonly sources?: readonly AnswerSource[];
  readonly breaksOff?: true;
}

describe("the sources of an answer", () => {
  const world = worldOfEachTest();

  function answers(...all: readonly Answer[]): void {
    const left = [...all];
    world.gateway.answerWith(async function* scripted({ model }): AsyncIterable<ChatEvent> {
      const { text, reason = "stop", sources, breaksOff } = left.shift()!;
      yield { kind: "text", text };
      if (breaksOff === true) throw new ParleyError("gateway-interrupted", "broke off");
      const usage = { isEstimated: false };
      yield { kind: "finish", reason, model, usage, ...(sources === undefined ? {} : { sources }) };
    });
  }

  const storedAnswer = async (key: string) =>
    await world.store.conversations.find("fake:c1", messageIds.answer(key));

  async function press(kind: "continue" | "regenerate"): Promise<void> {
    expect(await world.assistant.press(world.button(kind), ada)).toEqual({ kind: "done" });
    await world.settled();
  }

  it("are stored with it and shown below it; a continuation adds its own, another answer has none", async () => {
    answers(
      { text: "One two", reason: "length", sources: [one, two] },
      { text: " three.", sources: [two, three] },
      { text: "Another answer." },
    );
    const { key } = await world.ask("Count.");
    expect(world.platform.replies[0]?.sources).toEqual([one, two]);
    expect((await storedAnswer(key))?.sources).toEqual([one, two]);
    await press("continue");
    expect(world.platform.replies[0]).toMatchObject({ text: "One two three.", sources: [one, two, three] });
    expect((await storedAnswer(key))?.sources).toEqual([one, two, three]);
    expect(JSON.stringify(world.gateway.requests)).not.toContain("pages.example");
    await press("regenerate");
    expect(world.platform.replies[0]).toMatchObject({ text: "Another answer.", sources: undefined });
    expect((await storedAnswer(key))?.sources).toBeUndefined();
  });

  it("stay with words whose continuation breaks off", async () => {
    answers({ text: "One two", reason: "length", sources: [one] }, { text: " three", breaksOff: true });
    const { key } = await world.ask("Count.");
    await press("continue");
    expect(world.platform.replies[0]?.sources).toEqual([one]);
    expect((await storedAnswer(key))?.sources).toEqual([one]);
  });

  it("are shown again after a crash between storing and showing the answer", async () => {
    const event = message("Count.");
    await world.leaveBegun([event], { message: 1 });
    await leaveEnded(world.store.inbox, event, {
      parts: [{ kind: "text", text: "One." }],
      sources: [one, two],
    });
    expect(await world.recover()).toBe(1);
    expect(world.platform.replies.at(-1)).toMatchObject({ text: "One.", sources: [one, two] });
  });
});
