import { nextPiece } from "./pieces.ts";

/** How many characters are encoded at once. */
const pieceChars = 64 * 1024;

/** Encodes a text in pieces of about the same length. Others have their turns in between. */
export async function* toBytePieces(
  pieces: Iterable<string> | AsyncIterable<string>,
): AsyncGenerator<Buffer> {
  let text = "";
  for await (const piece of pieces) {
    text += piece;
    if (text.length < pieceChars) continue;
    await nextPiece();
    yield Buffer.from(text);
    text = "";
  }
  if (text !== "") yield Buffer.from(text);
}

/**
 * The JSON of a value without methods, with the values so many levels below it as pieces. It is compact, or
 * indented by two spaces more than `indent`.
 */
export function* toJsonPieces(value: unknown, levels: number, indent?: string): Generator<string> {
  if (levels === 0 || typeof value !== "object" || value === null) {
    yield indent === undefined
      ? JSON.stringify(value)
      : JSON.stringify(value, undefined, 2).replaceAll("\n", `\n${indent}`);
    return;
  }
  const inner = indent === undefined ? undefined : `${indent}  `;
  const toLine = (at: string | undefined): string => (at === undefined ? "" : `\n${at}`);
  const isList = Array.isArray(value);
  const [open, close] = isList ? "[]" : "{}";
  const fields = Object.entries(value).filter(([, one]) => one !== undefined);
  for (const [index, [name, one]] of fields.entries()) {
    const label = isList ? "" : `${JSON.stringify(name)}:${indent === undefined ? "" : " "}`;
    yield `${index === 0 ? open : ","}${toLine(inner)}${label}`;
    yield* toJsonPieces(one, levels - 1, inner);
  }
  yield fields.length === 0 ? `${open}${close}` : `${toLine(indent)}${close}`;
}

/** Encodes a text that comes in pieces. Others have their turns in between. */
export async function toBytes(pieces: Iterable<string>): Promise<Buffer> {
  const bytes: Buffer[] = [];
  for await (const piece of toBytePieces(pieces)) bytes.push(piece);
  return Buffer.concat(bytes);
}
