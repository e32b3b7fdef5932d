/**
 * Some models write their reasoning in `<think>` before the answer.
 * @param {string} text
 * @returns {{ thoughts: string, answer: string }}
 */
export function splitThoughts(text) {
  const start = /^\s*<think>\s*/.exec(text)?.[0];
  if (start === undefined) return { thoughts: "", answer: text };
  const end = text.indexOf("</think>", start.length);
  if (end === -1) return { thoughts: text.slice(start.length), answer: "" };
  return { thoughts: text.slice(start.length, end).trim(), answer: text.slice(end + "</think>".length) };
}
