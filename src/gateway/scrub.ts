const tokenLike = /\b(?:sk|pk|rk|key|gsk|xox[abprs])-[\w*.-]{4,}/gi;
const bearer = /\b(?:bearer|basic)\s+[\w~+/.*=-]{4,}/gi;
/** A whole URL, so that each character is read once; {@link toPublicUrl} then cuts it. */
const url = /(\b[a-z][a-z\d+.-]{0,30}:\/\/)([^\s"'<>]*)/gi;
const dataUri = /data:[\w/+.-]{0,100}(?:;[\w=-]{1,100}){0,8},[^\s"')]*/gi;
// oxlint-disable-next-line no-control-regex -- control characters are what it removes
const control = /[\u0000-\u001F\u007F-\u009F\u200B-\u200F\u2028-\u202E\u2066-\u2069\uFEFF]+/g;

/** A URL without query, fragment and user info. */
function toPublicUrl(_whole: string, scheme: string, rest: string): string {
  const end = rest.search(/[?#]/);
  const address = end === -1 ? rest : rest.slice(0, end);
  const path = address.indexOf("/");
  const at = address.lastIndexOf("@", path === -1 ? address.length : path);
  return scheme + address.slice(at + 1);
}

/** Makes text from the gateway safe to show and to log. */
export type Scrub = (text: string, maxChars?: number) => string;

/**
 * A function that removes the API key, anything like a token or a Bearer header, queries and user info of URLs, data
 * URIs and control characters, and cuts the text to `maxChars` (default 300).
 */
export function createScrub(apiKey: string | undefined): Scrub {
  // A shorter key would match ordinary words.
  const secrets =
    apiKey === undefined || apiKey.length < 4 ? [] : [...new Set([apiKey, encodeURIComponent(apiKey)])];
  return (text, maxChars = 300) => {
    // The result is short, and answers can be megabytes.
    let clean = text.slice(0, 8000);
    for (const secret of secrets) clean = clean.replaceAll(secret, "[key]");
    clean = clean
      .replace(dataUri, "[data]")
      .replace(bearer, "[key]")
      .replace(tokenLike, "[key]")
      .replace(url, toPublicUrl)
      .replace(control, " ")
      .replace(/ {2,}/g, " ")
      .trim();
    if (clean.length <= maxChars) return clean;
    const cut = clean.slice(0, maxChars - 1);
    // Keeps surrogate pairs whole.
    return `${/[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut}…`;
  };
}
