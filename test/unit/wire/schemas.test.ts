import { describe, expect, it } from "vitest";
import {
  chatChunkSchema,
  chatCompletionSchema,
  chatRequestSchema,
  errorEnvelopeSchema,
  imageAnswerSchema,
  imageRequestSchema,
  modelListSchema,
  transcriptionFieldsSchema,
  transcriptionSchema,
} from "../../../src/wire/schemas.ts";

const messages = [{ role: "user", content: "hello" }];

describe("request schemas", () => {
  it("set the defaults of the specification, also for null", () => {
    expect(chatRequestSchema.parse({ model: "m", messages, temperature: null })).toMatchObject({
      max_tokens: 1024,
      temperature: 1,
      stream: false,
    });
    expect(imageRequestSchema.parse({ model: "m", prompt: "a cat" }).n).toBe(1);
  });

  it.each([
    ["temperature", { temperature: 2.1 }],
    ["temperature", { temperature: -0.1 }],
    ["max_tokens", { max_tokens: 0 }],
    ["max_tokens", { max_tokens: 1.5 }],
    ["messages", { messages: [] }],
    ["messages", { messages: [{ role: "robot", content: "x" }] }],
    ["messages", { messages: [{ role: "user", content: [] }] }],
    ["model", { model: "" }],
    ["model", { model: undefined }],
    ["stream", { stream: "yes" }],
  ])("refuse a chat request whose %s is wrong: %j", (parameter, change) => {
    const parsed = chatRequestSchema.safeParse({ model: "m", messages, ...change });
    expect(parsed.error?.issues[0]?.path[0]).toBe(parameter);
  });

  it.each(["file:///etc/passwd", "data:image/png;base64,", "data:image/png,abc", "nowhere", "https://"])(
    "refuse the image address %s",
    (url) => {
      const content = [{ type: "image_url", image_url: { url } }];
      expect(chatRequestSchema.safeParse({ model: "m", messages: [{ role: "user", content }] }).success).toBe(
        false,
      );
    },
  );

  it.each([
    "https://example.com/a.png",
    "data:image/png;base64,iVBORw0KGgo=",
    "DATA:image/svg+xml;base64,AA",
  ])("take the image address %s", (url) => {
    const content = [{ type: "image_url", image_url: { url } }];
    expect(chatRequestSchema.safeParse({ model: "m", messages: [{ role: "user", content }] }).success).toBe(
      true,
    );
  });

  it.each([{ n: 0 }, { n: 11 }, { size: "big" }, { size: "0x10" }, { size: "9000x10" }, { prompt: "" }])(
    "refuse the image request %j",
    (change) => {
      expect(imageRequestSchema.safeParse({ model: "m", prompt: "p", ...change }).success).toBe(false);
    },
  );

  it("reject an invalid language", () => {
    expect(transcriptionFieldsSchema.safeParse({ model: "m", language: "en" }).success).toBe(true);
    expect(transcriptionFieldsSchema.safeParse({ model: "m", language: "engl ish" }).success).toBe(false);
  });
});

describe("answer schemas", () => {
  it("drop an invalid optional field and keep the rest", () => {
    const parsed = chatCompletionSchema.parse({
      created: "yesterday",
      choices: [{ message: { content: "hi", refusal: 3 }, finish_reason: null }],
      usage: { prompt_tokens: "many", completion_tokens: 2 },
    });
    expect(parsed.created).toBeUndefined();
    expect(parsed.choices[0]?.message.content).toBe("hi");
    expect(parsed.usage).toMatchObject({ prompt_tokens: undefined, completion_tokens: 2 });
  });

  it("drop invalid list items one by one", () => {
    const list = modelListSchema.parse({
      data: [{ id: "a" }, { name: "no id" }, 7, { id: "b", created: "x" }],
    });
    expect(list.data.map((model) => model.id)).toEqual(["a", "b"]);
    expect(imageAnswerSchema.parse({ data: [{}, { url: "https://x/y" }] }).data).toHaveLength(1);
    expect(chatChunkSchema.parse({ choices: [null, { delta: { content: "x" } }] }).choices).toHaveLength(1);
  });

  it("accept a numeric error code and a duration as text", () => {
    expect(errorEnvelopeSchema.parse({ error: { message: "m", code: 429 } }).error.code).toBe(429);
    expect(transcriptionSchema.parse({ text: "t", duration: "2.5" }).duration).toBe(2.5);
  });
});
