import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toDetails } from "../../../../src/assistant/actions/details.ts";
import type { Actor } from "../../../../src/core/access.ts";
import { isParleyError } from "../../../../src/core/errors.ts";
import { boundedReceipt } from "../../../../src/assistant/turn/turn.ts";
import type { Receipt } from "../../../../src/core/receipt.ts";
import type { ReplyAction } from "../../../../src/core/press.ts";
import { ada, call, message } from "../../../support/fakes.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

describe("the text of details", () => {
  const name = fc.string({ unit: "grapheme", maxLength: 400 });
  const count = fc.integer({ min: 0, max: 2_000_000_000 });
  const usage = fc.record(
    {
      promptTokens: count,
      completionTokens: count,
      images: count,
      audioSeconds: count,
      costUsd: fc.double({ min: 0, max: 1e6, noNaN: true }),
      isEstimated: fc.boolean(),
    },
    { requiredKeys: ["isEstimated"] },
  );
  const receipt: fc.Arbitrary<Receipt> = fc.record(
    {
      calls: fc.array(
        fc.record(
          {
            operation: fc.constantFrom("chat" as const, "image" as const, "transcription" as const),
            asked: name,
            fallback: name,
            model: name,
            usage,
          },
          { requiredKeys: ["operation", "asked"] },
        ),
        { maxLength: 30 },
      ),
      context: fc.record({
        messages: count,
        leftOut: count,
        estimatedTokens: count,
        images: count,
        leftOutImages: count,
      }),
      files: fc.record({ read: count, unread: count, of: fc.array(name, { maxLength: 60 }) }),
      temperature: fc.double({ min: 0, max: 2, noNaN: true }),
      maxTokens: count,
      firstTextMs: count,
      totalMs: count,
    },
    { requiredKeys: ["calls", "totalMs"] },
  );

  const files = fc.array(fc.record({ name, unread: name }, { requiredKeys: ["name"] }), { maxLength: 60 });

  test("a receipt is below 20 KB whatever came in, and its text fits into one message of Discord", () => {
    fc.assert(
      fc.property(receipt, files, (given, named) => {
        const bounded = boundedReceipt(given);
        expect(Buffer.byteLength(JSON.stringify(bounded))).toBeLessThan(20_000);
        expect(boundedReceipt(bounded)).toEqual(bounded);
        const text = toDetails(bounded, named);
        expect(text.length).toBeLessThan(1900);
        // Names stay inside their code spans, since an odd number of backticks would end one.
        for (const line of text.split("\n")) expect((line.match(/`/g) ?? []).length % 2).toBe(0);
      }),
    );
  });

  test("the cost of several calls is summed, and calls without a price are counted", () => {
    const text = toDetails({
      calls: [
        {
          operation: "transcription",
          asked: "w",
          model: "w",
          usage: { audioSeconds: 90, isEstimated: false },
        },
        { operation: "chat", asked: "m", model: "m", usage: { costUsd: 1.5, isEstimated: true } },
      ],
      totalMs: 200_000,
    });
    expect(text).toContain("Before it: 1 recording transcribed by `w`, 1.5 min");
    expect(text).toContain("Cost in all: $1.50 (estimated), without 1 call of unknown price");
    expect(text).toContain("Time: 3 min 20 s");
  });
});

const bo: Actor = {
  platform: "fake",
  author: { id: "fake:bo", name: "Bo" },
  origin: { user: "fake:user:bo", isMember: true, isManager: false },
};

describe("Details of an answer", () => {
  const world = worldOfEachTest({
    rules: { deny: ["fake:user:eve"] },
    files: { a: new TextEncoder().encode("some words"), z: new Uint8Array([1, 2, 3, 0, 9, 200]) },
  });

  async function answered(text: string, more: Parameters<typeof message>[1] = {}): Promise<ReplyAction> {
    const before = world.platform.replies.length;
    await world.answered(message(text, more));
    const action = world.platform.replies[before]?.actions.find(({ kind }) => kind === "details");
    if (action === undefined) throw new Error("the answer has no button");
    return action;
  }

  async function detailsOf(action: ReplyAction, by = bo): Promise<string> {
    const result = await world.assistant.press(action, by);
    return result.kind === "told" ? result.markdown : result.kind;
  }

  test("say model, tokens, cost, time and context, to anybody who is allowed", async () => {
    world.gateway.answerWith(async function* answer(request) {
      yield { kind: "text", text: "Oslo" };
      yield {
        kind: "finish",
        reason: "stop",
        model: request.model,
        usage: { promptTokens: 1200, completionTokens: 34, costUsd: 0.00123, isEstimated: false },
      };
    });
    await answered("What is the capital of Norway?");
    const text = await detailsOf(await answered("Again?"));
    expect(text).toContain("Model: `chatty`");
    expect(text).toContain("1,200 tokens in the prompt, 34 in the answer");
    expect(text).toContain("Cost: $0.0012");
    expect(text).toMatch(/Time: first words after (under )?\d.\d s, (under )?\d.\d s in all/);
    expect(text).toContain("Context: 3 messages, about ");
    expect(text).toContain("nothing left out");
  });

  test("mark what is estimated, and name a fallback and a model without a price", async () => {
    world.gateway.answerWith(async function* answer() {
      yield { kind: "text", text: "Oslo" };
      yield {
        kind: "finish",
        reason: "stop",
        model: "spare-2026",
        fallback: "spare",
        usage: { promptTokens: 12, completionTokens: 3, isEstimated: true },
      };
    });
    const text = await detailsOf(await answered("What is the capital of Norway?"));
    expect(text).toContain(
      "Model: `spare-2026` (asked for `chatty`; it did not answer, so this is the fallback)",
    );
    expect(text).toContain("(estimated)");
    expect(text).toContain("Cost: $0.00041 (estimated: the model has no price, so a high one counts)");
  });

  test("list files that were read and not read, and transcriptions", async () => {
    const attachments = [
      { id: "a", name: "notes.txt", source: {} },
      { id: "z", name: "`odd` <@1>.bin", source: {} },
    ];
    const text = await detailsOf(await answered("Look", { attachments }));
    expect(text).toContain("Files: 1 read, 1 not read: ");
    expect(text).toContain("`notes.txt`");
    expect(text).toContain("`'odd' <@1>.bin` **not read**");
  });

  test("no longer name the files of a question that was deleted", async () => {
    const attachments = [{ id: "a", name: "notes.txt", source: {} }];
    const asked = await world.ask("Look", { attachments });
    await world.assistant.changed({ kind: "delete-messages", conversationId: "fake:c1", keys: [asked.key] });
    const text = await detailsOf(world.platform.replies[0]!.actions.find(({ kind }) => kind === "details")!);
    expect(text).toMatch(/Files: 1 read$/m);
  });

  test("are there for drawn pictures", async () => {
    await world.answered(call("imagine", { prompt: "a fox" }));
    const action = world.platform.replies[0]?.actions.find(({ kind }) => kind === "details");
    const text = await detailsOf(action!);
    expect(text).toContain("Drawn by: `chatty`");
    expect(text).toContain("1 picture (estimated)");
  });

  test("are refused to a denied person", async () => {
    const action = await answered("Why?");
    const eve = { ...bo, origin: { ...bo.origin!, user: "fake:user:eve" } };
    await expect(world.assistant.press(action, eve)).rejects.toMatchObject({ code: "access-denied" });
  });

  test.each(["", "nonsense", "other:c1 fake:1/assistant/1", "fake:c1 fake:none/assistant/1", "a b c"])(
    "of the key %j are gone",
    async (key) => {
      expect(await detailsOf({ kind: "details", key })).toBe("gone");
    },
  );

  test("are stored with the answer, in one write, and exported", async () => {
    await answered("Why?");
    const [, stored] = await world.store.conversations.recent("fake:c1", { maxMessages: 9 });
    expect(stored?.receipt).toMatchObject({
      calls: [{ operation: "chat", asked: "chatty", model: "chatty" }],
      context: { messages: 1, leftOut: 0 },
    });
    const { files } = await world.store.exportConversation("fake:c1");
    const json = files.find(({ name }) => name === "conversation.json");
    expect((await buffer(json!.read())).toString()).toContain('"receipt"');
  });

  test("of a stopped answer say that it did not arrive completely", async () => {
    world.gateway.answerWith(async function* answer(_request, signal) {
      yield { kind: "text", text: "Once upon" };
      await new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      });
    });
    const asked = message("A story");
    await world.assistant.receive(asked);
    await expect.poll(() => world.platform.replies[0]?.text).toBe("Once upon");
    await world.assistant.press({ kind: "stop", key: "fake:c1" }, ada);
    await world.settled();
    const action = world.platform.replies[0]?.actions.find(({ kind }) => kind === "details");
    expect(await detailsOf(action!)).toContain("its answer did not arrive completely");
  });
});

const person = (name: string): Actor => ({
  platform: "fake",
  author: { id: `fake:${name}`, name },
  origin: { user: `fake:user:${name}`, isMember: true, isManager: false },
});

describe("a rating of an answer", () => {
  const world = worldOfEachTest({ rules: { deny: ["fake:user:eve"] } });

  async function answered(): Promise<string> {
    await world.answered(message("hello"));
    const details = world.platform.replies[0]?.actions.find(({ kind }) => kind === "details");
    return details?.key ?? "";
  }

  test("is stored with the answer without the name of whom it is from", async () => {
    const key = await answered();
    expect(await world.assistant.press({ kind: "good", key }, person("benedikt"))).toMatchObject({
      kind: "told",
    });
    expect(await world.assistant.press({ kind: "good", key }, person("benedikt"))).toMatchObject({
      kind: "told",
    });
    expect(await world.assistant.press({ kind: "bad", key }, person("cleopatra"))).toMatchObject({
      kind: "told",
    });
    const [conversationId = ""] = key.split(" ");
    const [answer] = (await world.store.conversations.recent(conversationId, { maxMessages: 5 })).filter(
      ({ role }) => role === "assistant",
    );
    expect(Object.values(answer?.ratings ?? {})).toEqual(["good", "bad"]);
    expect(JSON.stringify(answer?.ratings)).not.toMatch(/benedikt|cleopatra/);
  });

  test("by the button of an attempt that another one has replaced is none", async () => {
    const key = await answered();
    expect(await world.assistant.press({ kind: "good", key: `${key} 2` }, person("bo"))).toEqual({
      kind: "gone",
    });
    expect(await world.assistant.press({ kind: "good", key: `${key} 1` }, person("bo"))).toMatchObject({
      kind: "told",
    });
  });

  test("of what is not stored, or of another platform, is none; whom the rules refuse is refused", async () => {
    const key = await answered();
    expect(await world.assistant.press({ kind: "good", key: "fake:none /x/answer" }, person("bo"))).toEqual({
      kind: "gone",
    });
    expect(await world.assistant.press({ kind: "good", key: "no key" }, person("bo"))).toEqual({
      kind: "gone",
    });
    expect(
      await world.assistant.press({ kind: "good", key }, { ...person("bo"), platform: "other" }),
    ).toEqual({ kind: "gone" });
    await expect(world.assistant.press({ kind: "good", key }, person("eve"))).rejects.toSatisfy((error) =>
      isParleyError(error, "access-denied"),
    );
  });
});
