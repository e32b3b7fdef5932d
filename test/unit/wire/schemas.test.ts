import { describe, expect, it } from "vitest";
import { checkPictureUrl, generatedPicturesOf } from "../../../src/wire/pictures.ts";
import {
  chatRequestSchema,
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
      expect(checkPictureUrl(url)).toMatch(/^(?:must be|holds) /);
    },
  );

  it.each([
    "https://example.com/a.png",
    "data:image/png;base64,iVBORw0KGgo=",
    "DATA:image/svg+xml;base64,AA",
  ])("take the image address %s", (url) => {
    expect(checkPictureUrl(url)).toBeUndefined();
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
    const [picture] = generatedPicturesOf([{ url: "https://x/y", revised_prompt: 3, seed: 7 }]) ?? [];
    expect(picture).toEqual({ url: "https://x/y", revised_prompt: undefined, b64_json: undefined, seed: 7 });
  });

  it("drop invalid list items one by one", () => {
    const list = modelListSchema.parse({
      data: [{ id: "a" }, { name: "no id" }, 7, { id: "b", created: "x" }],
    });
    expect(list.data.map((model) => model.id)).toEqual(["a", "b"]);
    expect(generatedPicturesOf({ data: [{}, { url: "https://x/y" }] })).toHaveLength(1);
  });

  it("accept a duration as text", () => {
    expect(transcriptionSchema.parse({ text: "t", duration: "2.5" }).duration).toBe(2.5);
  });
});
