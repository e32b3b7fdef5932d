import { LRUCache } from "lru-cache";
import { readFenceLine, type Fence } from "../../support/markdown-fences.ts";

/** Wider tables stay as they are: in a code block they would wrap. */
const maxTableColumns = 76;
/** Cells of a row, each at least three columns wide with two between them, that fit. */
const maxTableCells = Math.floor((maxTableColumns + 2) / 5);

/**
 * Converts standard Markdown to what Discord renders: tables become aligned code blocks, headings below level 3 bold
 * lines, pictures links, rules a line of dashes. Code blocks are unchanged.
 */
export function toDiscordMarkdown(markdown: string): string {
  if (!/[|#!\-_*]/.test(markdown)) return markdown;
  const lines = markdown.split("\n");
  const shown: string[] = [];
  let fence: Fence | undefined;
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    const step = readFenceLine(line, fence);
    fence = step.fence;
    if (step.role !== "none") {
      shown.push(line);
      continue;
    }
    const table = readTable(lines, index);
    if (table === undefined) {
      shown.push(toDiscordLine(line));
      continue;
    }
    index += table.lineCount - 1;
    const drawn = drawTable(table.rows);
    shown.push(...(drawn ?? lines.slice(index - table.lineCount + 1, index + 1)));
  }
  return shown.join("\n");
}

function toDiscordLine(line: string): string {
  const heading = /^\s{0,3}#{4,6}\s(.*)$/.exec(line);
  if (heading !== null) return `**${withoutClosingMarks(heading[1] ?? "").replaceAll("**", "")}**`;
  if (/^\s{0,3}([-*_])(?:\s*\1){2,}\s*$/.test(line)) return "──────────";
  return line.replaceAll(picture, (_whole, alt: string, url: string) =>
    alt === "" ? `<${url}>` : `[${alt}](${url})`,
  );
}

/** No part of a picture contains the start of another, so that a line of starts takes linear time. */
const picture =
  /!\[((?:(?!!\[)[^\]])*)\]\((https?:\/\/(?:(?!!\[)[^)\s]){1,2048})(?:\s(?:(?!!\[)[^)]){0,500})?\)/g;

/** A heading's words, without the `#` that may close it. */
function withoutClosingMarks(heading: string): string {
  const words = heading.trim();
  let end = words.length;
  while (words.charAt(end - 1) === "#") end -= 1;
  return words.slice(0, end).trimEnd();
}

interface Table {
  readonly rows: readonly (readonly string[])[];
  readonly lineCount: number;
}

/** The table that starts at a line: header row, delimiter row, body rows. */
function readTable(lines: readonly string[], start: number): Table | undefined {
  const head = lines[start] ?? "";
  const rule = lines[start + 1] ?? "";
  if (!head.includes("|") || !/^[\s|:-]*$/.test(rule) || !rule.includes("-")) return undefined;
  const ruleCells = cellsOf(rule);
  if (ruleCells.length > maxTableCells || !ruleCells.every((cell) => /^:?-+:?$/.test(cell))) return undefined;
  const headCells = cellsOf(head);
  if (ruleCells.length !== headCells.length || headCells.length < 2) return undefined;
  const rows = [headCells];
  let index = start + 2;
  while (index < lines.length && (lines[index] ?? "").includes("|")) {
    const cells = cellsOf(lines[index] ?? "");
    rows.push(headCells.map((_cell, column) => cells[column] ?? ""));
    index += 1;
  }
  return { rows, lineCount: index - start };
}

function cellsOf(line: string): string[] {
  const row = line.trim();
  const start = row.startsWith("|") ? 1 : 0;
  const end = row.length > start && row.endsWith("|") && !row.endsWith(String.raw`\|`) ? -1 : row.length;
  const inner = row.slice(start, end);
  const cells = inner.includes("\\") ? inner.split(/(?<!\\)\|/) : inner.split("|");
  return cells.map((cell) =>
    cell
      .trim()
      .replaceAll(String.raw`\|`, "|")
      .replaceAll("**", "")
      .replaceAll("`", ""),
  );
}

function drawTable(rows: Table["rows"]): string[] | undefined {
  const columns = (rows[0] ?? []).map((_cell, column) =>
    Math.max(...rows.map((row) => widthOf(row[column] ?? "")), 3),
  );
  const total = columns.reduce((sum, width) => sum + width + 2, -2);
  if (total > maxTableColumns) return undefined;
  const draw = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell + " ".repeat(Math.max(0, (columns[column] ?? 0) - widthOf(cell))))
      .join("  ")
      .trimEnd();
  const [head = [], ...body] = rows;
  return ["```", draw(head), columns.map((width) => "-".repeat(width)).join("  "), ...body.map(draw), "```"];
}

/** Made on first use: it costs some milliseconds. */
let graphemes: Intl.Segmenter | undefined;
/** The same cells are measured again and again while a reply grows. */
const widths = new LRUCache<string, number>({ max: 1000 });

/** Columns of a text in a fixed-width font: East Asian wide characters and emoji take two. */
function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  // Wider than any table, whatever its letters are.
  if (text.length > maxTableColumns * 20) return text.length;
  const known = widths.get(text);
  if (known !== undefined) return known;
  const width = countColumns(text);
  widths.set(text, width);
  return width;
}

function countColumns(text: string): number {
  let width = 0;
  graphemes ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  for (const { segment } of graphemes.segment(text)) {
    width +=
      /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]|\p{Emoji_Presentation}/u.test(
        segment,
      )
        ? 2
        : 1;
  }
  return width;
}
