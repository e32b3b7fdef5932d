/** What a summary may link to and name. */
interface ReadMessages {
  /** The addresses of messages that were read, by the numbers that the model was given. */
  readonly links: ReadonlyMap<number, string>;
  /** The web addresses that stand in the messages ({@link addressesIn}). */
  readonly known: ReadonlySet<string>;
}

/** How many messages are linked at one place of a summary. */
const maxLinks = 5;

/** Web addresses as platforms find them in plain text: after a scheme, or after "www.". */
const addressPattern = /(?:\b[a-z][a-z\d+-]{0,15}:\/{1,8}|\bwww\.)[^\s<>()[\]{}"'`|\\]{0,2000}/gi;
const schemePattern =
  /(?:\b[a-z][a-z\d+-]{0,15}:\/{1,8}|:\/{1,8}|\bwww\.|\b(?:javascript|data|vbscript|mailto|tel):)/gi;
/** A link in Markdown, which may be a picture, with its label and its target. */
const linkPattern =
  /!?\[([^[\]\n]{0,300})\]\([^\S\n]{0,9}<?([^\s<>()]{0,500})>?(?:[^\S\n]{1,9}["'][^()\n]{0,200})?[^\S\n]{0,9}\)/g;
/** The numbers of messages: `[3]`, `[#3, #8]`, `[3][8]`, `【3】`. */
const citationPattern = / ?(?:!?[[【]#?\d{1,9}(?:[ ,;]{1,3}#?\d{1,9}){0,20}[\]】]){1,9}/g;
/** What begins a link, a mention or HTML in angle brackets. */
const anglePattern = /<(?=[a-z/!@#:&?\u{E000}])/giu;
/** Marks around addresses that stay. No text of a model has them when it is read. */
const marks = /[\u{E000}\u{E001}]/gu;
const held = /\u{E000}([^\u{E000}\u{E001}]{0,20000})\u{E001}/gu;

/** The web addresses in texts. */
export function addressesIn(texts: readonly string[]): ReadonlySet<string> {
  return new Set(texts.flatMap((text) => (text.toWellFormed().match(addressPattern) ?? []).map(withoutEnd)));
}

/**
 * The text of a summary with links to the messages whose numbers it names. A number that no message has is
 * dropped. Addresses that stand in the messages stay as text; those that the model has made up stay without
 * their scheme, so that no platform makes a link of them. It works on any part of a text that still grows.
 */
export function linkSummary(text: string, { links, known }: ReadMessages): string {
  return withoutLinks(text.toWellFormed(), known).replaceAll(citationPattern, (citation) => {
    const numbers = new Set((citation.match(/\d+/g) ?? []).map(Number));
    const named = [...numbers].flatMap((number) => {
      const url = links.get(number);
      return url === undefined ? [] : [`[#${number}](${url})`];
    });
    return named.length === 0 ? "" : ` ${named.slice(0, maxLinks).join(" ")}`;
  });
}

/** Plain text in place of all links, whichever way a platform would make them. */
function withoutLinks(text: string, known: ReadonlySet<string>): string {
  const labelled = text.replaceAll(marks, "").replaceAll(linkPattern, (_, label: string, target: string) => {
    // The model may have linked the number by itself.
    if (/^#?\d{1,9}$/.test(label)) return `[${label}]`;
    return known.has(target) ? `${label} ${target}` : label;
  });
  const plain = labelled.replaceAll(addressPattern, (found, at: number) => {
    const address = withoutEnd(found);
    if (!known.has(address)) return found;
    // What follows without a space could belong to the address where a platform finds it.
    const isEnd = /^(?:\s|$)/.test(labelled.slice(at + found.length, at + found.length + 1));
    return `${hold(address)}${found.slice(address.length)}${isEnd ? "" : " "}`;
  });
  return (
    plain
      // Where words would meet, a space is left between them: they could make another scheme.
      .replaceAll(schemePattern, (_, at: number) => (at === 0 || /\s/.test(plain.charAt(at - 1)) ? "" : " "))
      .replaceAll("](", "] (")
      .replaceAll(anglePattern, "‹")
      .replaceAll(held, (_, encoded: string) => decodeURIComponent(encoded))
  );
}

/** An address that stays, in a form in which nothing is taken away. */
function hold(address: string): string {
  return `\u{E000}${encodeURIComponent(address).replaceAll(".", "%2E")}\u{E001}`;
}

function withoutEnd(address: string): string {
  return address.replace(/[.,;:!?*_~]{1,50}$/, "");
}
