import { chunk, done, event, finished, json, sse, whole, words, type CorpusRow } from "./corpus-row.ts";

const thought = { ...finished, reasoning: "hm" };
const call = '{"name": "search", "arguments": {"query": "parrots"}}';
const inOne = (content: string) => sse(chunk({ content }, "stop"), done);

const tagged = (name: string, opening: string, closing: string): CorpusRow => ({
  name: `thoughts between ${name}`,
  answer: inOne(`${opening}hm${closing}\n\n${words}`),
  expected: thought,
});
const lone = (closing: string): CorpusRow => ({
  name: `only ${closing}`,
  answer: sse(chunk({ content: "hm" }), chunk({ content: `${closing}\n${words}` }, "stop"), done),
  expected: thought,
});
const called = (name: string, text: string): CorpusRow => ({
  name: `nothing but a call of a tool as text: ${name}`,
  answer: inOne(text),
  expected: { text: "", reasoning: text, error: "gateway-empty-answer" },
});

/** Tags around thoughts and answers, calls of tools as text, and characters that nobody sees. */
export const tagRows: readonly CorpusRow[] = [
  tagged("the tags of MiniMax", "<mm:think>", "</mm:think>"),
  tagged("the tags of OpenThinker and Skywork", "<|begin_of_thought|>", "<|end_of_thought|>"),
  tagged("capitalised tags", "<Thought>", "</Thought>"),
  tagged("tags in capitals", "<THINK>", "</THINK>"),
  tagged("a tag in capitals that ends in small letters", "<Think>", "</think>"),
  tagged("reasoning tags", "<reasoning>", "</reasoning>"),
  tagged("reason tags", "<reason>", "</reason>"),
  tagged("signs of Magistral in small letters", "[think]", "[/think]"),
  tagged("the tags of Command A", "<|START_THINKING|>", "<|END_THINKING|>"),
  tagged("the tags of LongCat", "<longcat_think>", "</longcat_think>"),
  lone("</mm:think>"),
  lone("</Think>"),
  lone("<|end_of_thought|>"),
  // Tags around the answer itself.
  {
    name: "an answer between answer tags",
    answer: inOne(`<answer>${words}</answer>`),
    expected: finished,
  },
  {
    name: "thoughts and an answer in tags, in any letter case",
    answer: inOne(`<Reasoning>\nhm\n</Reasoning>\n<Answer>\n${words}</ANSWER>\n`),
    expected: { ...finished, reasoning: "\nhm\n" },
  },
  {
    name: "thoughts and a solution in signs",
    answer: inOne(
      `<|begin_of_thought|>hm<|end_of_thought|>\n\n<|begin_of_solution|>${words}<|end_of_solution|>`,
    ),
    expected: thought,
  },
  {
    name: "thoughts and a response in signs",
    answer: inOne(`<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>${words}<|END_RESPONSE|>`),
    expected: thought,
  },
  {
    name: "only the closing tag of the thoughts, and an answer in tags",
    answer: inOne(`hm</think><answer>${words}</answer>`),
    expected: thought,
  },
  {
    name: "gpt-oss: an answer that says that it returns",
    answer: inOne(
      `<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>${words}<|return|>`,
    ),
    expected: thought,
  },
  {
    name: "an answer whose tag is never closed",
    answer: json(whole({ content: `<answer>${words}` })),
    expected: finished,
  },
  {
    name: "a text about answer tags",
    answer: inOne("Write it between <answer> and </answer>."),
    expected: { text: "Write it between <answer> and </answer>.", finish: "stop" },
  },
  {
    name: "XML with an element of reasoning",
    answer: inOne("<item><reasoning>x</reasoning></item>"),
    expected: { text: "<item><reasoning>x</reasoning></item>", finish: "stop" },
  },
  // Calls of tools that nobody has offered.
  called("Hermes, Qwen", `<tool_call>\n${call}\n</tool_call>`),
  called("two calls", `<tool_call>${call}</tool_call><tool_call>${call}</tool_call>`),
  called("in capitals", `<TOOL_CALL>${call}</TOOL_CALL>`),
  called("without an end", `<tool_call>${call}`),
  called("function_call", `<function_call>${call}</function_call>`),
  called("Mistral", `[TOOL_CALLS] [${call}]`),
  called("Llama 3.1", '<function=search>{"query": "parrots"}</function>'),
  called("Llama 3, Python", `<|python_tag|>${call}`),
  called("Kimi", `<|tool_calls_section_begin|>${call}<|tool_calls_section_end|>`),
  called("DeepSeek", `<｜tool▁calls▁begin｜>${call}<｜tool▁calls▁end｜>`),
  called("Granite", `<|tool_call|>[${call}]`),
  called("Claude's prompts", '<function_calls>\n<invoke name="search">\n</invoke>\n</function_calls>'),
  called(
    "gpt-oss",
    `<|channel|>commentary to=functions.search <|constrain|>json<|message|>{"query": "parrots"}<|call|>`,
  ),
  {
    name: "words, a call of a tool as text, and words",
    answer: inOne(`I look it up.\n<tool_call>${call}</tool_call>\n${words}`),
    expected: {
      text: `I look it up.\n${words}`,
      reasoning: `<tool_call>${call}</tool_call>`,
      finish: "stop",
    },
  },
  {
    name: "words and a call of a tool as text",
    answer: inOne(`I look it up.\n\n<tool_call>\n${call}\n</tool_call>`),
    expected: {
      text: "I look it up.\n\n",
      reasoning: `<tool_call>\n${call}\n</tool_call>`,
      finish: "stop",
    },
  },
  {
    name: "thoughts and a call of a tool as text",
    answer: inOne(`<think>hm</think>\n<tool_call>${call}</tool_call>`),
    expected: { text: "", reasoning: `hm<tool_call>${call}</tool_call>`, error: "gateway-empty-answer" },
  },
  {
    name: "gpt-oss: thoughts and a call of a tool",
    answer: inOne(
      "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.search<|message|>{}<|call|>",
    ),
    expected: {
      text: "",
      reasoning: "hm<|channel|>commentary to=functions.search<|message|>{}<|call|>",
      error: "gateway-empty-answer",
    },
  },
  {
    name: "a text about calls of tools",
    answer: inOne("It writes `<tool_call>{}</tool_call>`, or <tool_call> and JSON:\n```\n<tool_call>\n```\n"),
    expected: {
      text: "It writes `<tool_call>{}</tool_call>`, or <tool_call> and JSON:\n```\n<tool_call>\n```\n",
      finish: "stop",
    },
  },
  // Characters that nobody sees.
  ...[
    " \n\t\n ",
    "\u200b\u200b",
    "\u3164",
    "\u2800 \u2800",
    "\ufeff\u2060\u00ad",
    "\u0000\u0007",
    "\u{e0001}\u{e007f}",
    "\u202e\u200d",
    "\ufe0f",
  ].map((text): CorpusRow => {
    const points = Array.from(text, (each) => each.codePointAt(0)?.toString(16)).join(" ");
    return {
      name: `nothing that anybody sees: ${points}`,
      answer: sse(...Array.from(text, (content) => chunk({ content })), chunk({}, "stop"), done),
      expected: { text: "", error: "gateway-empty-answer" },
    };
  }),
  {
    name: "thoughts, and nothing that anybody sees",
    answer: inOne("<think>hm</think>\n\u200b\n"),
    expected: { text: "", reasoning: "hm", error: "gateway-empty-answer" },
  },
  {
    name: "nothing that anybody sees, and then a break",
    answer: { ...sse(chunk({ content: "\n\u200b" })), after: "break" },
    expected: { text: "", error: "gateway-unreachable" },
  },
  {
    name: "an answer of one sign",
    answer: sse(chunk({ content: " " }), chunk({ content: "👍🏽" }, "stop"), done),
    expected: { text: " 👍🏽", finish: "stop" },
  },
  // Controls.
  {
    name: "controls in an answer and its thoughts",
    answer: sse(
      chunk({ reasoning_content: "h\u0000m\u001b[0m" }),
      chunk({ content: "a\u0000\u0007b\tc\r\nd\u000b\u001b[31me\u007ff" }, "stop"),
      done,
    ),
    expected: { text: "ab\tc\nd[31mef", reasoning: "hm[0m", finish: "stop" },
  },
  {
    name: "controls in a refusal and in an answer by parts",
    answer: sse(
      event({
        choices: [
          {
            delta: { content: [{ type: "text", text: "a\u0001b" }], refusal: "c\u0002d" },
            finish_reason: "stop",
          },
        ],
      }),
      done,
    ),
    expected: { text: "abcd", finish: "filtered" },
  },
];
