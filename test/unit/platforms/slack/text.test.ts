import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { committablePrefix, hasLink } from "../../../../src/platforms/slack/reply/native-stream.ts";
import { toParleyError } from "../../../../src/platforms/slack/errors.ts";
import {
  escapeMarkdown,
  cutText,
  escapedBytes,
} from "../../../../src/platforms/slack/reply/escape-markdown.ts";
import type { SlackMessageInfo } from "../../../../src/platforms/slack/address.ts";
import { growthOf } from "../../../support/growth.ts";
import {
  mentions,
  toPlainText,
  readRichContent,
} from "../../../../src/platforms/slack/intake/read-message.ts";

describe("Markdown", () => {
  test("escapedBytes counts bytes after escaping", () => {
    expect(escapedBytes("a<é")).toBe(1 + 4 + 2);
  });

  test("cutText does not split a surrogate pair", () => {
    expect(cutText("ab😀cd", 4)).toBe("ab…");
    expect(cutText("abcd", 4)).toBe("abcd");
  });
});

describe("plain text", () => {
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
      ["see <https://a.example|a > b & c | d>", "see a > b & c | d (https://a.example)"],
      [
        "see <https://a.example|a &gt; b &amp; c | d>, 2 &gt; 1",
        "see a > b & c | d (https://a.example), 2 > 1",
      ],
      [
        "<https://a.example|one> and <https://b.example|two>",
        "one (https://a.example) and two (https://b.example)",
      ],
      ["<https://a.example?x=1&amp;y=2|a.example?x=1&amp;y=2>", "https://a.example?x=1&y=2"],
      ["<https://a.example|one> wins > two", "one (https://a.example) wins > two"],
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
});

