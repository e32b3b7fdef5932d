import { expect, test } from "vitest";
import { createTracedReply, streamAnswer } from "../../../../src/assistant/turn/stream-answer.ts";
import type { ChatEvent } from "../../../../src/core/gateway.ts";
import type { Reply } from "../../../../src/core/reply.ts";
import { noSpan } from "../../../../src/core/telemetry.ts";

function replyWith(more: Partial<Reply>): Reply {
  return {
    show: () => Promise.resolve(),
    status() {},
    write() {},
    attach: () => Promise.resolve(),
    finish: () => Promise.resolve(),
    fail: () => Promise.resolve(),
    abandon() {},
    ...more,
  };
}

async function answerWith(
  events: Iterable<ChatEvent>,
  write: Reply["write"],
  shown: Promise<void> = Promise.resolve(),
): Promise<boolean> {
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
      reply: replyWith({ write }),
      ready: shown,
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

test.each([
  ["that ends", [finish]],
  ["that breaks off", []],
] as const)("an answer %s leaves no writing direction open", async (_how, end) => {
  const written: string[] = [];
  const events: ChatEvent[] = [
    { kind: "text", text: "one \u202Etwo\nthree " },
    { kind: "text", text: "\u2067four" },
    ...end,
  ];
  await answerWith(events, (content) => void written.push(content.text));
  expect(written.at(-1)).toBe("one \u202Etwo\u202C\nthree \u2067four\u2069");
});

test("a request that fails before the placeholder is up is nobody's unhandled rejection", async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => {
    unhandled.push(error);
  };
  process.on("unhandledRejection", note);
  // eslint-disable-next-line require-yield -- it fails before it has anything
  function* failing(): Generator<ChatEvent> {
    throw new Error("refused");
  }
  const { promise: shown, resolve } = Promise.withResolvers<undefined>();
  const answering = answerWith(failing(), () => {}, shown);
  // Node reports unhandled rejections once the microtasks are done.
  await new Promise((done) => setImmediate(done));
  await new Promise((done) => setImmediate(done));
  resolve(undefined);
  await answering;
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});

test("a reply that is traced keeps the replaced answers that people can look at", () => {
  const traced = createTracedReply(
    replyWith({ showsVersions: true }),
    { isOn: true, start: () => noSpan },
    noSpan,
  );
  expect(traced.showsVersions).toBe(true);
});
