import { chunk, done, event, finished, json, sse, whole, words, type CorpusRow } from "./corpus-row.ts";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";

const thought = { ...finished, reasoning: "hm" };
const numbered = (index: number, content: string, finish: string | null = null) =>
  event({ choices: [{ index, delta: { content }, finish_reason: finish }] });
const plain = `${chunk({ content: words })}${chunk({}, "stop")}${done}`;
const encoded = (encoding: string, body: Buffer): CorpusRow => ({
  name: `an answer that a proxy has compressed with ${encoding} although nobody asked for it`,
  answer: { headers: { "content-type": "text/event-stream", "content-encoding": encoding }, body },
  expected: finished,
});

/** Thoughts in every form, what comes beside an answer, choices numbered by token, and compressed answers. */
export const thoughtRows: readonly CorpusRow[] = [
  // These answers have thoughts between tags. DeepSeek-R1 and QwQ send them if vLLM or llama.cpp has no
  // reasoning parser. MiniMax-M1 sends them too.
  {
    name: "thoughts between think tags",
    answer: sse(
      chunk({ content: "<think>" }),
      chunk({ content: "hm</think>\n\n" }),
      chunk({ content: words }, "stop"),
      done,
    ),
    expected: thought,
  },
  {
    name: "think tags broken over chunks",
    answer: sse(
      ...["\n<th", "ink", ">\nh", "m\n</", "thi", "nk>", "\n\nGrüße, ", "世界 🦜!"].map((content) =>
        chunk({ content }),
      ),
      chunk({}, "stop"),
      done,
    ),
    expected: { ...finished, reasoning: "\nhm\n" },
  },
  {
    // The template opens the tag in the prompt, for DeepSeek-R1 with vLLM and Qwen3-Thinking with llama.cpp.
    name: "only the closing think tag",
    answer: sse(
      chunk({ content: "hm" }),
      chunk({ content: "</think>\n\n" }),
      chunk({ content: words }, "stop"),
      done,
    ),
    expected: thought,
  },
  {
    name: "only the closing think tag, broken over chunks",
    answer: sse(
      ...["h", "m", "</th", "in", "k>", "\n\nGrüße, ", "世界 🦜!"].map((content) => chunk({ content })),
      chunk({}, "stop"),
      done,
    ),
    expected: thought,
  },
  {
    name: "think tags in a whole document",
    answer: json(whole({ role: "assistant", content: `<think>hm</think>\n${words}` })),
    expected: thought,
  },
  {
    name: "empty think tags (Qwen3 with thinking off)",
    answer: sse(chunk({ content: "<think>\n\n</think>\n\n" }), chunk({ content: words }, "stop"), done),
    expected: { ...finished, reasoning: "\n\n" },
  },
  {
    name: "thoughts between thinking tags (prompted chains of thought)",
    answer: sse(chunk({ content: `<thinking>hm</thinking>${words}` }, "stop"), done),
    expected: thought,
  },
  {
    name: "thoughts between the signs of Kimi",
    answer: sse(chunk({ content: `◁think▷hm◁/think▷${words}` }, "stop"), done),
    expected: thought,
  },
  {
    name: "thoughts between the signs of Magistral",
    answer: sse(chunk({ content: `[THINK]hm[/THINK]${words}` }, "stop"), done),
    expected: thought,
  },
  {
    name: "thoughts between the tags of Seed",
    answer: sse(chunk({ content: `<seed:think>hm</seed:think>${words}` }, "stop"), done),
    expected: thought,
  },
  {
    name: "a text about think tags",
    answer: sse(chunk({ content: "A model thinks between `<think>` and `</think>`." }, "stop"), done),
    expected: { text: "A model thinks between `<think>` and `</think>`.", finish: "stop" },
  },
  {
    name: "a code block with think tags",
    answer: sse(chunk({ content: "Use:\n```\n<think>x</think>\n```\n" }, "stop"), done),
    expected: { text: "Use:\n```\n<think>x</think>\n```\n", finish: "stop" },
  },
  {
    name: "a comparison that begins like a tag",
    answer: sse(
      ...["<", "thing", "> is no tag"].map((content) => chunk({ content })),
      chunk({}, "stop"),
      done,
    ),
    expected: { text: "<thing> is no tag", finish: "stop" },
  },
  {
    name: "an answer that ends like the beginning of a tag",
    answer: sse(chunk({ content: "1 <" }), chunk({}, "stop"), done),
    expected: { text: "1 <", finish: "stop" },
  },
  {
    name: "thoughts as parts of the content (Magistral by Mistral)",
    answer: sse(
      chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }] }),
      chunk({ content: words }, "stop"),
      done,
    ),
    expected: thought,
  },
  {
    name: "reasoning_details beside empty fields (OpenRouter)",
    answer: sse(
      chunk({ content: "", reasoning: null, reasoning_details: [{ type: "reasoning.text", text: "hm" }] }),
      chunk({ content: words }, "stop"),
      done,
    ),
    expected: thought,
  },
  {
    name: "the same thought in two fields (vLLM, LiteLLM)",
    answer: sse(chunk({ reasoning: "hm", reasoning_content: "hm" }), chunk({ content: words }, "stop"), done),
    expected: thought,
  },
  {
    name: "an empty reasoning beside the other field",
    answer: sse(chunk({ reasoning: "", reasoning_content: "hm" }), chunk({ content: words }, "stop"), done),
    expected: thought,
  },
  {
    name: "a reason to finish that comes with the thoughts",
    answer: {
      ...sse(chunk({ reasoning_content: "hm" }, "stop"), chunk({ content: words }, "stop"), done),
      eventEveryMs: 150,
    },
    expected: thought,
  },
  // These answers reach a limit during the thoughts.
  {
    name: "a limit reached while thinking",
    answer: sse(
      chunk({ reasoning_content: "hm" }),
      chunk({}, "length"),
      event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 1024 } }),
      done,
    ),
    expected: {
      text: "",
      reasoning: "hm",
      finish: "length",
      notices: ["The model used its 1,024 tokens for thinking and had none left for the answer."],
    },
  },
  {
    name: "a limit reached between think tags",
    answer: sse(chunk({ content: "<think>hm" }), chunk({}, "length"), done),
    expected: {
      text: "",
      reasoning: "hm",
      finish: "length",
      notices: ["The model used all its tokens for thinking and had none left for the answer."],
    },
  },
  // These answers have something beside or after their chunks.
  {
    name: "the whole message after its pieces (MiniMax)",
    answer: sse(
      chunk({ content: "Grüße, " }),
      chunk({ content: "世界 🦜!" }, "stop"),
      event({
        object: "chat.completion",
        choices: [{ index: 0, message: { role: "assistant", content: words }, finish_reason: "stop" }],
        usage: { prompt_tokens: 3, completion_tokens: 4 },
      }),
      done,
    ),
    expected: finished,
  },
  {
    name: "the whole message beside an empty piece",
    answer: sse(
      chunk({ content: words }),
      event({
        choices: [
          { index: 0, delta: {}, message: { role: "assistant", content: words }, finish_reason: "stop" },
        ],
      }),
      done,
    ),
    expected: finished,
  },
  {
    name: "text beside the piece (older TGI)",
    answer: sse(
      event({ choices: [{ index: 0, delta: { content: words }, text: words, finish_reason: "stop" }] }),
      done,
    ),
    expected: finished,
  },
  // These answers have several choices.
  {
    name: "choices numbered by token",
    answer: sse(
      numbered(0, "Grüße"),
      numbered(1, ", "),
      numbered(2, "世界 "),
      numbered(3, "🦜!"),
      numbered(4, "", "stop"),
      done,
    ),
    expected: finished,
  },
  {
    name: "two choices in turn",
    answer: sse(
      numbered(0, "Grüße, "),
      numbered(1, "no"),
      numbered(0, "世界 🦜!"),
      numbered(1, "no"),
      numbered(0, "", "stop"),
      done,
    ),
    expected: finished,
  },
  // These answers are compressed.
  encoded("gzip", gzipSync(plain)),
  encoded("x-gzip", gzipSync(plain)),
  encoded("deflate", deflateSync(plain)),
  encoded("br", brotliCompressSync(plain)),
  {
    name: "an error that a proxy has compressed",
    answer: {
      status: 400,
      headers: { "content-type": "application/json", "content-encoding": "gzip" },
      body: gzipSync(
        JSON.stringify({ error: { message: "This model's maximum context length is 10 tokens" } }),
      ),
    },
    expected: { text: "", error: "gateway-context-length" },
  },
  {
    name: "an answer without compression that claims it",
    answer: { headers: { "content-type": "text/event-stream", "content-encoding": "identity" }, body: plain },
    expected: finished,
  },
];
