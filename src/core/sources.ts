import type { AnswerSource } from "./gateway.ts";

/**
 * The pages that an answer rests on. Addresses and titles come from a gateway, and through it from anybody
 * who has a page: what is stored and what is shown passes through here.
 */

/** How many sources an answer has at most. */
export const maxSources = 10;
/** A longer address is no source. */
const maxUrlChars = 2000;
/** The longest title that is kept, in characters. A label that is shown may be shorter. */
const maxTitleChars = 200;
const maxLabelChars = 100;
/** How many characters of a title are read. */
const maxReadChars = 1000;

/** A source as people see it: a line with a number. */
export interface ShownSource {
  /** The number counts from 1, as the answer's own marks do. */
  readonly number: number;
  /** An http(s) address in ASCII, without white space, quotes and angle brackets. */
  readonly url: string;
  /**
   * One line of plain text, never empty: the title, or the address without its scheme. Each platform escapes
   * it.
   */
  readonly label: string;
  /** The host of the page where the label is a title, because a title may say anything. */
  readonly host?: string;
}

/**
 * A source that a gateway names. `undefined`: its address is none of a page on the web, has credentials or
 * characters that people cannot see, or is longer than 2,000 characters.
 */
export function toSource(address: unknown, name?: unknown): AnswerSource | undefined {
  if (typeof address !== "string" || address.length > maxUrlChars || hasUnseen.test(address))
    return undefined;
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === "") return undefined;
  if (url.username !== "" || url.password !== "" || url.href.length > maxUrlChars) return undefined;
  const title = typeof name === "string" ? cut(toLine(name), maxTitleChars) : "";
  return { url: url.href, ...(title === "" ? {} : { title }) };
}

/** The sources of several lists, each address once, at most ten. The first title of an address counts. */
export function joinSources(
  ...lists: readonly (readonly AnswerSource[] | undefined)[]
): readonly AnswerSource[] {
  const known = new Map<string, AnswerSource>();
  for (const list of lists) {
    for (const { url, title } of list ?? []) {
      const source = toSource(url, title);
      if (source === undefined) continue;
      const before = known.get(source.url);
      if (before === undefined ? known.size < maxSources : before.title === undefined)
        known.set(source.url, source);
    }
  }
  return [...known.values()];
}

/** Makes the lines that people see of an answer's sources. */
export function toShownSources(sources: readonly AnswerSource[] = []): readonly ShownSource[] {
  return joinSources(sources).map(({ url, title = "" }, index) => {
    const { host, pathname, search } = new URL(url);
    // A label that looks like an address would name another page than the one it leads to.
    const words = toLine(
      title.replaceAll(/\b[a-z][a-z\d+.-]{0,40}:\/{1,8}/gi, "").replaceAll(/:\/{1,8}/g, " "),
    );
    const isTitle = /[\p{L}\p{N}]/u.test(words);
    const address = `${host}${pathname === "/" ? "" : pathname}${search}`;
    return {
      number: index + 1,
      url,
      label: cut(isTitle ? words : address, maxLabelChars),
      ...(isTitle ? { host: cut(host, maxLabelChars) } : {}),
    };
  });
}

/** Controls, format characters such as those of the writing direction, and line separators. */
const hasUnseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
/** The same without the two that join letters and emoji, and letters that are drawn as nothing. */
const unseen = /(?![\u200C\u200D])[\p{Cc}\p{Cf}\p{Co}\p{Cn}]|[\u115F\u1160\u2800\u3164\uFFA0]/gu;

/** One line without what people cannot see, and without piles of marks above or below one letter. */
function toLine(text: string): string {
  return text
    .slice(0, maxReadChars)
    .toWellFormed()
    .replaceAll(/[\s\p{Zl}\p{Zp}]+/gu, " ")
    .replaceAll(unseen, "")
    .replaceAll(/(\p{M}{3})\p{M}+/gu, "$1")
    .replaceAll(/ {2,}/g, " ")
    .trim();
}

function cut(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : text.slice(0, maxChars).replace(/[\uD800-\uDBFF]$/, "");
}
