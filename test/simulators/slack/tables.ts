import { SlackApiError, toText, type Fields } from "./workspace.ts";

type Refuse = (problem: string) => void;

/** The size of a table is limited. @see https://docs.slack.dev/reference/block-kit/blocks/table-block */
const maxRows = 100;
const maxColumns = 20;
/** The limit for all cells of a message's tables together. */
const maxCellChars = 10_000;

/** Checks a table block. Returns the number of characters in its cells. */
export function checkTable(block: Fields, at: string, refuse: Refuse): number {
  const rows = block["rows"] as readonly (readonly Fields[])[];
  if (!Array.isArray(rows) || rows.length < 1) refuse(`missing required field: rows ${at}`);
  if (rows.length > maxRows) refuse(`no more than ${maxRows} items allowed ${at}/rows`);
  if (((block["column_settings"] ?? []) as unknown[]).length > maxColumns)
    refuse(`no more than ${maxColumns} items allowed ${at}/column_settings`);
  let chars = 0;
  for (const row of rows) {
    if (row.length > maxColumns) refuse(`no more than ${maxColumns} items allowed ${at}/rows`);
    for (const cell of row) {
      const type = toText(cell["type"]);
      if (type !== "raw_text" && type !== "rich_text") refuse(`unsupported cell: ${type} ${at}`);
      if (type === "raw_text" && toText(cell["text"]) === "") refuse(`must be more than 0 characters ${at}`);
      chars += type === "raw_text" ? toText(cell["text"]).length : JSON.stringify(cell["elements"]).length;
    }
  }
  return chars;
}

/** Checks the tables of a markdown block. Returns the number of characters in their cells. */
export function checkMarkdownTables(markdown: string, at: string, refuse: Refuse): number {
  let chars = 0;
  let rows = 0;
  for (const line of markdown.split("\n")) {
    const cells = /^\s*\|(.*)\|\s*$/.exec(line)?.[1]?.split(/(?<!\\)\|/);
    rows = cells === undefined ? 0 : rows + 1;
    if (cells === undefined) continue;
    // One row is the line below the header.
    if (rows > maxRows + 1 || cells.length > maxColumns) refuse(`failed to match any allowed schemas ${at}`);
    chars += cells.reduce((sum, cell) => sum + cell.trim().length, 0);
  }
  return chars;
}

/** Checks the length of a message's tables. @throws SlackApiError if they are too long together */
export function checkCellChars(chars: number, refuse: Refuse): void {
  if (chars > maxCellChars) refuse(`tables exceed ${maxCellChars} characters together`);
}

/** The documented 12,000 characters of text, with some room for what is around them. */
const maxBlockChars = 13_200;

/**
 * Checks the length of all blocks of a message together. A `response_url` has no such limit.
 * @throws SlackApiError `msg_blocks_too_long`
 * @see https://github.com/slackapi/bolt-js/issues/2509
 */
export function checkTotal(blocks: readonly Fields[]): void {
  const chars = JSON.stringify(blocks).replaceAll(/\\./g, "x").length;
  if (chars > maxBlockChars) throw new SlackApiError("msg_blocks_too_long");
}
