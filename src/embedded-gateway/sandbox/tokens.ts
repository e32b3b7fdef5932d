/** Most characters in one token. */
const tokenChars = 16;

/**
 * The sandbox's tokens: whole words with the white space before them, as many as fit 16 characters; longer words
 * are cut. Joined they are the text again. (Real tokenizers make about four characters a token; this one lets an
 * answer of 9,000 characters fit the specification's default of 1,024.)
 */
export function toTokens(text: string): string[] {
  const tokens: string[] = [];
  let token = "";
  for (const word of toWords(text)) {
    if (token !== "" && token.length + word.length > tokenChars) {
      tokens.push(token);
      token = "";
    }
    token += word;
  }
  if (token !== "") tokens.push(token);
  return tokens;
}

/** Words with the white space before them, none longer than a token; surrogate pairs stay whole. */
export function toWords(text: string): string[] {
  return text.match(/\s{0,15}(?:[^\s\uD800-\uDFFF]|[\uD800-\uDBFF][\uDC00-\uDFFF]){1,14}|[^]{1,2}/g) ?? [];
}

export function countTokens(text: string): number {
  return toTokens(text).length;
}
