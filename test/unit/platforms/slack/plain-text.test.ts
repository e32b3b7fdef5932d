import { describe, expect, test } from "vitest";
import { mentions, toPlainText } from "../../../../src/platforms/slack/plain-text.ts";

const options = {
  botUserId: "UBOT",
  nameOf: (id: string) => Promise.resolve(id === "U1" ? "Ana" : id),
};

describe("toPlainText", () => {
  test.each([
    ["<@UBOT> hello", "hello"],
    ["<@UBOT>: hello", "hello"],
    ["hello <@UBOT|parley>, again", "hello again"],
    ["ask <@U1> and <@U2|bo>", "ask @Ana and @bo"],
    ["in <#C1|ideas> and <#C2> and <#C3|>", "in #ideas and #C2 and #C3"],
    ["<!here> <!subteam^S1|@crew> <!date^1^{date}|today>", "@here @crew today"],
    ["see <https://a.example/x?a=1&amp;b=2>", "see https://a.example/x?a=1&b=2"],
    ["see <https://a.example|the page>", "see the page (https://a.example)"],
    ["see <https://a.example|a.example>", "see https://a.example"],
    ["to <mailto:a@b.example|a@b.example>", "to a@b.example"],
    ["1 &lt; 2 &amp;&amp; &amp;lt;b&amp;gt;", "1 < 2 && &lt;b&gt;"],
    ["&lt;@U1&gt; typed by hand", "<@U1> typed by hand"],
    ["line one\n  indented", "line one\n  indented"],
  ])("reads %j as %j", async (text, expected) => {
    expect(await toPlainText(text, options)).toBe(expected);
  });
});

test("mentions are found with and without a label, and not in escaped text", () => {
  expect(mentions("x <@UBOT> y", "UBOT")).toBe(true);
  expect(mentions("x <@UBOT|parley> y", "UBOT")).toBe(true);
  expect(mentions("x &lt;@UBOT&gt; y", "UBOT")).toBe(false);
  expect(mentions("x <@UBOT2> y", "UBOT")).toBe(false);
});

test("of thousands of mentions in one message few are looked up, the others keep their id", async () => {
  const asked: string[] = [];
  const ids = Array.from({ length: 3000 }, (_, index) => `U${1000 + index}`);
  const nameOf = async (id: string) => {
    asked.push(id);
    return "Ana";
  };
  const text = await toPlainText(ids.map((id) => `<@${id}>`).join(" "), { botUserId: "UBOT", nameOf });
  expect(asked.length).toBeLessThanOrEqual(20);
  expect(text).toMatch(/^@Ana .*@U3999$/);
});
