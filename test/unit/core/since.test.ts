import { expect, test } from "vitest";
import { parseSince } from "../../../commands/summarize.ts";

const now = Date.parse("2026-11-22T10:30:00Z");
const at = (text: string): string | undefined => {
  const since = parseSince(text, now);
  return since === undefined ? undefined : new Date(since).toISOString().slice(0, 16);
};

test.each([
  ["30m", "2026-11-22T10:00"],
  ["2h", "2026-11-22T08:30"],
  ["3 days", "2026-11-19T10:30"],
  ["1W", "2026-11-15T10:30"],
  ["90 minutes", "2026-11-22T09:00"],
  [" today ", "2026-11-22T00:00"],
  ["yesterday", "2026-11-21T00:00"],
  ["2026-11-20", "2026-11-20T00:00"],
  ["2026-11-20 09:30", "2026-11-20T09:30"],
])("%s is %s", (text, wanted) => {
  expect(at(text)).toBe(wanted);
});

test.each(["", "soon", "tomorrow", "2026-11-23", "2026-02-31x", "2026-13-01", "99w", "5y", "-2h", "1e9h"])(
  "%s is refused",
  (text) => {
    expect(at(text)).toBeUndefined();
  },
);
