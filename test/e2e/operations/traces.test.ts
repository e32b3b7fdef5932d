import { afterEach, expect, it } from "vitest";
import { startOtlpReceiver, type OtlpReceiver, type ReceivedSpan } from "../../support/otlp-receiver.ts";
import { startSlackStory, toStream, type SlackStory } from "../slack/slack-story.ts";

let story: SlackStory | undefined;
let collector: OtlpReceiver | undefined;
afterEach(async () => {
  await story?.close();
  await collector?.close();
  story = collector = undefined;
});

const one = (spans: readonly ReceivedSpan[], name: string): ReceivedSpan => {
  const [found, ...others] = spans.filter((span) => span.name === name);
  expect(found, name).toBeDefined();
  expect(others, name).toEqual([]);
  return found!;
};

it("a turn is one trace: message → accept, and turn → gateway and reply", async () => {
  collector = await startOtlpReceiver();
  story = await startSlackStory({
    settings: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_HEADERS: "x-collector-key=secret%20key",
      OTEL_SERVICE_NAME: "team-bot",
    },
    chat: () => ({ ...toStream("It rained."), headers: { "x-request-id": "req-1" } }),
  });
  const ann = story.slack.person("Ann");
  const channel = story.slack.channel("general", [ann]);
  const question = ann.sends({ channel: channel.id, text: "Why is it wet?", mentionBot: true });
  await story.answerTo(channel.id, question);
  const asked = story.requestsTo("/v1/chat/completions")[0];
  await story.close();
  story = undefined;

  const turn = one(collector.spans, "turn");
  const spans = collector.spans.filter(({ traceId }) => traceId === turn.traceId);
  const message = one(spans, "message");
  const gateway = one(spans, "gateway chat");
  const reply = one(spans, "reply");
  expect(message.parentSpanId).toBeUndefined();
  expect(turn.parentSpanId).toBe(message.spanId);
  expect([gateway.parentSpanId, reply.parentSpanId]).toEqual([turn.spanId, turn.spanId]);
  expect(
    spans.filter(({ name }) => name === "accept").every((span) => span.parentSpanId === message.spanId),
  ).toBe(true);
  for (const span of spans) {
    expect(span.startsAt >= message.startsAt && span.endsAt >= span.startsAt, span.name).toBe(true);
    expect(span.failed, span.name).toBe(false);
  }
  expect(message.fields["parley.turn"]).toContain(question);
  expect(turn.fields).toMatchObject({ "parley.platform": "slack", "parley.outcome": "complete" });
  expect(gateway.fields).toMatchObject({
    "gen_ai.request.model": "test/chat-model",
    "parley.gateway.request_id": "req-1",
    "http.response.status_code": 200,
  });
  expect(gateway.events).toContain("first text");
  expect(reply.events).toEqual(["shown", "first text", "finished"]);
  expect(asked?.headers["traceparent"]).toBe(`00-${gateway.traceId}-${gateway.spanId}-01`);
  expect(collector.resource()).toMatchObject({ "service.name": "team-bot" });
  expect(collector.requests.every(({ key }) => key === "secret key")).toBe(true);
  // The traces contain nothing that people wrote.
  expect(Buffer.concat(collector.requests.map(({ body }) => body)).toString()).not.toMatch(/wet|rained/);
});

it("the usual protocol is protobuf", async () => {
  collector = await startOtlpReceiver();
  story = await startSlackStory({ settings: { OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/` } });
  const ann = story.slack.person("Ann");
  const root = ann.sends({ channel: ann.directMessages, text: "hello" });
  await story.answerTo(ann.directMessages, root);
  await story.close();
  story = undefined;
  expect(collector.requests.map(({ contentType }) => contentType)).toContain("application/x-protobuf");
  expect(Buffer.concat(collector.requests.map(({ body }) => body)).includes("gateway chat")).toBe(true);
});

it("a collector that is down costs lines in the log and nothing else", async () => {
  story = await startSlackStory({ settings: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" } });
  const { logged } = story;
  const ann = story.slack.person("Ann");
  const root = ann.sends({ channel: ann.directMessages, text: "hello" });
  expect((await story.answerTo(ann.directMessages, root)).text).toBe("You said: hello");
  await story.close();
  story = undefined;
  expect(logged.filter((line) => line.startsWith("warn tracing: "))).not.toEqual([]);
  expect(logged.filter((line) => line.startsWith("error"))).toEqual([]);
});

it("without a collector the request has no traceparent", async () => {
  story = await startSlackStory();
  const ann = story.slack.person("Ann");
  const root = ann.sends({ channel: ann.directMessages, text: "hello" });
  await story.answerTo(ann.directMessages, root);
  expect(story.requestsTo("/v1/chat/completions")[0]?.headers["traceparent"]).toBeUndefined();
});
