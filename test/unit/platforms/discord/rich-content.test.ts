import { describe, expect, test } from "vitest";
import { readMessage } from "../../../../src/platforms/discord/incoming.ts";
import { readRichParts } from "../../../../src/platforms/discord/rich-content.ts";

const all = { hasButtons: true };

describe("readRichParts", () => {
  test("an embed is read with its fields, without the address that the text has already", () => {
    const url = "https://example.com/a";
    const embed = {
      title: "Title",
      url,
      description: "About it",
      author: { name: "A site" },
      fields: [{ name: "Price", value: "3" }],
      footer: { text: "Below" },
    };
    const text = "A site\nTitle\nAbout it\nPrice: 3\nBelow";
    expect(readRichParts({ content: `see ${url}`, embeds: [embed] }, all)).toEqual([
      { label: "Embed", text },
    ]);
    expect(readRichParts({ embeds: [embed] }, all)[0]?.text).toContain(url);
  });

  test("a poll is read with its answers and votes", () => {
    const poll = {
      question: { text: "Tea?" },
      answers: [
        { answer_id: 1, poll_media: { text: "Yes" } },
        { answer_id: 2, poll_media: { text: "No", emoji: { id: null, name: "🙅" } } },
      ],
      expiry: "2026-01-01T00:00:00.000Z",
      allow_multiselect: true,
      layout_type: 1,
      results: { is_finalized: false, answer_counts: [{ id: 2, count: 1, me_voted: false }] },
    };
    expect(readRichParts({ poll }, all)).toEqual([
      { label: "Poll", text: "Tea?\n1. Yes\n2. 🙅 No (1 vote)\n(several answers may be chosen)" },
    ]);
  });

  test("components are read at every level; labels of buttons only where they are content", () => {
    const components = [
      {
        type: 17,
        components: [
          {
            type: 9,
            components: [{ type: 10, content: "Inside" }],
            accessory: { type: 11, media: { url: "x" }, description: "A cat" },
          },
          { type: 12, items: [{ media: { url: "x" }, description: "A dog" }, { media: { url: "x" } }] },
        ],
      },
      {
        type: 1,
        components: [
          { type: 2, style: 5, label: "Open", url: "https://example.com" },
          { type: 3, custom_id: "a", placeholder: "Which?", options: [{ label: "One", value: "1" }] },
        ],
      },
      { type: 99, content: "of a later type" },
    ] as never[];
    const read = (hasButtons: boolean) => readRichParts({ components }, { hasButtons })[0]?.text;
    expect(read(false)).toBe("Inside\n[picture: A cat]\n[picture: A dog]");
    expect(read(true)).toContain("[button: Open https://example.com]\n[select: Which?: One]");
  });

  test("is bounded, whatever a message holds, and says that it is cut", () => {
    const embeds = Array.from({ length: 10 }, () => ({ description: "😀".repeat(2048) }));
    const parts = readRichParts({ embeds }, all);
    expect(parts.reduce((sum, part) => sum + part.text.length, 0)).toBeLessThan(6100);
    expect(parts.at(-1)?.text).toMatch(/\(cut\)$/);
    let nested: unknown = { type: 10, content: "deep" };
    for (let level = 0; level < 10_000; level += 1) nested = { type: 17, components: [nested] };
    expect(readRichParts({ components: [nested] as never[] }, all)).toEqual([]);
  });
});

test("a message's embeds, stickers and the message that it forwards are marked quotes", () => {
  const names = {
    botId: "1",
    botName: "Parley",
    botRoleId: undefined,
    roleName: () => undefined,
    channelName: () => undefined,
  };
  const message = {
    id: "10",
    channel_id: "20",
    author: { id: "30" },
    content: "look",
    sticker_items: [{ id: "1", name: "Wave", format_type: 1 }],
    embeds: [{ title: "Title" }],
    message_snapshots: [
      { message: { content: "their words", embeds: [{ title: "Theirs" }], attachments: [] } },
    ],
  };
  expect(readMessage(message as never, names).text).toBe(
    "look\n\n> Sticker:\n> Wave\n\n> Embed:\n> Title\n\n> Forwarded message:\n> their words\n> \n> > Embed:\n> > Theirs",
  );
});
