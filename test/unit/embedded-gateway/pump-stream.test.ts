import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import type { SseWriter } from "../../../src/support/http/event-stream.ts";
import { answerLimitsOf } from "../../../src/wire/stream-frames.ts";
import type { UpstreamConfig } from "../../../src/embedded-gateway/gateway-config.ts";
import { pumpStream } from "../../../src/embedded-gateway/upstreams/forward-chat.ts";
import type {
  UpstreamAnswer,
  UpstreamUsage,
} from "../../../src/embedded-gateway/upstreams/upstream-client.ts";
import { createQuietLog } from "../../support/quiet-log.ts";

const upstream = {} as UpstreamConfig;
const target = { publicId: "up/small", prefix: "up", upstream, upstreamModel: "small", model: undefined };
const event = (delta: object) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`;

const toBody = (text: string) => Readable.from([Buffer.from(text)]);

function pump(body: Readable, send: (data: string) => Promise<void> | undefined) {
  const usages: UpstreamUsage[] = [];
  const writer: SseWriter = { send, push: () => {}, end: () => {} };
  const options: Parameters<typeof pumpStream>[1] = {
    target,
    signal: new AbortController().signal,
    log: createQuietLog(),
    limits: answerLimitsOf(100, 0),
    maxEventBytes: 1_000_000,
    open: () => writer,
    wantsUsage: false,
    estimatedPromptTokens: 7,
    onUsage: (usage) => void usages.push(usage),
  };
  const answer = { headers: { "content-type": "text/event-stream" }, body } as unknown as UpstreamAnswer;
  return { done: pumpStream(answer, options), usages };
}

describe("pumpStream", () => {
  // A rejection that nobody handles fails the run, as it would end the process.
  it.each(["data: {oops\n\n", 'data: {"error":{"message":"x"}}\n\n', ""])(
    "survives that its last event %j does not reach the client",
    async (last) => {
      const sent: string[] = [];
      const { done, usages } = pump(toBody(event({ content: "half" }) + last), (data) => {
        sent.push(data);
        return sent.length > 1 ? Promise.reject(new Error("client disconnected or stalled")) : undefined;
      });
      await done;
      await new Promise((resolve) => setImmediate(resolve));
      expect(sent).toHaveLength(2);
      expect(usages).toEqual([{ promptTokens: 7, completionTokens: 1 }]);
    },
  );

  it("ignores what an upstream sends after the answer was cut", async () => {
    const sent: string[] = [];
    const body = toBody(event({ content: "x".repeat(100_000) }).repeat(3) + "data: {oops\n\n");
    const { done } = pump(body, (data) => void sent.push(data));
    await done;
    expect(sent).toHaveLength(2);
    expect(sent[0]).toContain('"finish_reason":"length"');
    expect(sent[1]).toBe("[DONE]");
    expect(body.destroyed).toBe(true);
  });
});
