import { chunk, done, finished, json, sse, whole, words, type CorpusRow } from "./corpus-row.ts";

/** Answers that end in different ways, answers in place of a stream, and finish reasons. */
export const endingRows: readonly CorpusRow[] = [
  // These answers end in different ways.
  {
    name: "[DONE] with a blank behind it",
    answer: sse(chunk({ content: words }, "stop"), "data: [DONE] \n\n"),
    expected: finished,
  },
  {
    name: "[DONE] without a finish reason",
    answer: sse(chunk({ content: words }), done),
    expected: finished,
  },
  {
    name: "[DONE] without its blank line",
    answer: sse(chunk({ content: words }), "data: [DONE]"),
    expected: finished,
  },
  {
    name: "a finish reason without [DONE]",
    answer: sse(chunk({ content: words }), chunk({}, "stop")),
    expected: finished,
  },
  {
    name: "a clean end with neither",
    answer: sse(chunk({ content: words })),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "a clean end inside an event",
    answer: sse(chunk({ content: words }), 'data: {"choices":[{"delta":{"con'),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "a broken connection after words",
    answer: { ...sse(chunk({ content: words })), after: "break" },
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "a broken connection after the finish reason",
    answer: { ...sse(chunk({ content: words }), chunk({}, "stop")), after: "break" },
    expected: finished,
  },
  {
    name: "a broken connection before words",
    answer: { ...sse(chunk({ role: "assistant" })), after: "break" },
    expected: { text: "", error: "gateway-unreachable" },
  },
  {
    name: "a silent connection after words",
    answer: { ...sse(chunk({ content: words })), after: "hang" },
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "pings without end after words",
    answer: { ...sse(chunk({ content: words })), after: "hang", pingEveryMs: 20 },
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "pings without end before words",
    answer: {
      ...sse(": PROCESSING\n\n", chunk({ role: "assistant", content: "" })),
      after: "hang",
      pingEveryMs: 20,
    },
    expected: { text: "", error: "gateway-timeout" },
  },
  {
    name: "an open line after [DONE]",
    answer: { ...sse(chunk({ content: words }, "stop"), done), after: "hang" },
    expected: finished,
  },
  {
    name: "words after [DONE]",
    answer: sse(chunk({ content: words }, "stop"), done, chunk({ content: "no" })),
    expected: finished,
  },
  { name: "an empty body", answer: sse(""), expected: { text: "", error: "gateway-empty-answer" } },
  {
    name: "comments only",
    answer: sse(": PROCESSING\n\n: PROCESSING\n\n"),
    expected: { text: "", error: "gateway-empty-answer" },
  },
  {
    name: "a role and [DONE]",
    answer: sse(chunk({ role: "assistant", content: "" }), done),
    expected: { text: "", error: "gateway-empty-answer" },
  },
  {
    name: "a finish reason and nothing else",
    answer: sse(chunk({}, "stop"), done),
    expected: { text: "", error: "gateway-empty-answer" },
  },
  {
    name: "reasoning only, cut by the limit",
    answer: sse(chunk({ reasoning: "hm" }), chunk({}, "length"), done),
    expected: {
      text: "",
      reasoning: "hm",
      finish: "length",
      notices: ["The model used all its tokens for thinking and had none left for the answer."],
    },
  },
  { name: "status 204", answer: { status: 204 }, expected: { text: "", error: "gateway-empty-answer" } },
  // These answers are no stream although the request asked for one.
  { name: "plain JSON", answer: json(whole({ role: "assistant", content: words })), expected: finished },
  {
    name: "plain JSON over several lines",
    answer: json(JSON.stringify(JSON.parse(whole({ content: words })), undefined, 2)),
    expected: finished,
  },
  { name: "plain JSON labelled as a stream", answer: sse(whole({ content: words })), expected: finished },
  {
    name: "plain JSON without a finish reason",
    answer: json(whole({ content: words }, null)),
    expected: finished,
  },
  {
    name: "plain JSON that is cut",
    answer: json(whole({ content: words }).slice(0, -9)),
    expected: { text: "", error: "gateway-bad-answer" },
  },
  {
    name: "plain JSON of another shape",
    answer: json('{"hello":"world"}'),
    expected: { text: "", error: "gateway-bad-answer" },
  },
  {
    name: "plain JSON without choices",
    answer: json('{"choices":[]}'),
    expected: { text: "", error: "gateway-empty-answer" },
  },
  {
    name: "plain JSON with an error",
    answer: json('{"error":{"message":"no","type":"invalid_request_error"}}'),
    expected: { text: "", error: "gateway-bad-request" },
  },
  {
    name: "NDJSON",
    answer: sse(
      ...["Grüße, ", "世界 🦜!"].map(
        (content) => `${JSON.stringify({ choices: [{ delta: { content } }] })}\n`,
      ),
      `${JSON.stringify({ choices: [{ delta: {}, finish_reason: "stop" }] })}\n`,
    ),
    expected: finished,
  },
  {
    name: "NDJSON without a finish reason",
    answer: sse(
      ...["Grüße, ", "世界 🦜!"].map(
        (content) => `${JSON.stringify({ choices: [{ delta: { content } }] })}\n`,
      ),
    ),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "NDJSON of a local server",
    answer: sse(
      ...["Grüße, ", "世界 🦜!"].map(
        (content) => `${JSON.stringify({ message: { role: "assistant", content }, done: false })}\n`,
      ),
      '{"message":{"content":""},"done":true,"done_reason":"stop"}\n',
    ),
    expected: finished,
  },
  {
    name: "one NDJSON line of a local server, cut",
    answer: sse(`${JSON.stringify({ message: { content: words }, done: false })}\n`),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "a list of chunks",
    answer: json(
      `[${JSON.stringify({ choices: [{ delta: { content: words } }] })},\n${JSON.stringify({ choices: [{ delta: {}, finish_reason: "stop" }] })}]`,
    ),
    expected: finished,
  },
  {
    name: "a list with an error",
    answer: json('[{"error":{"message":"no","code":400}}]'),
    expected: { text: "", error: "gateway-bad-request" },
  },
  {
    name: "HTML",
    answer: {
      body: "<!DOCTYPE html><html><title>502 Bad Gateway</title></html>",
      headers: { "content-type": "text/html" },
    },
    expected: { text: "", error: "gateway-bad-answer" },
  },
  {
    name: "SSE labelled text/plain",
    answer: {
      ...sse(chunk({ content: words }), chunk({}, "stop"), done),
      headers: { "content-type": "text/plain" },
    },
    expected: finished,
  },
  {
    name: "words that are neither",
    answer: sse("upstream connect error"),
    expected: { text: "", error: "gateway-bad-answer" },
  },
  {
    name: "data that is no JSON",
    answer: sse("data: hello\n\n", done),
    expected: { text: "", error: "gateway-bad-answer" },
  },
  {
    name: "data that is no JSON after words",
    answer: sse(chunk({ content: words }), "data: hello\n\n"),
    expected: { text: words, error: "gateway-interrupted" },
  },
  // These answers have different finish reasons.
  ...(
    [
      ["stop", "stop"],
      ["length", "length"],
      ["tool_calls", "other"],
      ["content_filter", "filtered"],
      ["end_turn", "stop"],
      ["max_tokens", "length"],
      ["refusal", "filtered"],
      ["SAFETY", "filtered"],
      ["IMAGE_SAFETY", "filtered"],
      ["NO_IMAGE", "other"],
      ["STOP", "stop"],
      ["something_new", "other"],
    ] as const
  ).map(([reason, finish]) => ({
    name: `finish reason ${reason}`,
    answer: sse(chunk({ content: words }), chunk({}, reason), done),
    expected: { text: words, finish },
  })),
  {
    name: "finish reason error after words",
    answer: sse(chunk({ content: words }), chunk({}, "error"), done),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "finish reason insufficient_system_resource",
    answer: sse(chunk({ content: words }), chunk({}, "insufficient_system_resource"), done),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "content_filter without a word",
    answer: sse(chunk({}, "content_filter"), done),
    expected: { text: "", error: "gateway-refused" },
  },
  {
    name: "IMAGE_SAFETY without an image",
    answer: sse(chunk({}, "IMAGE_SAFETY"), done),
    expected: { text: "", error: "gateway-refused" },
  },
  {
    name: "NO_IMAGE without an image",
    answer: sse(chunk({}, "NO_IMAGE"), done),
    expected: { text: "", error: "gateway-empty-answer" },
  },
];
