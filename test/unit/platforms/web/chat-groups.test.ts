import { describe, expect, it } from "vitest";
import { loadPageModule } from "./page-module.ts";

interface Chat {
  readonly id: string;
  readonly title: string;
  readonly updatedAt: number;
  readonly isPinned?: true;
}
const { toGroups, untilMidnight } = await loadPageModule<{
  toGroups: (
    chats: readonly Chat[],
    now: number,
    words: { language: string; titles: Readonly<Record<string, string>> },
  ) => readonly { readonly title: string; readonly conversations: readonly Chat[] }[];
  untilMidnight: (now: number) => number;
}>("sidebar");

const titles = { pinned: "Pinned", today: "Today", yesterday: "Yesterday", week: "Previous 7 days" };
const at = (year: number, month: number, day: number, hour = 12): number =>
  new Date(year, month - 1, day, hour).getTime();
const chat = (id: string, updatedAt: number, isPinned?: true): Chat => ({
  id,
  title: id,
  updatedAt,
  ...(isPinned === undefined ? {} : { isPinned }),
});
const grouped = (chats: readonly Chat[], now: number, language = "en"): string[] =>
  toGroups(chats, now, { language, titles }).map(
    ({ title, conversations }) => `${title}: ${conversations.map(({ id }) => id).join(" ")}`,
  );

describe("the groups of the list of chats", () => {
  const now = at(2026, 3, 2, 1);

  it("are by day, then by month; empty ones are left out", () => {
    expect(
      grouped(
        [
          chat("just", now),
          chat("midnight", at(2026, 3, 2, 0)),
          chat("late", at(2026, 3, 1, 23)),
          chat("early", at(2026, 3, 1, 0)),
          chat("days", at(2026, 2, 28, 23)),
          chat("last", at(2026, 2, 23, 0)),
          chat("before", at(2026, 2, 22, 23)),
          chat("january", at(2026, 1, 31)),
          chat("year", at(2025, 12, 31)),
        ],
        now,
      ),
    ).toEqual([
      "Today: just midnight",
      "Yesterday: late early",
      "Previous 7 days: days last",
      "February: before",
      "January: january",
      "December 2025: year",
    ]);
    expect(grouped([], now)).toEqual([]);
  });

  it("begin with the pinned chats, however old they are", () => {
    expect(grouped([chat("new", now), chat("old", at(2020, 1, 1), true)], now)).toEqual([
      "Pinned: old",
      "Today: new",
    ]);
  });

  it("name months in the language of the page", () => {
    expect(grouped([chat("x", at(2025, 5, 5))], now, "de")).toEqual(["Mai 2025: x"]);
  });

  it("change at midnight", () => {
    expect(untilMidnight(at(2026, 3, 2, 23))).toBe(60 * 60 * 1000);
    expect(untilMidnight(at(2026, 3, 2, 24) - 1)).toBe(1000);
  });
});
