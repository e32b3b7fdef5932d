import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createTextSearch } from "../../../src/conversations/text-search.ts";

const marked = async (query: string, text: string): Promise<string | undefined> =>
  (await createTextSearch(query).find(text))
    ?.map(({ text: part, isMatch }) => (isMatch ? `[${part}]` : part))
    .join("");
const matches = async (query: string, text: string): Promise<boolean> =>
  (await createTextSearch(query).find(text)) !== undefined;

describe("searching a text", () => {
  it("needs all words, without case and accents", async () => {
    expect(await matches("  CAFE  zürich ", "Ein Café in Zurich")).toBe(true);
    expect(await matches("  CAFE  zürich ", "Ein Café")).toBe(false);
    expect(await matches("ОСЛО", "план для Осло")).toBe(true);
    expect(await matches("한국", "여기는 한국입니다")).toBe(true);
    expect(await matches("ΟΔΟΣ", "οδοσήμανση")).toBe(true);
    expect(createTextSearch("plan").isEmpty).toBe(false);
    expect(createTextSearch(" \n").isEmpty).toBe(true);
    // Accents alone are nothing to look for.
    expect(createTextSearch("\u0301").isEmpty).toBe(true);
  });

  it("shows a line around the first of the words, with each of them marked", async () => {
    expect(await marked("oslo plan", "The plan\nfor Oslo, a good plan.")).toBe(
      "The [plan] for [Oslo], a good [plan].",
    );
    expect(await marked("cafe", "Das Café")).toBe("Das [Café]");
    const long = await marked("needle", `${"hay ".repeat(100)}needle ${"straw ".repeat(100)}`);
    expect(long).toMatch(/^… (?:hay )+\[needle\] (?:straw ?)+(?:\w+ )?…$/);
    expect(long?.length).toBeLessThan(230);
    // Some letters become several, but the place is found all the same.
    expect(await marked("ziel", `${"ﬃ".repeat(200)} ${"한".repeat(200)} Ziel`)).toContain("[Ziel]");
  });

  it("keeps the text, whatever it is", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: "grapheme", maxLength: 60 }),
        fc.string({ maxLength: 10 }),
        async (around, query) => {
          fc.pre(!createTextSearch(query).isEmpty);
          const text = `${around} ${query}`;
          const parts = await createTextSearch(query).find(text);
          expect(parts?.map((part) => part.text).join("")).toBe(text.replaceAll(/\s+/g, " ").trim());
        },
      ),
    );
  });

  it("finds words wherever a long text is cut into pieces", async () => {
    const hay = ["hay ", "e\u0301\u0301", "\u{1D538}", "\uFDFA"];
    for (const each of hay)
      for (let before = 7980; before < 8010; before += 1) {
        const text = `${each.repeat(before).slice(0, before)} Nee\u0301dle ${each.repeat(3000)}`;
        expect(await marked("needle", text)).toContain("[Nee\u0301dle]");
        expect(await matches("needle missing", text)).toBe(false);
      }
  });
});
