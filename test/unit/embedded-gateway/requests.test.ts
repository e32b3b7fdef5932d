import { describe, expect, it } from "vitest";
import { ApiError } from "../../../src/embedded-gateway/api-error.ts";
import { parseChatBody, parseImageBody } from "../../../src/embedded-gateway/requests.ts";

const messages = [{ role: "user", content: "hello" }];
const chat = (change: Record<string, unknown>): unknown => ({ model: "sandbox/chat", messages, ...change });
const withPart = (part: unknown): unknown => chat({ messages: [{ role: "user", content: [part] }] });
const withImage = (url: unknown): unknown => withPart({ type: "image_url", image_url: { url } });

function problemOf(work: () => unknown): {
  param: string | undefined;
  code: string | undefined;
  message: string;
} {
  try {
    work();
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return error;
    throw error;
  }
  throw new Error("It was accepted.");
}

describe("parseChatBody", () => {
  it("fills in the specification's defaults and keeps unknown fields", () => {
    expect(parseChatBody(chat({ seed: 7 }))).toMatchObject({
      max_tokens: 1024,
      temperature: 1,
      stream: false,
      seed: 7,
    });
  });

  it("accepts the newer name of the length limit", () => {
    expect(parseChatBody(chat({ max_completion_tokens: 9 })).max_tokens).toBe(9);
  });

  it.each([
    [{}, "model", "missing_required_parameter"],
    [{ model: "", messages }, "model", "invalid_value"],
    [{ model: 5, messages }, "model", "invalid_type"],
    [{ model: "sandbox/chat" }, "messages", "missing_required_parameter"],
    [chat({ messages: [] }), "messages", "invalid_value"],
    [chat({ messages: "hello" }), "messages", "invalid_type"],
    [chat({ temperature: 2.1 }), "temperature", "invalid_value"],
    [chat({ temperature: -0.1 }), "temperature", "invalid_value"],
    [chat({ temperature: "1" }), "temperature", "invalid_type"],
    [chat({ max_tokens: 0 }), "max_tokens", "invalid_value"],
    [chat({ max_tokens: 1.5 }), "max_tokens", "invalid_type"],
    [chat({ max_completion_tokens: 0 }), "max_completion_tokens", "invalid_value"],
    [chat({ stream: "yes" }), "stream", "invalid_type"],
    [chat({ messages: [{ role: "robot", content: "x" }] }), "messages[0].role", "invalid_value"],
    [chat({ messages: [{ role: "user" }] }), "messages[0].content", "missing_required_parameter"],
    [chat({ messages: [{ role: "user", content: [] }] }), "messages[0].content", "invalid_value"],
    [chat({ messages: [...messages, { role: "user", content: 5 }] }), "messages[1].content", "invalid_value"],
    [withPart({ type: "video" }), "messages[0].content[0].type", "invalid_value"],
    [withPart({ type: "text" }), "messages[0].content[0].text", "missing_required_parameter"],
    [withPart({ type: "image_url", image_url: "x" }), "messages[0].content[0].image_url", "invalid_type"],
  ])("refuses %j", (body, param, code) => {
    const problem = problemOf(() => parseChatBody(body));
    expect(problem).toMatchObject({ param, code });
    expect(problem.message).toContain(`'${param}'`);
  });

  it.each([null, [], "text", 5])("rejects %j, which is no object", (body) => {
    expect(problemOf(() => parseChatBody(body)).message).toContain("JSON object");
  });

  it.each([
    "data:image/png;base64,%%%",
    "data:image/png;base64,",
    "data:image/png;base64,AAAAA",
    "data:image/png,plain",
    "data:text/plain;base64,aaaa",
    "ftp://example.com/a.png",
    "no address",
    "http://user:word@example.com/a.png",
    "http://127.0.0.1/a.png",
    "http://localhost:3000/a.png",
    "http://2130706433/a.png",
    "http://0x7f.1/a.png",
    "http://[::1]/a.png",
    "http://[::ffff:10.0.0.1]/a.png",
    "http://[64:ff9b::a00:1]/a.png",
    "http://169.254.169.254/latest/meta-data",
    "https://metadata.google.internal/",
    "http://router/a.png",
  ])("refuses the image address %s and names its parameter", (url) => {
    expect(problemOf(() => parseChatBody(withImage(url))).param).toBe("messages[0].content[0].image_url.url");
  });

  it.each(["https://example.com/a.png", "http://93.184.216.34/a.png", "data:image/png;base64,AAAA"])(
    "accepts the image address %s",
    (url) => {
      expect(() => parseChatBody(withImage(url))).not.toThrow();
    },
  );
});

describe("parseImageBody", () => {
  it.each([
    [{ model: "sandbox/image" }, "prompt"],
    [{ model: "sandbox/image", prompt: "" }, "prompt"],
    [{ model: "sandbox/image", prompt: "x", n: 0 }, "n"],
    [{ model: "sandbox/image", prompt: "x", n: 11 }, "n"],
    [{ model: "sandbox/image", prompt: "x", n: 1.5 }, "n"],
    [{ model: "sandbox/image", prompt: "x", size: "big" }, "size"],
    [{ model: "sandbox/image", prompt: "x", size: "0x100" }, "size"],
    [{ model: "sandbox/image", prompt: "x", size: "99999x1" }, "size"],
    [{ model: "sandbox/image", prompt: "x", response_format: "gif" }, "response_format"],
  ])("refuses %j", (body, param) => {
    expect(problemOf(() => parseImageBody(body)).param).toBe(param);
  });
});
