import { describe, expect, test } from "vitest";
import type { SlackMessageInfo } from "../../../../src/platforms/slack/message-info.ts";
import { readRichContent } from "../../../../src/platforms/slack/rich-content.ts";

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
          { type: "rich_text_section", elements: [{ type: "link", url: "https://a.example", text: "here" }] },
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
    for (let depth = 0; depth < 5000; depth += 1) nested = { type: "rich_text_section", elements: [nested] };
    expect(of({ bot_id: "B", blocks: [{ type: "rich_text", elements: [nested] }] }).markup).toBe("");
  });
});
