/** The most that a request for a long answer yields, in characters. */
const maxLongChars = 100_000;

const sentences: readonly string[] = [
  "A long answer shows how this place splits messages, and whether every piece arrives in order.",
  "Count the paragraphs: none may be missing, none may come twice.",
  "The words are made by rule, so the same request gives the same text again.",
  "Where a piece ends in the middle of a sentence, the next one must go on right there.",
  "Markdown such as **bold**, *italic* and `code` should survive the cut.",
  "Scrolling back to the top should show the beginning exactly as it was streamed.",
];

/** How much of what a message asks for; `undefined`: it asks for no particular length. */
export function parseLength(text: string): { readonly amount: number; readonly unit: Unit } | undefined {
  const match =
    /(\d[\d,._ ']*)(k)?[\s-]*(characters?|chars?|letters?|words?|lines?|paragraphs?|sentences?)\b/i.exec(
      text,
    );
  if (match === null) return undefined;
  const amount = Number((match[1] ?? "").replaceAll(/\D/g, "")) * (match[2] === undefined ? 1 : 1000);
  const name = (match[3] ?? "").toLowerCase();
  const unit = units.find((unit) => name.startsWith(unit.slice(0, 4))) ?? "characters";
  return amount > 0 ? { amount, unit } : undefined;
}

const units = ["characters", "letters", "words", "lines", "paragraphs", "sentences"] as const;
type Unit = (typeof units)[number];

/** Numbered paragraphs of the length asked for; exactly so many characters where characters were asked for. */
export function writeLong(amount: number, unit: Unit): string {
  const isEnough = (text: string, paragraphs: number): boolean => {
    if (text.length >= maxLongChars) return true;
    switch (unit) {
      case "paragraphs":
      case "lines": {
        return paragraphs >= amount;
      }
      case "words": {
        return text.split(/\s+/).length >= amount;
      }
      case "sentences": {
        return paragraphs * 3 >= amount;
      }
      case "characters":
      case "letters": {
        return text.length >= amount;
      }
    }
  };
  const paragraphs: string[] = [];
  let text = "";
  while (!isEnough(text, paragraphs.length)) {
    paragraphs.push(unit === "lines" ? line(paragraphs.length + 1) : paragraph(paragraphs.length + 1));
    text = paragraphs.join(unit === "lines" ? "\n" : "\n\n");
  }
  if (unit === "words")
    return text
      .split(/(?<=\S)(?=\s)/)
      .slice(0, amount)
      .join("");
  if (unit === "characters" || unit === "letters") return endAt(text, Math.min(amount, maxLongChars));
  return text.slice(0, maxLongChars);
}

function line(number: number): string {
  return `${number}. ${sentences[number % sentences.length] ?? ""}`;
}

function paragraph(number: number): string {
  const pick = (offset: number): string => sentences[(number * 3 + offset) % sentences.length] ?? "";
  return `**Paragraph ${number}.** ${pick(0)} ${pick(1)} ${pick(2)}`;
}

/** Ends with a full stop, and never in a space that a platform would trim. */
function endAt(text: string, chars: number): string {
  if (chars < 2) return text.slice(0, chars);
  return `${text.slice(0, chars - 1).replace(/\s+$/, (space) => "…".repeat(space.length))}.`;
}

/** A fenced block in the language asked for, at least `lines` long. */
export function writeCode(text: string, lines: number): string {
  const language = /\b(python|javascript|typescript|rust|go|java|c|bash|sql|json)\b/i
    .exec(text)?.[1]
    ?.toLowerCase();
  const count = Math.min(lines, 2000);
  const body = Array.from({ length: count }, (_, index) => codeLine(language ?? "typescript", index + 1));
  return `\`\`\`${language ?? "typescript"}\n${body.join("\n")}\n\`\`\``;
}

function codeLine(language: string, number: number): string {
  switch (language) {
    case "python": {
      return `step_${number} = "line ${number}"  # a comment with \`backticks\` and *stars*`;
    }
    case "bash": {
      return `echo "line ${number}"  # a comment`;
    }
    case "sql": {
      return `SELECT ${number} AS line; -- a comment`;
    }
    case "json": {
      return `{ "line": ${number}, "text": "a \\"quoted\\" word" }`;
    }
    default: {
      return `const line${number} = "line ${number}"; // a comment with \`backticks\` and *stars*`;
    }
  }
}

/** A Markdown table of `rows` rows. */
export function writeTable(rows: number): string {
  const body = Array.from({ length: Math.min(rows, 500) }, (_, index) => {
    const number = index + 1;
    return `| ${number} | row ${number} | ${number * number} |`;
  });
  return ["| No. | Name | Square |", "| ---: | :--- | ---: |", ...body].join("\n");
}

/** One of each kind of Markdown. */
export const markdownTour = `# A heading

Text in **bold**, *italic*, ~~struck~~ and \`inline code\`, with a [link](https://example.com/).

> A quotation
> of two lines.

1. First
2. Second
   - nested
3. Third

- [x] done
- [ ] not done

${writeTable(3)}

${writeCode("typescript", 3)}

---

Characters that want care: <b>not bold</b> & "quotes", a \\*star\\*, emoji 🦊, ünïcödé, 日本語.`;
