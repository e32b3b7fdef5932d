/**
 * Replaces `//` and `/* *\/` comments and trailing commas by blanks, so that positions in error messages stay right.
 */
export function withoutComments(text: string): string {
  const blank = (found: string): string => found.replaceAll(/[^\n]/g, " ");
  const token = /"(?:[^"\\\n]|\\.)*"?|\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)/g;
  const plain = text.replaceAll(token, (found) => (found.startsWith('"') ? found : blank(found)));
  return plain.replaceAll(/"(?:[^"\\\n]|\\.)*"?|,(?=\s*[}\]])/g, (found) => (found === "," ? " " : found));
}
