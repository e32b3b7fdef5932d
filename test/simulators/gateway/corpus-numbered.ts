import { chunk, done, event, finished, json, sse, uri, words, type CorpusRow } from "./corpus-row.ts";

const fails = (error: string) => ({ text: "", error });
const tooLong = "This model's maximum context length is 10 tokens";
const numbered = (index: number, delta: object, finish: string | null = null) =>
  event({ choices: [{ index, delta, finish_reason: finish }] });
const halves = ["Grüße, ", "世界 🦜!"] as const;

/** Errors inside a stream in every form, choices that count events, and whole answers said twice. */
export const numberedRows: readonly CorpusRow[] = [
  // These errors come inside a stream that was answered with 200.
  {
    name: "a line error: with the error (llama.cpp until late 2025)",
    answer: sse(`error: ${JSON.stringify({ code: 400, message: tooLong })}\n\n`),
    expected: fails("gateway-context-length"),
    says: tooLong,
  },
  {
    name: "a line error: after half an answer, and [DONE]",
    answer: sse(
      chunk({ content: words }),
      `error: ${JSON.stringify({ code: 500, message: "slot is gone" })}\n\n`,
      done,
    ),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "a line error: with words that are no JSON",
    answer: sse(chunk({ content: words }), "error: the engine has stopped\n\n", done),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "an event of the name error with fields but no word error",
    answer: sse(`event: error\n${event({ code: 400, msg: tooLong })}`),
    expected: fails("gateway-context-length"),
  },
  {
    name: "a bare line of JSON with the error as the first of a stream",
    answer: sse(": ping\n\n", `${JSON.stringify({ error: { code: 400, message: tooLong } })}\n`),
    expected: fails("gateway-context-length"),
  },
  {
    name: "a bare line of JSON with the error after half an answer, and [DONE]",
    answer: sse(
      chunk({ content: words }),
      `${JSON.stringify({ error: { message: "the worker was lost" } })}\n\n`,
      done,
    ),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "an error as bare JSON over several lines",
    answer: sse(
      ": ping\n\n",
      JSON.stringify({ error: { code: 400, message: tooLong, param: { n: 1 } } }, null, 2),
    ),
    expected: fails("gateway-context-length"),
  },
  {
    name: "code and message without a word error, in an event",
    answer: sse(event({ code: 400, message: tooLong })),
    expected: fails("gateway-context-length"),
  },
  {
    name: "code and message beside empty fields of an answer",
    answer: sse(event({ code: 400, message: tooLong, data: null, choices: [] })),
    expected: fails("gateway-context-length"),
  },
  {
    name: "code and message beside null choices, after half an answer",
    answer: sse(
      chunk({ content: words }),
      event({ code: "InternalError", message: "lost", choices: null }),
      done,
    ),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "code and msg",
    answer: sse(event({ code: 400, msg: tooLong, success: false })),
    expected: fails("gateway-context-length"),
  },
  {
    name: "code and message as the whole body",
    answer: json(JSON.stringify({ code: 400, message: tooLong, data: null })),
    expected: fails("gateway-context-length"),
  },
  {
    name: "success beside an answer",
    answer: sse(
      event({
        code: 0,
        message: "success",
        choices: [{ index: 0, delta: { content: words }, finish_reason: "stop" }],
      }),
      done,
    ),
    expected: finished,
  },
  {
    name: "a line error: with an error status",
    answer: { status: 400, body: `error: ${JSON.stringify({ code: 400, message: tooLong })}\n\n` },
    expected: fails("gateway-context-length"),
    says: tooLong,
  },
  // These number their choice by event.
  {
    name: "two events, numbered 0 and 1",
    answer: sse(numbered(0, { content: halves[0] }), numbered(1, { content: halves[1] }, "stop"), done),
    expected: finished,
  },
  {
    name: "two events, numbered 0 and 1, and the end of the body",
    answer: sse(numbered(0, { content: words }), numbered(1, {}, "stop")),
    expected: finished,
  },
  {
    name: "events numbered from 1",
    answer: sse(
      numbered(1, { content: halves[0] }),
      numbered(2, { content: halves[1] }),
      numbered(3, {}, "stop"),
      done,
    ),
    expected: finished,
  },
  {
    name: "two events, numbered 1 and 2",
    answer: sse(numbered(1, { content: words }), numbered(2, {}, "stop"), done),
    expected: finished,
  },
  {
    name: "one event, numbered 1",
    answer: sse(numbered(1, { content: words }, "stop"), done),
    expected: finished,
  },
  {
    name: "every event numbered 1",
    answer: sse(
      numbered(1, { content: halves[0] }),
      numbered(1, { content: halves[1] }),
      numbered(1, {}, "stop"),
      done,
    ),
    expected: finished,
  },
  {
    name: "an answer in one piece, numbered 1",
    answer: json(
      JSON.stringify({
        choices: [{ index: 1, message: { role: "assistant", content: words }, finish_reason: "stop" }],
      }),
    ),
    expected: finished,
  },
  {
    name: "a picture with the finish, numbered 1",
    answer: sse(
      numbered(0, { content: words }),
      numbered(1, { content: "", images: [{ type: "image_url", image_url: { url: uri } }] }, "stop"),
      done,
    ),
    expected: { ...finished, images: ["image/png"] },
  },
  {
    name: "a picture with the finish, numbered from 1",
    answer: sse(numbered(1, { images: [{ type: "image_url", image_url: { url: uri } }] }, "stop"), done),
    expected: { text: "", images: ["image/png"], finish: "stop" },
  },
  {
    name: "two whole answers",
    answer: sse(numbered(0, { content: words }, "stop"), numbered(1, { content: "no" }, "stop"), done),
    expected: finished,
  },
  // These say the answer twice.
  {
    name: "the last delta repeats the whole answer",
    answer: sse(
      chunk({ content: halves[0] }),
      chunk({ content: halves[1] }),
      chunk({ content: words }, "stop"),
      done,
    ),
    expected: finished,
  },
  {
    name: "a delta repeats the whole answer before the finish",
    answer: sse(
      chunk({ content: halves[0] }),
      chunk({ content: halves[1] }),
      chunk({ content: words }),
      chunk({}, "stop"),
      event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } }),
      done,
    ),
    expected: finished,
  },
  {
    name: "the last delta repeats thoughts and answer",
    answer: sse(
      chunk({ reasoning_content: "I think of the " }),
      chunk({ reasoning_content: "parrot." }),
      chunk({ content: halves[0] }),
      chunk({ content: halves[1] }),
      chunk({ reasoning_content: "I think of the parrot.", content: words }, "stop"),
      done,
    ),
    expected: { ...finished, reasoning: "I think of the parrot." },
  },
  {
    name: "the last delta repeats the answer without the blanks around it",
    answer: sse(
      chunk({ content: `\n${halves[0]}` }),
      chunk({ content: halves[1] }),
      chunk({ content: words }, "stop"),
      done,
    ),
    expected: { text: `\n${words}`, finish: "stop" },
  },
  {
    name: "a refrain",
    answer: sse(
      chunk({ content: halves[0] }),
      chunk({ content: halves[1] }),
      chunk({ content: words }),
      chunk({ content: " Again!" }),
      chunk({}, "stop"),
      done,
    ),
    expected: { text: `${words}${words} Again!`, finish: "stop" },
  },
  {
    name: "an answer of the same short words",
    answer: sse(...["ha", "ha", "haha"].map((content) => chunk({ content })), chunk({}, "stop"), done),
    expected: { text: "hahahaha", finish: "stop" },
  },
];
