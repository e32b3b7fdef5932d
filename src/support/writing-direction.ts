/** What closes each mark that changes the direction of the text after it: embeddings, overrides, isolates. */
const closers: ReadonlyMap<string, string> = new Map([
  ["\u202A", "\u202C"],
  ["\u202B", "\u202C"],
  ["\u202D", "\u202C"],
  ["\u202E", "\u202C"],
  ["\u2066", "\u2069"],
  ["\u2067", "\u2069"],
  ["\u2068", "\u2069"],
]);
const marks = /[\u202A-\u202E\u2066-\u2069]/;
/** Marks inside of each other beyond this number are left out. Unicode has no meaning for more than 125. */
const maxOpen = 50;

/**
 * Balances the marks of writing direction in a text that arrives in parts: what is open at the end of a line
 * is closed there, and what closes nothing is left out. Otherwise what stands behind the text in one line
 * would be shown backwards.
 */
export function createDirectionBalance() {
  let open: string[] = [];

  function closeAll(): string {
    const all = open.toReversed().join("");
    open = [];
    return all;
  }

  function toBalanced(character: string): string {
    if (character === "\n") return closeAll() + character;
    const closer = closers.get(character);
    if (closer !== undefined) {
      if (open.length >= maxOpen) return "";
      open.push(closer);
      return character;
    }
    if (!marks.test(character)) return character;
    const from = open.lastIndexOf(character);
    return from === -1 ? "" : open.splice(from).toReversed().join("");
  }

  return {
    add: (text: string): string =>
      open.length === 0 && !marks.test(text) ? text : Array.from(text, toBalanced).join(""),
    /** Returns what closes the text. */
    end: closeAll,
  };
}
