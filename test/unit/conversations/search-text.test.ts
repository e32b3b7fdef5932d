import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createTextSearch } from "../../../src/conversations/conversation-log.ts";

const marked = (query: string, text: string): string =>
  createTextSearch(query)
    .excerpt(text)
    .map(({ text: part, isMatch }) => (isMatch ? `[${part}]` : part))
    .join("");

describe("searching a text", () => {
  it("needs all words, without case and accents", () => {
    const search = createTextSearch("  CAFE  zürich ");
    expect(search.matches("Ein Café in Zurich")).toBe(true);
    expect(search.matches("Ein Café")).toBe(false);
    expect(createTextSearch("ОСЛО").matches("план для Осло")).toBe(true);
    expect(createTextSearch("한국").matches("여기는 한국입니다")).toBe(true);
    expect(createTextSearch("plan").isEmpty).toBe(false);
    expect(createTextSearch(" \n").isEmpty).toBe(true);
    // Accents alone are nothing to look for.
    expect(createTextSearch("\u0301").isEmpty).toBe(true);
  });

  it("shows a line around the first of the words, with each of them marked", () => {
    expect(marked("oslo plan", "The plan\nfor Oslo, a good plan.")).toBe(
      "The [plan] for [Oslo], a good [plan].",
    );
    expect(marked("cafe", "Das Café")).toBe("Das [Café]");
    const long = marked("needle", `${"hay ".repeat(100)}needle ${"straw ".repeat(100)}`);
    expect(long).toMatch(/^… (?:hay )+\[needle\] (?:straw ?)+(?:\w+ )?…$/);
    expect(long.length).toBeLessThan(230);
    // Some letters become several, but the place is found all the same.
    expect(marked("ziel", `${"ﬃ".repeat(200)} ${"한".repeat(200)} Ziel`)).toContain("[Ziel]");
  });

  it("keeps the text, whatever it is", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 60 }),
        fc.string({ maxLength: 10 }),
        (text, query) => {
          const parts = createTextSearch(query).excerpt(text);
          expect(parts.map((part) => part.text).join("")).toBe(text.replaceAll(/\s+/g, " ").trim());
        },
      ),
    );
  });
});
