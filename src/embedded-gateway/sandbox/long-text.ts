/** Longest text that is written. */
const maxChars = 100_000;

const sentences: readonly string[] = [
  "A long answer shows how messages are split, and whether every part arrives in order.",
  "Count the paragraphs: none may be missing, none may come twice.",
  "The words are made by rule, so the same request gives the same text again.",
  "Markdown such as **bold**, *italic* and `code` should survive the cut.",
];

const units = ["characters", "words", "lines", "paragraphs"] as const;
type Unit = (typeof units)[number];

/** The length that a message asks for, `undefined` when it asks for none. */
export function parseLength(text: string): { readonly amount: number; readonly unit: Unit } | undefined {
  const match = /(?<![\d,._'])(\d[\d,._ ']{0,15})(k)?[\s-]{0,4}(char|word|line|paragraph)/i.exec(text);
  if (match === null) return undefined;
  const amount = Number((match[1] ?? "").replaceAll(/\D/g, "")) * (match[2] === undefined ? 1 : 1000);
  const unit = units.find((name) => name.startsWith((match[3] ?? "").toLowerCase())) ?? "characters";
  return amount > 0 ? { amount, unit } : undefined;
}

/** Numbered paragraphs, or lines, of exactly the requested length, at most 100,000 characters. */
export function writeLong(amount: number, unit: Unit): string {
  const isLines = unit === "lines";
  const enough = isLines || unit === "paragraphs" ? amount : amount / 10 + 1;
  const parts = Array.from({ length: Math.min(enough, maxChars / 20) }, (_, at) => {
    const rotated = sentences.map((_, offset) => sentences[(at + offset) % sentences.length]);
    return isLines ? `${at + 1}. ${rotated[0]}` : `**Paragraph ${at + 1}.** ${rotated.join(" ")}`;
  });
  const text = parts.join(isLines ? "\n" : "\n\n").slice(0, maxChars);
  if (unit === "words") return (text.match(/\S+\s*/g) ?? []).slice(0, amount).join("").trimEnd();
  return unit === "characters" ? endAt(text, Math.min(amount, maxChars)) : text;
}

/** Cuts to a length, with a full stop at the end and no white space before it that a platform would trim. */
function endAt(text: string, chars: number): string {
  if (chars < 2) return text.slice(0, chars);
  return `${text.slice(0, chars - 1).replace(/(?<!\s)\s+$/, (space) => "…".repeat(space.length))}.`;
}

/** A fenced code block, in Python or TypeScript. */
export function writeCode(language: "python" | "typescript", lines: number): string {
  const toLine = (number: number): string =>
    language === "python"
      ? `step_${number} = "*stars*"  # a comment\n`
      : `const line${number} = "*stars*";\n`;
  const body = Array.from({ length: Math.min(lines, 2000) }, (_, at) => toLine(at + 1)).join("");
  return `\`\`\`${language}\n${body}\`\`\``;
}

/** A Markdown table. */
export function writeTable(rows: number): string {
  const body = Array.from({ length: Math.min(rows, 500) }, (_, at) => at + 1);
  const head = ["| No. | Name | Square |", "| ---: | :--- | ---: |"];
  return [...head, ...body.map((row) => `| ${row} | row ${row} | ${row * row} |`)].join("\n");
}

/** One of each kind of Markdown. */
export const markdownTour = `# A heading

Text in **bold**, *italic*, ~~struck~~ and \`inline code\`, with a [link](https://example.com/).

> A quotation
> of two lines.

1. First
   - nested
2. Second

- [x] done
- [ ] not done

${writeTable(3)}

${writeCode("typescript", 3)}

To be escaped: <b>not bold</b> & "quotes", a \\*star\\*, emoji 🦊, ünïcödé, 日本語.`;
