import { readFileSync } from "node:fs";
import { parseSync, Visitor } from "oxc-parser";

/** A pattern of a source file. */
export interface SourcePattern {
  readonly file: string;
  readonly line: number;
  readonly source: string;
  readonly flags: string;
}

/**
 * Returns every regular expression literal and every `new RegExp` of a file. The letter `x` stands in the
 * place of a template's expression. A pattern that is made in another way has no source here and is left out.
 */
export function patternsOf(file: string): SourcePattern[] {
  const text = readFileSync(file, "utf8");
  const found: SourcePattern[] = [];
  const add = (at: number, source: string, flags: string) =>
    found.push({ file, line: text.slice(0, at).split("\n").length, source, flags });
  new Visitor({
    Literal(node) {
      if ("regex" in node) add(node.start, node.regex.pattern, node.regex.flags);
    },
    NewExpression({ callee, arguments: [pattern, flags], start }) {
      if (callee.type !== "Identifier" || callee.name !== "RegExp") return;
      const flagText = flags?.type === "Literal" ? String(flags.value) : "";
      if (pattern?.type === "TemplateLiteral")
        add(start, pattern.quasis.map(({ value }) => value.cooked ?? "").join("x"), flagText);
      else if (pattern?.type === "Literal") add(start, String(pattern.value), flagText);
    },
  }).visit(parseSync(file, text).program);
  return found;
}
