import { parseSync } from "oxc-parser";

/** A sentence or phrase in a source that is not a message of the catalogue. */
export interface PlainSentence {
  readonly file: string;
  readonly text: string;
}

type Node = { readonly type: string } & Readonly<Record<string, unknown>>;

/** It finds three words, or two of which the first begins with a capital letter. */
const prose = /\p{L}{2,}[,:]? \p{L}+[,:]? \p{L}{2,}|^\p{Lu}\p{L}+ \p{Ll}{2,}/u;

/** The texts of these calls are for logs, traces and operators, or for other programs. */
const forOperators =
  /^(?:log|logger|tracer|span|retrying|send|deliver|step|begin|note|meter|right|wrong|warning|warnRarely|toFailure|toFinding|z|text|startsWith|regex|refine|describe|includes|abort)$/;

/** The message of an error is for the log. What people are told of a ParleyError is in its `detail`. */
const errors = /Error$/;

/**
 * Returns the phrases in a TypeScript or JavaScript source that a person could be shown. These are text
 * literals outside of errors' messages, log lines, types and imports. In the page's templates they are the
 * text between tags and the labels.
 */
export function plainSentences(file: string, source: string): PlainSentence[] {
  const found: PlainSentence[] = [];
  const add = (text: string): void => {
    if (prose.test(text)) found.push({ file, text: text.replaceAll(/\s+/g, " ").trim() });
  };
  const visit = (value: unknown, isMarkup = false): void => {
    if (Array.isArray(value)) {
      for (const one of value) visit(one, isMarkup);
      return;
    }
    if (typeof value !== "object" || value === null || !("type" in value)) return;
    const node = value as Node;
    switch (node.type) {
      case "ImportDeclaration":
      case "ExportAllDeclaration":
      case "TSLiteralType":
      case "TSTypeAliasDeclaration":
      case "TSInterfaceDeclaration":
        return;
      case "Literal":
        if (typeof node["value"] === "string") add(node["value"]);
        return;
      case "TemplateElement": {
        const { cooked } = node["value"] as { cooked: string | null };
        if (!isMarkup) add(cooked ?? "");
        else for (const text of textsOf(cooked ?? "")) add(text);
        return;
      }
      case "TaggedTemplateExpression":
        visit(node["quasi"], nameOf(node["tag"]) === "html");
        return;
      case "NewExpression": {
        const name = nameOf(node["callee"]);
        const given = node["arguments"] as readonly unknown[];
        visit(errors.test(name) ? (name === "ParleyError" ? given.slice(2) : []) : given);
        return;
      }
      case "CallExpression":
        if (forOperators.test(nameOf(node["callee"])) || forOperators.test(ownerOf(node["callee"]))) return;
    }
    for (const [key, child] of Object.entries(node))
      if (key !== "key" || node["computed"] === true) visit(child, isMarkup);
  };
  visit(parseSync(file, source).program);
  return found;
}

function nameOf(callee: unknown): string {
  const { name, property } = callee as { name?: string; property?: { name?: string } };
  return name ?? property?.name ?? "";
}

/** Returns the name of the object that a method is called on. */
function ownerOf(callee: unknown): string {
  const { object } = callee as { object?: unknown };
  return object === undefined ? "" : nameOf(object);
}

/** Returns the text between tags, and what labels say. */
function textsOf(markup: string): string[] {
  const labels = [...markup.matchAll(/(?:aria-label|title|placeholder|alt)="([^"]*)"/g)].map(
    ([, text = ""]) => text,
  );
  return [
    ...labels,
    ...markup
      .replaceAll(/<[^>]*>/g, "<")
      .split("<")
      .map((text) => text.slice(text.lastIndexOf(">") + 1)),
  ].filter((text) => !/[="/>]/.test(text));
}
