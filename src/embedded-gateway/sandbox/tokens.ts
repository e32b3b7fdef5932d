/** Most characters in one token. */
const tokenChars = 16;
/** The first tokens of a text are single words. */
const singleWords = 64;

/**
 * The sandbox's tokens: single words at first, so that a small `max_tokens` cuts where a real model would at the latest;
 * then as many whole words as fit 16 characters, so that an answer of 9,000 characters fits the default limit of 1,024
 * tokens. Longer words are cut. Joined they are the text again.
 */
export function toTokens(text: string): string[] {
  const tokens: string[] = [];
  for (const word of toWords(text)) {
    const last = tokens.at(-1);
    if (last === undefined || tokens.length <= singleWords || last.length + word.length > tokenChars)
      tokens.push(word);
    else tokens[tokens.length - 1] = last + word;
  }
  return tokens;
}

/** Longer texts are counted by their length past this many characters. */
const maxCountedChars = 2000;

/** The number of tokens of a text; of a long one by its length, since prompts can be megabytes. */
export function countTokens(text: string): number {
  const rest = Math.max(0, text.length - maxCountedChars);
  return toTokens(text.slice(0, maxCountedChars)).length + Math.ceil(rest / tokenChars);
}

/** Words with the white space before them, none longer than a token; surrogate pairs stay whole. */
export function toWords(text: string): string[] {
  return text.match(/\s{0,15}(?:[^\s\uD800-\uDFFF]|[\uD800-\uDBFF][\uDC00-\uDFFF]){1,14}|[^]{1,2}/g) ?? [];
}
