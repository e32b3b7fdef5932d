/**
 * The text of a file in UTF-8, or in UTF-16 with a byte order mark; at most `maxChars`. Invalid bytes become U+FFFD.
 * `isCut`: there is more.
 */
export function decodeText(
  bytes: Uint8Array,
  maxChars: number,
): { readonly text: string; readonly isCut: boolean } {
  const encoding =
    bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe ? "utf-16be" : "utf-8";
  // A character takes at most four bytes: longer files are not decoded to their end.
  const isLong = bytes.length > maxChars * 4;
  const whole = new TextDecoder(encoding).decode(isLong ? bytes.subarray(0, maxChars * 4) : bytes);
  return { text: whole.slice(0, maxChars), isCut: isLong || whole.length > maxChars };
}
