import { expect, test } from "vitest";
import { streamAnswer, type PartialAnswer } from "../../../../src/assistant/turn/stream-answer.ts";
import type { ChatEvent } from "../../../../src/core/gateway.ts";

/** Streams an answer. Returns the groups of pictures that were attached in one tick, and what is kept. */
async function streamPictures(events: Iterable<ChatEvent | Error>) {
  const groups: string[][] = [];
  let current: string[] | undefined;
  async function* chat(): AsyncGenerator<ChatEvent> {
    for (const event of events) {
      await Promise.resolve();
      if (event instanceof Error) throw event;
      yield event;
    }
  }
  const answer: PartialAnswer = { text: "", images: [], notices: [] };
  const streaming = streamAnswer(
    {
      gateway: { chat },
      request: { model: "m", messages: [] },
      reply: {
        show: () => Promise.resolve(),
        status() {},
        write() {},
        async attach({ name }) {
          if (current === undefined) {
            current = [];
            groups.push(current);
            void Promise.resolve().then(() => (current = undefined));
          }
          current.push(name);
          await new Promise((resolve) => setImmediate(resolve));
        },
        finish: () => Promise.resolve(),
        fail: () => Promise.resolve(),
        abandon() {},
      },
      ready: Promise.resolve(),
      lead: "",
      conversations: {
        putBlob: (_, bytes, mediaType) =>
          Promise.resolve({ hash: "h", mediaType, sizeBytes: bytes.byteLength }),
      },
      conversationId: "c",
      altText: "a cat",
      onFirstText() {},
    },
    answer,
    new AbortController().signal,
  );
  await Promise.allSettled([streaming]);
  return { groups, kept: answer.images.map(({ name }) => name) };
}

const image: ChatEvent = { kind: "image", image: { bytes: new Uint8Array(3), mediaType: "image/png" } };
const text: ChatEvent = { kind: "text", text: "Here they are." };
const finish: ChatEvent = { kind: "finish", reason: "stop", model: "m", usage: { isEstimated: true } };
const names = ["picture-1.png", "picture-2.png", "picture-3.png"];

test("the pictures of an answer are attached together", async () => {
  expect(await streamPictures([text, image, image, image, finish])).toEqual({ groups: [names], kept: names });
});

test("pictures are attached as soon as the text goes on", async () => {
  expect(await streamPictures([image, image, text, image, finish])).toEqual({
    groups: [names.slice(0, 2), names.slice(2)],
    kept: names,
  });
});

test("the pictures that arrived before an answer broke off are attached and kept", async () => {
  const { groups, kept } = await streamPictures([image, image, new Error("cut")]);
  expect(groups).toEqual([names.slice(0, 2)]);
  expect(kept).toEqual(names.slice(0, 2));
});
