/**
 * JSON with `//` and `/* *\/` comments and commas before closing brackets, as plain JSON. Comments become blanks, so
 * that a parser's positions still hold.
 */
export function withoutComments(text: string): string {
  const blank = (found: string): string => found.replaceAll(/[^\n]/g, " ");
  const token = /"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[^]*?\*\//g;
  const plain = text.replaceAll(token, (found) => (found.startsWith('"') ? found : blank(found)));
  return plain.replaceAll(/"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])/g, (found) => (found === "," ? " " : found));
}
