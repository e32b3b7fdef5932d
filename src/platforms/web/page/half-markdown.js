/**
 * While an answer grows, its end is half Markdown: a `**` without its other one, a link without its address.
 * Shown as it is, it would turn into something else a moment later.
 */

/** A longer last paragraph is shown as it is. */
const maxChars = 4000;

/**
 * Returns a growing text whose last paragraph is closed: open emphasis and code end, a link or picture is its
 * words alone, and the beginning of a table, list item or heading is left out until it shows what it is.
 * @param {string} text
 */
export function closeHalf(text) {
  if (hasOpenFence(text)) return text;
  const start = text.lastIndexOf("\n\n") + 1;
  if (text.length - start > maxChars) return text;
  const lines = text.slice(start).split("\n");
  const last = lines.at(-1) ?? "";
  if (isMarker(last)) lines.pop();
  const shown = isHalfTable(lines) ? "" : closeInline(lines.join("\n"));
  return text.slice(0, start) + shown;
}

/** @param {string} text */
function hasOpenFence(text) {
  const fences = text.split("\n").filter((line) => {
    const begin = line.trimStart();
    return begin.startsWith("```") || begin.startsWith("~~~");
  });
  return fences.length % 2 === 1;
}

/** Whether a line may still become a list item, a heading, a rule or a fence. @param {string} line */
function isMarker(line) {
  const words = line.trim();
  if (words === "" || words.length > 12) return false;
  const isNumber = words.endsWith(".") && Number.isInteger(Number(words.slice(0, -1)));
  return isNumber || words.split("").every((char) => "-*+=#>`~_".includes(char));
}

/** Whether the line below a table's head is not there yet. @param {readonly string[]} lines */
function isHalfTable(lines) {
  const table = lines.filter((line) => line.trim() !== "");
  if (table.length === 0 || table.length > 2 || !table.every((line) => line.trimStart().startsWith("|")))
    return false;
  return table.length === 1 || lines.at(-1) === table[1];
}

/** The marks of emphasis, the longer ones first. */
const marks = ["***", "**", "__", "~~", "*", "_"];

/** @param {string} text @param {boolean} mayLink whether a link without its end is shown as its words */
function closeInline(text, mayLink = true) {
  /** @type {string[]} */
  const open = [];
  /** Where a link may have begun, and what was open there. */
  let label = -1;
  let at = 0;
  let ticks = "";
  while (at < text.length) {
    const char = text.charAt(at);
    if (char === "`") {
      const run = runOf(text, at);
      if (ticks === "") ticks = run;
      else if (ticks === run) ticks = "";
      at += run.length;
      continue;
    }
    if (ticks !== "") at += 1;
    else if (char === "\\") at += 2;
    else if (char === "[") {
      label = at;
      at += 1;
    } else if (char === "]" && label !== -1 && mayLink) {
      const end = text.charAt(at + 1) === "(" ? text.indexOf(")", at) : at;
      if (end === -1)
        return closeInline(text.slice(0, startOf(text, label)) + text.slice(label + 1, at), false);
      label = -1;
      at = end + 1;
    } else {
      const mark = marks.find((one) => text.startsWith(one, at));
      if (mark !== undefined) take(text, at, mark, open);
      at += mark?.length ?? 1;
    }
  }
  if (ticks !== "") {
    return text.endsWith(ticks) ? text.slice(0, -ticks.length) : `${text}${ticks}`;
  }
  if (label !== -1 && mayLink)
    return closeInline(text.slice(0, startOf(text, label)) + text.slice(label + 1), false);
  return closeMarks(text, open);
}

/** @param {string} text @param {number} at */
function runOf(text, at) {
  let end = at;
  while (text.charAt(end) === text.charAt(at)) end += 1;
  return text.slice(at, end);
}

/** Where a link begins, or a picture with its `!`. @param {string} text @param {number} label */
function startOf(text, label) {
  return text.charAt(label - 1) === "!" ? label - 1 : label;
}

/**
 * Opens or closes emphasis.
 * @param {string} text
 * @param {number} at
 * @param {string} mark
 * @param {string[]} open
 */
function take(text, at, mark, open) {
  const before = text.charAt(at - 1);
  const after = text.charAt(at + mark.length);
  const isClosing = before.trim() !== "" && open.at(-1) === mark;
  if (isClosing) open.pop();
  else if (isOpening(before, after, mark)) open.push(mark);
}

/** @param {string} before @param {string} after @param {string} mark */
function isOpening(before, after, mark) {
  if (after !== "" && after.trim() === "") return false;
  if (mark.startsWith("_")) return before.trim() === "" || "([{\"'".includes(before);
  return true;
}

/** @param {string} text @param {readonly string[]} open */
function closeMarks(text, open) {
  // It may be the first of two.
  const isFirst = text.endsWith("~") && !text.endsWith("~~");
  let shown = isFirst ? text.slice(0, -1) : text;
  for (const mark of open.toReversed()) {
    // Nothing stands in it yet. The blank before it would keep the mark around it from closing.
    if (shown.endsWith(mark)) shown = shown.slice(0, -mark.length);
    else shown = shown.trimEnd() + mark;
  }
  return shown;
}
