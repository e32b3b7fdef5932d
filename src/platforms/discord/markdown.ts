import { readFenceLine, type Fence } from "../../support/markdown-fences.ts";

/** Wider tables stay as they are: in a code block they would wrap. */
const maxTableColumns = 76;

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
  const heading = /^\s{0,3}#{4,6}\s+(.*?)\s*#*$/.exec(line);
  if (heading !== null) return `**${(heading[1] ?? "").replaceAll("**", "")}**`;
  if (/^\s{0,3}([-*_])(?:\s*\1){2,}\s*$/.test(line)) return "──────────";
  return line.replaceAll(/!\[([^\]]*)\]\((https?:\/\/[^)\s]+)[^)]*\)/g, (_whole, alt: string, url: string) =>
    alt === "" ? `<${url}>` : `[${alt}](${url})`,
  );
}

interface Table {
  readonly rows: readonly (readonly string[])[];
  readonly lineCount: number;
}

/** The table that starts at a line: header row, delimiter row, body rows. */
function readTable(lines: readonly string[], start: number): Table | undefined {
  const head = lines[start] ?? "";
  const rule = lines[start + 1] ?? "";
  if (!head.includes("|") || !/^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(rule) || !rule.includes("-"))
    return undefined;
  const headCells = cellsOf(head);
  if (cellsOf(rule).length !== headCells.length || headCells.length < 2) return undefined;
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
  return line
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "")
    .split(/(?<!\\)\|/)
    .map((cell) =>
      cell
        .trim()
        .replaceAll(String.raw`\|`, "|")
        .replaceAll(/\*\*|`/g, ""),
    );
}

function drawTable(rows: Table["rows"]): string[] | undefined {
  const widths = (rows[0] ?? []).map((_cell, column) =>
    Math.max(...rows.map((row) => widthOf(row[column] ?? "")), 3),
  );
  const total = widths.reduce((sum, width) => sum + width + 2, -2);
  if (total > maxTableColumns) return undefined;
  const draw = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell + " ".repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell))))
      .join("  ")
      .trimEnd();
  const [head = [], ...body] = rows;
  return ["```", draw(head), widths.map((width) => "-".repeat(width)).join("  "), ...body.map(draw), "```"];
}

/** Columns of a text in a fixed-width font: East Asian wide characters and emoji take two. */
function widthOf(text: string): number {
  let width = 0;
  for (const { segment } of new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text)) {
    width +=
      /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]|\p{Emoji_Presentation}/u.test(
        segment,
      )
        ? 2
        : 1;
  }
  return width;
}
