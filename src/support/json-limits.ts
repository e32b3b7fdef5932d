/** Shapes of JSON that take far more memory, stack or time than their text. */
const maxDepth = 128;
/** Values and keys. A request of thousands of messages and hundreds of tools has half as many. */
const maxValuesOfRequest = 100_000;
/** A shorter text cannot be too deep for any reader. */
const harmlessChars = 1024;

/**
 * Whether JSON text nests more than 128 levels or has more values and keys than `maxValues`, by default 100,000. To be
 * asked before parsing: a few megabytes of brackets become gigabytes of objects, and of keys half a second. Linear, and
 * fast over long strings.
 */
export function isExcessiveJson(text: string, maxValues = maxValuesOfRequest): boolean {
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
      case 0x3a:
        values += 1;
        break;
    }
    if (values > maxValues) return true;
  }
  return false;
}

/** The position of the quotation mark that ends the string which begins at `start`. */
function endOfString(text: string, start: number): number {
  const end = text.indexOf('"', start + 1);
  if (end === -1) return text.length;
  if (text.charCodeAt(end - 1) !== 0x5c) return end;
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) return at;
    if (code === 0x5c) at++;
  }
  return text.length;
}
