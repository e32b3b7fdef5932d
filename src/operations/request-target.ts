import type { RequestTarget } from "../core/platform-module.ts";

/** One or more non-empty segments of characters that need no encoding, or `/` alone. */
const pathPattern = /^\/(?:[\w.~!$&'()*+,;=:@-]+(?:\/[\w.~!$&'()*+,;=:@-]+)*\/?)?$/;
/** What a query may contain: printable ASCII without `"`, `#`, `<`, `>` and `\`. */
const queryPattern = /^[!$-;=?-[\]-~]*$/;

/**
 * Parses the target of a request line. `undefined`: it is not in origin form, or its path could be read in two ways:
 * empty and dot segments, percent-encoding, backslashes, control characters. No path of this server needs any of them.
 */
export function parseRequestTarget(raw: string): RequestTarget | undefined {
  const mark = raw.indexOf("?");
  const path = mark === -1 ? raw : raw.slice(0, mark);
  const query = mark === -1 ? "" : raw.slice(mark + 1);
  if (!pathPattern.test(path) || !queryPattern.test(query)) return undefined;
  if (path.split("/").some((segment) => segment === "." || segment === "..")) return undefined;
  return { path, query: new URLSearchParams(query) };
}
