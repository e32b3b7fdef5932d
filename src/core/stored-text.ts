import type { StoredMessage } from "./storage.ts";

/** Characters of the messages of one read, where nobody asks for others. No model's context holds more. */
export const maxRecentChars = 8_000_000;

/** Characters of all texts of messages: what people wrote, recordings and files included. */
export function charsOf(messages: readonly StoredMessage[]): number {
  let chars = 0;
  for (const { parts } of messages) for (const part of parts) if ("text" in part) chars += part.text.length;
  return chars;
}
