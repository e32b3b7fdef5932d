const maxChars = 60;
/** A cut keeps whole words where at least half of the title is left. */
const minWordCutChars = 30;
/** Created on first use: it costs 10 ms and 3 MB. */
let graphemes: Intl.Segmenter | undefined;

/** A one-line title: white space folded, at most 60 characters, cut at a word with `…`. Empty for empty text. */
export function toTitle(text: string): string {
  const line = text.slice(0, 1000).replace(/\s+/g, " ").trim();
  if (line.length <= maxChars) return line;
  graphemes ??= new Intl.Segmenter();
  const chars = Array.from(graphemes.segment(line), ({ segment }) => segment);
  if (chars.length <= maxChars) return line;
  const cut = chars.slice(0, maxChars - 1).join("");
  const space = cut.lastIndexOf(" ");
  return `${space > minWordCutChars ? cut.slice(0, space) : cut}…`;
}
