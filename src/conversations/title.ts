import type { StoredMessage } from "../core/storage.ts";

const maxChars = 60;
/** Made on first use: it costs 10 ms and 3 MB, which a start and an idle bot need not bear. */
let graphemes: Intl.Segmenter | undefined;

/** What a conversation is called that nobody has named: the beginning of its first message. */
export function toTitle(first: Pick<StoredMessage, "parts"> | undefined): string {
  for (const part of first?.parts ?? []) {
    const words = "text" in part ? part.text : "name" in part ? part.name : "";
    const line = words.trim().split("\n", 1)[0]?.slice(0, 1000) ?? "";
    if (line === "") continue;
    graphemes ??= new Intl.Segmenter();
    const chars = Array.from(graphemes.segment(line), ({ segment }) => segment);
    return chars.length <= maxChars ? line : `${chars.slice(0, maxChars - 1).join("")}…`;
  }
  return "Conversation";
}
