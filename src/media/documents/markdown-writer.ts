/** Builds Markdown block by block: headings, paragraphs, list items and tables. */
export interface MarkdownWriter {
  /** Adds to the current line. */
  text(text: string): void;
  /** Ends the current line as a block, unless it is blank. `prefix` makes it a heading or a list item. */
  end(prefix?: string): void;
  /** Opens a table. Tables inside a cell become text of the cell. */
  openTable(): void;
  openRow(): void;
  openCell(): void;
  /** @param repeated how many cells in a row have this content; default 1 */
  closeCell(repeated?: number): void;
  closeRow(): void;
  closeTable(): void;
  /** Whether so many characters were written that no more are wanted. */
  isFull(): boolean;
  /** Returns everything so far. */
  toMarkdown(): string;
}

/** The most columns of a table. Empty ones at the end are left out. */
const maxColumns = 200;

/** @param maxChars after this many the writer is full, and what comes then may be dropped */
export function createMarkdownWriter(maxChars: number): MarkdownWriter {
  const blocks: { readonly text: string; readonly isItem: boolean }[] = [];
  let chars = 0;
  let line = "";
  let tableDepth = 0;
  let rows: string[][] = [];
  let row: string[] = [];
  let cell: string[] = [];

  const push = (text: string, isItem: boolean): void => {
    blocks.push({ text, isItem });
    chars += text.length;
  };
  const end = (prefix = ""): void => {
    const text = line.replace(/[^\S\n]+/g, " ").trim();
    line = "";
    if (text === "") return;
    if (tableDepth > 0) cell.push(text.replaceAll("\n", " "));
    else push(prefix + text, /^\s*(?:- |\d)/.test(prefix));
  };
  const isOuter = (): boolean => tableDepth === 1;

  return {
    text(text) {
      line += text;
      // A paragraph without an end must not grow for ever.
      if (line.length > maxChars) end();
    },
    end,
    openTable() {
      end();
      tableDepth += 1;
      if (isOuter()) rows = [];
    },
    openRow() {
      if (isOuter()) row = [];
    },
    openCell() {
      if (isOuter()) cell = [];
    },
    closeCell(repeated = 1) {
      end();
      if (!isOuter()) return;
      const text = cell.join(" ").replaceAll("|", "\\|");
      cell = [];
      for (let times = 0; times < repeated && row.length < maxColumns; times += 1) row.push(text);
    },
    closeRow() {
      if (!isOuter()) return;
      while (row.at(-1) === "") row.pop();
      if (row.length > 0) rows.push(row);
      chars += row.reduce((sum, text) => sum + text.length + 3, 0);
      row = [];
    },
    closeTable() {
      end();
      if (isOuter()) {
        chars -= rows.flat().reduce((sum, text) => sum + text.length + 3, 0);
        if (rows.length > 0) push(toTable(rows), false);
        rows = [];
      }
      tableDepth = Math.max(0, tableDepth - 1);
    },
    isFull: () => chars > maxChars,
    toMarkdown() {
      end();
      const all = rows.length === 0 ? blocks : [...blocks, { text: toTable(rows), isItem: false }];
      return all
        .map(({ text, isItem }, index) => {
          const gap = index === 0 ? "" : isItem && all[index - 1]!.isItem ? "\n" : "\n\n";
          return gap + text;
        })
        .join("");
    },
  };
}

/** Makes a table. The first row is the header, since Markdown has no table without one. */
function toTable(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(...rows.map((row) => row.length));
  const toLine = (row: readonly string[]) => `| ${row.join(" | ")} |`;
  const [head = [], ...rest] = rows;
  const padded = [...head, ...Array.from({ length: columns - head.length }, () => "")];
  return [toLine(padded), toLine(padded.map(() => "---")), ...rest.map(toLine)].join("\n");
}
