import { chunk, done, event, finished, json, sse, whole, words, type CorpusRow } from "./corpus-row.ts";

const citation = (url: unknown, title?: unknown) => ({
  type: "url_citation",
  url_citation: { url, title, start_index: 0, end_index: 3 },
});
const page = { url: "https://pages.example/parrots", title: "Parrots" };
const other = { url: "https://other.example/birds" };
const numbered = Array.from({ length: 12 }, (_, index) => `https://pages.example/${index}`);

/** Answers with sources beside their text. */
export const sourceRows: readonly CorpusRow[] = [
  {
    name: "annotations in the last piece",
    source: "https://github.com/openai/openai-agents-js/pull/1617",
    answer: sse(
      chunk({ content: words }),
      chunk({ content: "", annotations: [citation(page.url, page.title), citation(other.url)] }, "stop"),
      done,
    ),
    expected: { ...finished, sources: [page, other] },
  },
  {
    name: "annotations of a whole message",
    source: "https://github.com/pydantic/pydantic-ai/pull/7458",
    answer: json(whole({ content: words, annotations: [citation(page.url, page.title)] })),
    expected: { ...finished, sources: [page] },
  },
  {
    name: "annotations beside the piece (OpenRouter)",
    source: "https://github.com/BerriAI/litellm/pull/23662",
    answer: sse(
      event({
        choices: [{ index: 0, delta: { content: words }, annotations: [citation(page.url, page.title)] }],
      }),
      chunk({}, "stop"),
      done,
    ),
    expected: { ...finished, sources: [page] },
  },
  {
    name: "annotations without the object in them",
    source: "https://github.com/microsoft/agent-framework/issues/5029",
    answer: sse(
      chunk({ content: words, annotations: [{ type: "url_citation", ...page }] }),
      chunk({}, "stop"),
      done,
    ),
    expected: { ...finished, sources: [page] },
  },
  {
    name: "annotations null, and those of files",
    answer: sse(
      chunk({ content: words, annotations: null }),
      chunk({ annotations: [null, 3, { type: "file_citation", file_id: "f" }, citation(7)] }, "stop"),
      done,
    ),
    expected: finished,
  },
  {
    name: "citations in each chunk, with a message beside the delta (Perplexity)",
    source: "https://github.com/BerriAI/litellm/issues/5535",
    answer: sse(
      ...["Grüße, ", "世界 🦜!"].map((content, index) =>
        event({
          id: "xxx",
          model: "llama-3.1-sonar-small-128k-online",
          usage: { prompt_tokens: 15, completion_tokens: index + 1, total_tokens: 16 + index },
          citations: [page.url, other.url],
          object: "chat.completion",
          choices: [
            {
              index: 0,
              finish_reason: index === 0 ? null : "stop",
              message: { role: "assistant", content: words },
              delta: { role: "assistant", content },
            },
          ],
        }),
      ),
    ),
    expected: { ...finished, sources: [{ url: page.url }, other] },
  },
  {
    name: "search_results, whose titles belong to the citations (Perplexity)",
    source: "https://github.com/sgaunet/perplexity-go/pull/72",
    answer: sse(
      chunk({ content: words }, null, { citations: [page.url, other.url] }),
      chunk({}, "stop", {
        citations: [page.url, other.url],
        search_results: [
          { ...page, date: "2025-06-01" },
          { url: other.url, title: "", date: null },
        ],
      }),
      done,
    ),
    expected: { ...finished, sources: [page, other] },
  },
  {
    name: "search_results of a whole answer",
    source: "https://github.com/gptme/gptme-contrib/pull/1149",
    answer: json(
      JSON.stringify({ ...(JSON.parse(whole({ content: words })) as object), search_results: [page] }),
    ),
    expected: { ...finished, sources: [page] },
  },
  {
    name: "citations null or of another shape",
    source: "https://github.com/langchain-ai/langchain/pull/30805",
    answer: sse(
      chunk({ content: words }, null, { citations: null, search_results: {} }),
      chunk({}, "stop", { citations: "https://pages.example/parrots" }),
      done,
    ),
    expected: finished,
  },
  {
    name: "more sources than are kept",
    answer: sse(chunk({ content: words }, "stop", { citations: numbered }), done),
    expected: { ...finished, sources: numbered.slice(0, 10).map((url) => ({ url })) },
  },
  {
    name: "sources that nobody can open",
    answer: sse(
      chunk({ content: words }, "stop", {
        citations: [
          "javascript:alert(1)",
          "file:///etc/passwd",
          "not an address",
          `https://pages.example/${"世".repeat(250)}`,
          page.url,
        ],
        search_results: [{ url: page.url, title: ` Par\nrots ${"x".repeat(210)}` }],
      }),
      done,
    ),
    expected: { ...finished, sources: [{ url: page.url, title: `Par rots ${"x".repeat(191)}` }] },
  },
];
