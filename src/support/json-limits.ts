/** Shapes of JSON that take far more memory or stack than their text. */
const maxDepth = 128;
const maxValues = 1_000_000;
/** A shorter text cannot be too deep for any reader. */
const harmlessChars = 1024;

/**
 * Whether JSON text nests more than 128 levels or has more than a million values. To be asked before parsing: a few
 * megabytes of brackets become gigabytes of objects. Linear, and fast over long strings.
 */
export function isExcessiveJson(text: string): boolean {
  if (text.length <= harmlessChars) return false;
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22:
        at = endOfString(text, at);
        break;
      case 0x5b:
      case 0x7b:
        depth += 1;
        values += 1;
        if (depth > maxDepth) return true;
        break;
      case 0x5d:
      case 0x7d:
        depth -= 1;
        break;
      case 0x2c:
        values += 1;
        break;
    }
    if (values > maxValues) return true;
  }
  return false;
}

/** The position of the quotation mark that ends the string which begins at `start`. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes += 1;
    if (backslashes % 2 === 0) return end;
    end = text.indexOf('"', end + 1);
  }
  return text.length;
}
