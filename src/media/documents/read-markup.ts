import { Parser, type ParserOptions } from "htmlparser2";
import type { MarkdownWriter } from "./markdown-writer.ts";

type Attributes = Readonly<Record<string, string>>;

/** What is done with the elements of one kind of document. */
export interface MarkupRules {
  /** @returns `skip`: the element's content is not read */
  open(name: string, attributes: Attributes): "skip" | undefined;
  close(name: string): void;
  /** Whether text at this point belongs to the document. Default: all of it. */
  readonly isText?: () => boolean;
}

const sliceBytes = 65_536;

/** Reads XML or HTML slice by slice into a writer, until it is full. */
export function readMarkup(
  bytes: Uint8Array,
  rules: MarkupRules,
  writer: MarkdownWriter,
  options: ParserOptions = { xmlMode: true },
): void {
  let skipped = 0;
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        if (skipped > 0 || rules.open(name, attributes) === "skip") skipped += 1;
      },
      onclosetag(name) {
        if (skipped > 0) skipped -= 1;
        else rules.close(name);
      },
      ontext(text) {
        if (skipped === 0 && (rules.isText?.() ?? true)) writer.text(text);
      },
    },
    options,
  );
  const decoder = new TextDecoder(bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : "utf-8");
  for (let at = 0; at < bytes.length && !writer.isFull(); at += sliceBytes) {
    parser.write(decoder.decode(bytes.subarray(at, at + sliceBytes), { stream: true }));
  }
  // Also a document that was cut off: what was read of it stays.
  parser.end();
}
