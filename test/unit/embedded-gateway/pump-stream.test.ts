import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import type { SseWriter } from "../../../src/support/http/event-stream.ts";
import type { UpstreamConfig } from "../../../src/embedded-gateway/gateway-config.ts";
import { pumpStream } from "../../../src/embedded-gateway/upstreams/forward-chat.ts";
import type { UpstreamAnswer } from "../../../src/embedded-gateway/upstreams/upstream-client.ts";

const upstream = {} as UpstreamConfig;
const target = { publicId: "up/small", prefix: "up", upstream, upstreamModel: "small", model: undefined };
const event = (delta: object) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`;

const toBody = (text: string) => Readable.from([Buffer.from(text)]);

function pump(
  body: Readable,
  send: (data: string) => Promise<void> | undefined,
  toFailure?: (info: unknown) => Error,
) {
  const writer: SseWriter = { send, sendInPieces: async () => {}, push: () => {}, end: () => {} };
  const options: Parameters<typeof pumpStream>[1] = {
    target,
    signal: new AbortController().signal,
    maxWholeBytes: 1_000_000,
    maxBytes: 250_000,
    open: () => writer,
    wantsUsage: false,
    hasOneChoice: true,
  };
  const headers = { "content-type": "text/event-stream" };
  const answer = { headers, body, toFailure } as unknown as UpstreamAnswer;
  return { done: pumpStream(answer, options) };
}

// Attack: End the gateway's process from an upstream. What holds: no promise or stream without a
// handler; headers that cannot be sent are dropped.
describe("pumpStream", () => {
  // A rejection that nobody handles fails the run, as it would end the process.
  it.each(["data: {oops\n\n", 'data: {"error":{"message":"x"}}\n\n', ""])(
    "survives that its last event %j does not reach the client",
    async (last) => {
      const sent: string[] = [];
      const { done } = pump(toBody(event({ content: "half" }) + last), (data) => {
        sent.push(data);
        return sent.length > 1 ? Promise.reject(new Error("client disconnected or stalled")) : undefined;
      });
      await done;
      await new Promise((resolve) => setImmediate(resolve));
      expect(sent).toHaveLength(2);
    },
  );

  it("ends an answer over its limit with an error, and the upstream's request", async () => {
    const sent: string[] = [];
    const one = Buffer.from(event({ content: "x".repeat(100_000) }));
    const body = Readable.from([one, one, one, Buffer.from("data: [DONE]\n\n")]);
    const { done } = pump(body, (data) => void sent.push(data));
    await done;
    expect(sent.at(-1)).toContain("upstream_too_large");
    expect(sent.join()).not.toMatch(/finish_reason|\[DONE\]/);
    expect(body.destroyed).toBe(true);
  });

  it.each([
    ["from 0", [0, 1, 2, 3]],
    ["from 1", [1, 2, 3, 4]],
    ["two events", [0, 1]],
    ["always 1", [1, 1, 1]],
    ["long", Array.from({ length: 40 }, (_, index) => index)],
  ])("sends one choice where an upstream numbers its events: %s", async (_, indexes) => {
    const sent: string[] = [];
    const body = indexes.map((index, at) => {
      const isLast = at === indexes.length - 1;
      const choice = { index, delta: { content: `${at} ` }, finish_reason: isLast ? "stop" : null };
      return `data: ${JSON.stringify({ id: "c", choices: [choice] })}\n\n`;
    });
    const { done } = pump(toBody(`${body.join("")}data: [DONE]\n\n`), (data) => void sent.push(data));
    await done;
    expect(sent.pop()).toBe("[DONE]");
    const choices = sent.flatMap(
      (data) => (JSON.parse(data) as { choices: Record<string, never>[] }).choices,
    );
    expect(choices.every(({ index }) => index === 0)).toBe(true);
    const texts = choices.map(({ delta }) => (delta as unknown as { content: string }).content);
    expect(texts.join("")).toBe(indexes.map((__, at) => `${at} `).join(""));
    expect(choices.map(({ finish_reason: reason }) => reason).filter(Boolean)).toEqual(["stop"]);
  });

  it.each([
    ["a line error:", 'error: {"code":400,"message":"too many tokens"}\n\n'],
    ["a bare line of JSON", '{"error":{"code":400,"message":"too many tokens"}}\n\n'],
    ["code and message", 'data: {"code":400,"message":"too many tokens","choices":[]}\n\n'],
  ])("passes on an error inside a stream: %s", async (_, error) => {
    const failure = new Error("an error of the upstream");
    const told: unknown[] = [];
    const sent: string[] = [];
    const { done } = pump(
      toBody(`: ping\n\n${error}data: [DONE]\n\n`),
      (data) => void sent.push(data),
      (info) => {
        told.push(info);
        return failure;
      },
    );
    await expect(done).rejects.toThrow("interrupted its answer");
    expect(told).toEqual([{ message: "too many tokens", code: "400" }]);
    expect(sent).toEqual([]);
  });
});
