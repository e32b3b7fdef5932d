import type { Setting } from "./core/settings.ts";
import { sections } from "./settings.ts";

const columns = ["Variable", "Default", "What it does"];

/** All settings in Markdown, one table per section. docs/settings-reference.md holds this text. */
export function toSettingsTables(): string {
  const tables = sections.map(({ heading, settings }) => {
    const rows = Object.entries(settings).map(([name, setting]) => [
      `\`${name}\``,
      setting.shownDefault ?? (defaultOf(setting) === "" ? "" : `\`${defaultOf(setting)}\``),
      setting.description,
    ]);
    const widths = columns.map((column, at) =>
      Math.max(column.length, ...rows.map((row) => row[at]?.length ?? 0)),
    );
    const toLine = (cells: readonly string[]): string =>
      `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |\n`;
    const rule = widths.map((width) => "-".repeat(width));
    return `## ${heading}\n\n${[columns, rule, ...rows].map((row) => toLine(row)).join("")}`;
  });
  return tables.join("\n").trimEnd();
}

const exampleHead = `# Parley's settings. \`npm run setup\` asks for them and writes .env; or copy this file to .env and fill in what you use.
# Everything may stay empty. \`npm run doctor\` checks what is set.
# With nothing set: the local page, the embedded gateway (a sandbox) and an embedded store.
`;
const maxLineChars = 120;

/** A file of settings in which all have their defaults. It is `.env.example`. */
export function toExampleFile(): string {
  const parts = sections.map(({ heading, doc, settings }) => {
    const lines = Object.entries(settings).map(([name, setting]) => {
      const mark = setting.isOfPlace === true ? "# " : "";
      return `${toComment(setting)}${mark}${name}=${defaultOf(setting)}\n`;
    });
    return `\n${`# --- ${heading} (docs/${doc}) `.padEnd(maxLineChars, "-")}\n${lines.join("")}`;
  });
  return exampleHead + parts.join("");
}

/** What a setting does, in lines of a comment. */
function toComment({ description, note }: Setting): string {
  const sentence = `${description.charAt(0).toUpperCase()}${description.slice(1)}.`.replaceAll("`", "");
  const lines = [""];
  for (const word of `${sentence} ${note ?? ""}`.trim().split(" ")) {
    const longer = `${lines.at(-1) ?? ""} ${word}`.trimStart();
    if (longer.length + 2 <= maxLineChars) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.map((line) => `# ${line}\n`).join("");
}

function defaultOf({ schema }: Setting): string {
  const value = schema.safeParse(undefined).data ?? "";
  return typeof value === "string" ? value : JSON.stringify(value).replaceAll(/[[\]"]/g, "");
}
