import { chunk, done, event, finished, json, sse, whole, words, type CorpusRow } from "./corpus-row.ts";

/** Valid and nearly valid streams: chunks, usage, keep-alive and errors inside them. */
export const streamRows: readonly CorpusRow[] = [
  // These streams have different chunks.
  {
    name: "a plain stream",
    answer: sse(
      chunk({ role: "assistant", content: "" }),
      chunk({ content: "Grüße, " }),
      chunk({ content: "世界 🦜!" }),
      chunk({}, "stop"),
      done,
    ),
    expected: finished,
  },
  {
    name: "no role anywhere",
    answer: sse(chunk({ content: words }), chunk({}, "stop"), done),
    expected: finished,
  },
  {
    name: "an empty role and a late one",
    answer: sse(
      chunk({ role: "", content: "Grüße, " }),
      chunk({ role: "assistant", content: "世界 🦜!" }),
      chunk({}, "stop"),
      done,
    ),
    expected: finished,
  },
  {
    name: "content null",
    answer: sse(chunk({ content: null }), chunk({ content: words }), chunk({ content: null }, "stop"), done),
    expected: finished,
  },
  {
    name: "content as parts",
    answer: sse(
      chunk(
        {
          content: [
            { type: "text", text: "Grüße, " },
            { type: "unknown" },
            7,
            { type: "text", text: "世界 🦜!" },
          ],
        },
        "stop",
      ),
      done,
    ),
    expected: finished,
  },
  {
    name: "reasoning",
    answer: sse(chunk({ reasoning: "hm" }), chunk({ content: words }), chunk({}, "stop"), done),
    expected: { ...finished, reasoning: "hm" },
  },
  {
    name: "reasoning_content",
    answer: sse(
      chunk({ reasoning_content: "hm", content: null }),
      chunk({ content: words }),
      chunk({}, "stop"),
      done,
    ),
    expected: { ...finished, reasoning: "hm" },
  },
  {
    name: "a refusal in the model's words",
    answer: sse(chunk({ refusal: "I can't " }), chunk({ refusal: "do that." }), chunk({}, "stop"), done),
    expected: { text: "I can't do that.", finish: "filtered" },
  },
  {
    name: "annotations and padding",
    answer: sse(
      chunk({ content: words, annotations: [{ type: "url_citation" }] }, null, {
        obfuscation: "xxxxxxxx",
        system_fingerprint: null,
      }),
      chunk({}, "stop"),
      done,
    ),
    expected: finished,
  },
  {
    name: "message in place of delta",
    answer: sse(
      event({ choices: [{ message: { content: words } }] }),
      event({ choices: [{ message: {}, finish_reason: "stop" }] }),
      done,
    ),
    expected: finished,
  },
  {
    name: "finish reason with the last words",
    answer: sse(chunk({ content: "Grüße, " }), chunk({ content: "世界 🦜!" }, "stop"), done),
    expected: finished,
  },
  {
    name: "an empty finish reason on every chunk",
    answer: sse(
      chunk({ content: "Grüße, " }, ""),
      chunk({ content: "世界 🦜!" }, "null"),
      chunk({}, "stop"),
      done,
    ),
    expected: finished,
  },
  {
    name: "another choice beside the first",
    answer: sse(
      event({ choices: [{ index: 1, delta: { content: "no" } }] }),
      chunk({ content: words }),
      chunk({}, "stop"),
      done,
    ),
    expected: finished,
  },
  {
    name: "a broken choice beside a good one",
    answer: sse(
      event({ choices: [null, { index: 0, delta: { content: words }, finish_reason: "stop" }] }),
      done,
    ),
    expected: finished,
  },
  {
    name: "CRLF line ends",
    answer: sse(
      `data: ${JSON.stringify({ choices: [{ delta: { content: words }, finish_reason: "stop" }] })}\r\n\r\ndata: [DONE]\r\n\r\n`,
    ),
    expected: finished,
  },
  {
    name: "data without the blank behind the colon",
    answer: sse(
      `data:${JSON.stringify({ choices: [{ delta: { content: words }, finish_reason: "stop" }] })}\n\ndata:[DONE]\n\n`,
    ),
    expected: finished,
  },
  {
    name: "a byte order mark in front",
    answer: sse("\uFEFF", chunk({ content: words }, "stop"), done),
    expected: finished,
  },
  {
    name: "one event over several data lines",
    answer: sse(
      `data: {"choices":[{"delta":\ndata: {"content":${JSON.stringify(words)}},\ndata: "finish_reason":"stop"}]}\n\n`,
      done,
    ),
    expected: finished,
  },
  // These streams report usage.
  {
    name: "usage in a chunk without choices",
    answer: sse(
      chunk({ content: words }),
      chunk({}, "stop"),
      event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 4, cost: 0.01 } }),
      done,
    ),
    expected: finished,
  },
  {
    name: "usage that is no numbers",
    answer: sse(
      chunk({ content: words }, "stop", { usage: { prompt_tokens: "3", completion_tokens: null } }),
      done,
    ),
    expected: finished,
  },
  // These answers are kept alive.
  {
    name: "comments and pings",
    answer: sse(
      ": PROCESSING\n\n",
      ": keep-alive\n\n",
      'event: ping\ndata: {"type":"ping"}\n\n',
      chunk({ content: words }),
      ":\n\n",
      chunk({}, "stop"),
      done,
    ),
    expected: finished,
  },
  {
    name: "blank lines before JSON",
    answer: json(`\n\n   \n${whole({ role: "assistant", content: words })}`),
    expected: finished,
  },
  // These streams contain errors.
  {
    name: "an error chunk first",
    answer: sse(event({ error: { message: "boom", type: "invalid_request_error", code: 400 } })),
    expected: { text: "", error: "gateway-bad-request" },
  },
  {
    name: "an error chunk after words",
    answer: sse(chunk({ content: words }), event({ error: { message: "upstream died", code: 502 } })),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "an error and then [DONE]",
    answer: sse(chunk({ content: words }), event({ error: "upstream died" }), done),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "object error",
    answer: sse(
      event({ object: "error", message: "no such thing", type: "invalid_request_error", code: 40_001 }),
    ),
    expected: { text: "", error: "gateway-bad-request" },
  },
  {
    name: "event: error with JSON",
    answer: sse("event: error\n", event({ message: "overloaded" })),
    expected: { text: "", error: "gateway-error" },
  },
  {
    name: "event: error with words",
    answer: sse("event: error\ndata: overloaded\n\n"),
    expected: { text: "", error: "gateway-error" },
  },
  {
    name: "an error in the choice",
    answer: sse(
      event({
        choices: [
          {
            index: 0,
            delta: { content: "" },
            finish_reason: "error",
            error: { code: 429, message: "slow down" },
          },
        ],
      }),
    ),
    expected: { text: "", error: "gateway-rate-limited" },
  },
  {
    name: "an error of null",
    answer: sse(chunk({ content: words }, null, { error: null }), chunk({}, "stop", { error: null }), done),
    expected: finished,
  },
  {
    name: "a filter inside a stream",
    answer: sse(
      event({
        error: {
          message: "blocked by content policy",
          code: "content_filter",
          type: "invalid_request_error",
        },
      }),
    ),
    expected: { text: "", error: "gateway-refused" },
  },
];