describe("escaped Markdown", () => {
  const unescape = (text: string) =>
    text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
  const live = /<(?:!|@|#|https?:)/;

  describe("escapeMarkdown", () => {
    test.each([
      ["<!here> look", "&lt;!here&gt; look"],
      ["<!channel|x>", "&lt;!channel|x&gt;"],
      ["hi <@U123>", "hi &lt;@U123&gt;"],
      ["a &lt; b && c", "a &amp;lt; b &amp;&amp; c"],
      ["```\nif (a < b) {}\n```", "```\nif (a &lt; b) {}\n```"],
    ])("makes %j harmless", (markdown, expected) => {
      expect(escapeMarkdown(markdown)).toBe(expected);
    });

    test("keeps quote marks at the start of a line, and only there", () => {
      expect(escapeMarkdown("> quoted > not\n>> deeper <!here>\n  a -> b")).toBe(
        "> quoted &gt; not\n>> deeper &lt;!here&gt;\n  a -&gt; b",
      );
    });

    test.each([
      ["[b](https://e.example/?f=1&g=2) & c", "[b](https://e.example/?f=1&g=2) &amp; c"],
      ["[b & c](/x?a&b(1&2)&c) &", "[b &amp; c](/x?a&b(1&2)&c) &amp;"],
      ['![b](/x?a&b "t & u")', '![b](/x?a&b "t &amp; u")'],
      ["[b](<!here>&<@U1>)", "[b](%3C!here%3E&%3C@U1%3E)"],
      ["[b](&lt;!here&gt;)", "[b](&lt;!here&gt;)"],
      ["`[b](a&b)` [c](d&e)", "`[b](a&amp;b)` [c](d&e)"],
      ["```\n[b](a&b)\n```\n[c](d&e)", "```\n[b](a&amp;b)\n```\n[c](d&e)"],
      ["> - [b](a&b)", "> - [b](a&b)"],
      ["[b](a&b", "[b](a&amp;b"],
    ])("keeps the & of a link's destination: %j", (markdown, expected) => {
      expect(escapeMarkdown(markdown)).toBe(expected);
    });

    test("takes time linear in the length of the text", () => {
      for (const part of ["](", "](a", "`", "` ``", "[x](a&b)", "](((", "<&>"]) {
        const make = (size: number) => part.repeat(size / part.length);
        expect(growthOf(make, escapeMarkdown, { size: 25_000 }), part).toBeLessThan(3);
      }
    });

    test("leaves no control sequence and loses no character", () => {
      fc.assert(
        fc.property(
          fc.string({ unit: fc.constantFrom(...Array.from("<>!@#|&;ltgamp \nhereU1:/[]()`%3CE"), "](") }),
          (markdown) => {
            const escaped = escapeMarkdown(markdown);
            expect(escaped).not.toMatch(live);
            expect(escaped).not.toContain("<");
            // A destination shows the model's own entities as they are.
            if (!markdown.includes("](")) expect(unescape(escaped)).toBe(markdown);
            expect(Buffer.byteLength(escaped)).toBeLessThanOrEqual(escapedBytes(markdown));
          },
        ),
      );
    });
  });
});

describe("what a stream can begin with", () => {
  describe("committablePrefix", () => {
    test.each([
      ["The meeting mov", "The meeting mov"],
      ["The meeting moves. ", "The meeting moves. "],
      ["It is **very", "It is "],
      ["It is **very** good ", "It is **very** good "],
      ["It is *very", "It is "],
      ["Call `f(a, ", "Call "],
      ["Call `f(a_b*c)` now ", "Call `f(a_b*c)` now "],
      ["See [the page", "See "],
      ["See [the page]", "See "],
      ["See [1] and ", "See [1] and "],
      ["snake_case_name and ", "snake_case_name and "],
      ["* one\n* two ", "* one\n* two "],
      ["2 * 3 is ", "2 * 3 is "],
      ["Look:\n\n```js\nlet a", "Look:\n\n"],
      ["Look:\n\n```js\nlet a\n```", "Look:\n\n"],
      ["Look:\n\n```js\nlet a\n```\n", "Look:\n\n"],
      ["Look:\n\n```js\nlet a\n```\nAnd on ", "Look:\n\n```js\nlet a\n```\nAnd on "],
      ["Table:\n\n|a|b|\n|-|-|\n|1|2", "Table:\n\n"],
      ["Table:\n\n|a|b|\n|-|-|\n|1|2|\n\nAfter ", "Table:\n\n|a|b|\n|-|-|\n|1|2|\n\nAfter "],
      ["unclosed **here\n\nand on ", "unclosed **here\n\nand on "],
      ["", ""],
    ])("of %j is %j", (markdown, expected) => {
      expect(committablePrefix(markdown)).toBe(expected);
    });

    test("of a growing text grows by appending, also escaped", () => {
      const words = fc.constantFrom(
        "a ",
        "b",
        "**",
        "*",
        "_",
        "`",
        "```\n",
        "~~",
        "\n",
        "\n\n",
        "|x|",
        "> ",
        "[",
        "]",
        "<!here>",
        "&",
        "- ",
      );
      fc.assert(
        fc.property(fc.array(words, { maxLength: 30 }), (parts) => {
          let text = "";
          let sent = "";
          for (const part of parts) {
            text += part;
            const prefix = committablePrefix(text);
            expect(text.startsWith(prefix)).toBe(true);
            // Text that is held back after it was sent stays sent.
            if (prefix.length < sent.length) expect(sent.startsWith(prefix)).toBe(true);
            else sent = prefix;
            expect(escapeMarkdown(text).startsWith(escapeMarkdown(sent))).toBe(true);
          }
        }),
      );
    });

    test("takes time linear in the length of the text", () => {
      for (const part of ["**a", "`", "[", "]", "_a ", "|a|\n", "```\n", "~~", "*"]) {
        const make = (size: number) => part.repeat(size / part.length);
        expect(growthOf(make, committablePrefix, { size: 10_000 }), part).toBeLessThan(3);
      }
    });
  });

  test.each([
    ["https://e.example", true],
    ["[a](b)", true],
    ["www.e.example", true],
    ["e.example/secret?x", true],
    ["see file.ts, e.g. this", false],
    ["a [1] b", false],
  ])("hasLink(%j) is %j", (markdown, expected) => {
    expect(hasLink(markdown)).toBe(expected);
  });
});

describe("rich content", () => {
  const of = (message: Partial<SlackMessageInfo>) => readRichContent({ ts: "1.1", ...message });
  const plain = (text: string) => ({ type: "plain_text", text });
  const said = (text: string) => ({ type: "rich_text_section", elements: [{ type: "text", text }] });

  describe("a message of an app", () => {
    test("is read from its blocks, whatever its notification says", () => {
      const blocks = [
        { type: "header", text: plain("Deploy <1>") },
        {
          type: "section",
          text: { type: "mrkdwn", text: "*prod*" },
          fields: [plain("v3")],
          accessory: { type: "button", text: plain("Roll back") },
        },
        {
          type: "context",
          elements: [
            { type: "mrkdwn", text: "by <@U1>" },
            { type: "image", alt_text: "logo" },
          ],
        },
        { type: "divider" },
        {
          type: "rich_text",
          elements: [
            said("plain & simple"),
            { type: "rich_text_list", style: "bullet", elements: [said("one"), said("two")] },
            {
              type: "rich_text_section",
              elements: [
                { type: "user", user_id: "U2" },
                { type: "emoji", name: "tada" },
              ],
            },
            {
              type: "rich_text_section",
              elements: [{ type: "link", url: "https://a.example", text: "here" }],
            },
          ],
        },
        {
          type: "table",
          rows: [
            [
              { type: "raw_text", text: "a" },
              { type: "rich_text", elements: [said("b")] },
            ],
          ],
        },
        { type: "image", alt_text: "A graph" },
        { type: "markdown", text: "**bold**" },
        { type: "from the future", whatever: 1 },
      ];
      expect(of({ bot_id: "B1", text: "New deploy", blocks }).markup).toBe(
        [
          "Deploy &lt;1&gt;",
          "*prod*\nv3\n[button: Roll back]",
          "by <@U1> [picture: logo]",
          "plain &amp; simple\n- one\n- two\n<@U2>:tada:\nhere (https://a.example)",
          "a | b",
          "[picture: A graph]",
          "**bold**",
        ].join("\n"),
      );
    });

    test("has lists inside of lists indented, wherever the app puts them", () => {
      const list = (style: string, ...elements: unknown[]) => ({ type: "rich_text_list", style, elements });
      const item = (text: string, ...inner: unknown[]) => ({
        type: "rich_text_section",
        elements: [{ type: "text", text }, ...inner],
      });
      const elements = [
        list("ordered", said("one"), list("bullet", said("a"), list("bullet", said("deep"))), said("two")),
        list("bullet", item("three", list("ordered", said("b"), said("c"))), said("four")),
      ];
      expect(of({ bot_id: "B1", blocks: [{ type: "rich_text", elements }] }).markup).toBe(
        ["1. one", "    - a", "        - deep", "2. two", "- three", "    1. b", "    2. c", "- four"].join(
          "\n",
        ),
      );
    });

    test("has its dates, code and lists as they are shown", () => {
      const list = (style: string, indent: number, ...items: string[]) => ({
        type: "rich_text_list",
        style,
        indent,
        elements: items.map((item) => said(item)),
      });
      const date = { type: "date", timestamp: 1_790_000_000, format: "{date}" };
      const elements = [
        {
          type: "rich_text_section",
          elements: [
            { type: "text", text: "call " },
            { type: "text", text: "f(a < b)", style: { code: true } },
            { type: "text", text: " by " },
            { ...date, fallback: "September 21" },
            { type: "text", text: " or " },
            date,
          ],
        },
        { type: "rich_text_preformatted", elements: [{ type: "text", text: "let a;\nlet b;" }] },
        list("ordered", 0, "one", "two"),
        list("bullet", 1, "inside"),
        { ...list("ordered", 0, "three"), offset: 2 },
        { type: "rich_text_quote", elements: [{ type: "text", text: "first\nsecond" }] },
      ];
      expect(of({ bot_id: "B1", blocks: [{ type: "rich_text", elements }] }).markup).toBe(
        [
          "call `f(a &lt; b)` by September 21 or 2026-09-21T14:13:20.000Z",
          "```\nlet a;\nlet b;\n```",
          "1. one\n2. two",
          "    - inside",
          "3. three",
          "> first\n> second",
        ].join("\n"),
      );
    });

    test("is its text where it has no blocks, or the text says the same and more", () => {
      expect(of({ bot_id: "B1", text: "beep" }).markup).toBe("beep");
      const blocks = [{ type: "section", text: plain("beep") }];
      expect(of({ bot_id: "B1", text: "beep boop", blocks }).markup).toBe("beep boop");
    });
  });

  describe("a message of a person", () => {
    test("is its text: what people type is in the blocks too", () => {
      expect(
        of({ user: "U1", text: "hi", blocks: [{ type: "rich_text", elements: [said("hi")] }] }).markup,
      ).toBe("hi");
    });

    test("has a table of its own blocks, which its text lacks", () => {
      const cell = (text: string) => ({ type: "raw_text", text });
      const table = {
        type: "table",
        rows: [
          [cell("a"), cell("b")],
          [cell("1"), cell("2")],
        ],
      };
      expect(of({ user: "U1", text: "what is this?", blocks: [table] }).markup).toBe(
        "what is this?\n\na | b\n1 | 2",
      );
      expect(of({ user: "U1", text: "a | b\n1 | 2", blocks: [table] }).markup).toBe("a | b\n1 | 2");
    });

    test("has forwarded messages and previews as marked quotes, and the forwarded files", () => {
      const { markup, files } = of({
        text: "look",
        attachments: [
          { is_share: true, author_name: "Cy <x>", text: "one\ntwo", files: [{ id: "F1", name: "a.txt" }] },
          {
            is_msg_unfurl: true,
            message_blocks: [{ message: { blocks: [{ type: "section", text: plain("inside") }] } }],
          },
          { from_url: "https://a.example/p", title: "A page", text: "about" },
          { fallback: "only a fallback" },
          { unknown: true },
          "not an object",
        ],
      });
      expect(markup).toBe(
        [
          "look",
          "> Forwarded message of Cy &lt;x&gt;:\n> one\n> two",
          "> Forwarded message:\n> inside",
          "> Preview of https://a.example/p:\n> A page\n> about",
          "> Attachment:\n> only a fallback",
        ].join("\n\n"),
      );
      expect(files).toEqual([{ id: "F1", name: "a.txt" }]);
    });

    test("is cut at 6,000 characters beside its text, and nesting without end is no trouble", () => {
      const attachments = [
        { is_share: true, text: "x".repeat(7000) },
        { is_share: true, text: "never" },
      ];
      const { markup } = of({ text: "t", attachments });
      expect(markup.length).toBeLessThan(6100);
      expect(markup).toContain("(cut)");
      expect(markup).not.toContain("never");
      let nested: Record<string, unknown> = said("deep");
      for (let depth = 0; depth < 5000; depth += 1)
        nested = { type: "rich_text_section", elements: [nested] };
      expect(of({ bot_id: "B", blocks: [{ type: "rich_text", elements: [nested] }] }).markup).toBe("");
    });
  });
});

describe("errors", () => {
  const platformError = (error: string, more: object = {}) =>
    Object.assign(new Error(`An API error occurred: ${error}`), {
      code: "slack_webapi_platform_error",
      data: { ok: false, error, ...more },
    });

  describe("toParleyError", () => {
    test.each([
      ["invalid_auth", "platform-unauthorized"],
      ["token_revoked", "platform-unauthorized"],
      ["missing_scope", "platform-forbidden"],
      ["not_in_channel", "platform-forbidden"],
      ["internal_error", "platform-unreachable"],
      ["update_failed", "platform-unreachable"],
      ["file_update_failed", "platform-unreachable"],
      ["org_login_required", "platform-unreachable"],
      ["msg_too_long", "platform-rejected"],
    ])("%s is %s", (word, code) => {
      const error = toParleyError(platformError(word), "chat.postMessage");
      expect(error.code).toBe(code);
      expect(error.detail["slackError"]).toBe(word);
    });

    test("names the setting whose token was refused", () => {
      expect(toParleyError(platformError("invalid_auth"), "auth.test").message).toContain("SLACK_BOT_TOKEN");
      const app = toParleyError(platformError("invalid_auth"), "apps.connections.open", "SLACK_APP_TOKEN");
      expect(app.message).toContain("SLACK_APP_TOKEN");
    });

    test("names the missing scope", () => {
      const error = toParleyError(platformError("missing_scope", { needed: "files:write" }), "files.info");
      expect(error.detail["permission"]).toBe("the scope files:write");
    });

    test("says what a channel lacks", () => {
      const permissionOf = (word: string) =>
        toParleyError(platformError(word), "chat.postMessage").detail["permission"];
      expect(permissionOf("not_in_channel")).toBe("an invitation to this channel");
      expect(permissionOf("is_archived")).toBe("a channel that is not archived");
    });

    test("a rate limit says how long to wait", () => {
      const limited = Object.assign(new Error("limited"), { retryAfter: 7 });
      expect(toParleyError(limited, "chat.update").retryAfterMs).toBe(7000);
      // These come with HTTP status 200, and without Retry-After.
      for (const word of ["ratelimited", "rate_limited"])
        expect(toParleyError(platformError(word), "chat.update").retryAfterMs).toBe(1000);
    });

    test("a network error and a server error are unreachable", () => {
      expect(toParleyError(new Error("socket hang up"), "auth.test").code).toBe("platform-unreachable");
      const http = Object.assign(new Error("http"), { statusCode: 503 });
      expect(toParleyError(http, "auth.test").code).toBe("platform-unreachable");
    });
  });
});

test("channels that Slack sends without a name have the name of a public channel", async () => {
  const text = await toPlainText("in <#C1|ideas>, <#C2|>, <#C3> and <#G4>", {
    botUserId: "UBOT",
    nameOf: (id) => Promise.resolve(id),
    channelNameOf: (id) =>
      Promise.resolve(
        new Map([
          ["C2", "plans"],
          ["C3", "lunch"],
        ]).get(id),
      ),
  });
  expect(text).toBe("in #ideas, #plans, #lunch and #G4");
});

// Attack: A Slack message with thousands of mentions of nobody. What holds: 20 names are looked up
// a message, 100 at once in all.
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
