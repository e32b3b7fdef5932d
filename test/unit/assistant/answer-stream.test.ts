import { expect, test } from "vitest";
import { streamAnswer } from "../../../src/assistant/answer.ts";
import type { ChatEvent } from "../../../src/assistant/types.ts";

async function answerWith(events: readonly ChatEvent[], write: () => void): Promise<boolean> {
  let isClosed = false;
  async function* chat(): AsyncGenerator<ChatEvent> {
    try {
      yield* events;
    } finally {
      isClosed = true;
      await Promise.resolve();
    }
  }
  const ending = streamAnswer(
    {
      gateway: { chat },
      request: { model: "m", messages: [] },
      reply: {
        show: () => Promise.resolve(),
        status() {},
        write,
        attach: () => Promise.resolve(),
        finish: () => Promise.resolve(),
        fail: () => Promise.resolve(),
        abandon() {},
      },
      shown: Promise.resolve(),
      lead: "",
      conversations: { putBlob: () => Promise.reject(new Error("unused")) },
      conversationId: "c",
      altText: "",
      onFirstText() {},
    },
    { text: "", images: [], notices: [] },
    new AbortController().signal,
  );
  await Promise.allSettled([ending]);
  return isClosed;
}

const text: ChatEvent = { kind: "text", text: "hello" };
const finish: ChatEvent = { kind: "finish", reason: "stop", model: "m", usage: { isEstimated: true } };

test("a stream that has finished is closed, so that its timers and connection end", async () => {
  expect(await answerWith([text, finish], () => {})).toBe(true);
});

test("a stream that cannot be shown is closed too", async () => {
  const broken = () => {
    throw new Error("no place to show it");
  };
  expect(await answerWith([text, finish], broken)).toBe(true);
});
