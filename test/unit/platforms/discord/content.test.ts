import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  cut,
  maxPieceChars,
  toDiscordContent,
  toDiscordMarkdown,
} from "../../../../src/platforms/discord/reply/content.ts";
import { fitFiles } from "../../../../src/platforms/discord/intake/files.ts";
import { readMessage, readRichParts } from "../../../../src/platforms/discord/intake/incoming.ts";
import { toThreadName } from "../../../../src/platforms/discord/reply/threads.ts";

describe("content", () => {
  describe("toDiscordContent", () => {
    test("pings nobody and suppresses previews, whatever the text", () => {
      const shown = toDiscordContent({ text: "@everyone https://example.com", state: "finished" });
      expect(shown).toMatchObject({ allowed_mentions: { parse: [] }, flags: 4, components: [] });
    });

    test("a status is below an open code block, not in it", () => {
      const shown = toDiscordContent({ text: "```js\nlet x", state: "streaming", status: "Drawing" });
      expect(shown.content).toBe("```js\nlet x\n```\n-# Drawing");
    });

    test("a status that does not fit is cut, and the text above it is not", () => {
      const text = "t".repeat(maxPieceChars);
      const { content } = toDiscordContent({ text, state: "streaming", status: "s".repeat(900) });
      expect(content).toMatch(/^t+\n-# s+$/);
      expect(content).toHaveLength(2000);
    });

    test("a key too long for a custom id shows no button", () => {
      const failed = { text: "", state: "failed", failure: "No." } as const;
      expect(toDiscordContent({ ...failed, retryKey: "discord:1" }).components).toHaveLength(1);
      expect(toDiscordContent({ ...failed, retryKey: "x".repeat(95) }).components).toEqual([]);
    });

    test("the buttons stand in rows of five; those that rate the answer are the last, with a thumb", () => {
      const kinds = ["regenerate", "model", "continue", "transcript", "details", "good", "bad"] as const;
      const actions = kinds.map((kind) => ({ kind, key: "discord:1 /discord:2/answer 1" }));
      const { components } = toDiscordContent({ text: "Yes.", state: "finished", actions });
      const rows = components.map((row) => row.components as { label?: string; emoji?: { name: string } }[]);
      expect(rows.map((row) => row.length)).toEqual([5, 2]);
      expect(rows[1]?.map(({ label, emoji }) => [emoji?.name, label])).toEqual([
        ["👍", "Good answer"],
        ["👎", "Bad answer"],
      ]);
    });

    test("cut does not split surrogate pairs", () => {
      expect(cut("ab😀", 3)).toBe("ab");
      expect(cut("ab😀", 4)).toBe("ab😀");
    });
  });

  describe("toThreadName", () => {
    test("is one line of 1 to 100 characters", () => {
      expect(toThreadName("  Plan\n a   trip ")).toBe("Plan a trip");
      expect(toThreadName("")).toBe("Conversation");
      expect(toThreadName("x".repeat(300)).length).toBe(100);
    });
  });

  describe("fitFiles", () => {
    const file = (name: string, sizeBytes: number) => ({
      name,
      mediaType: "text/markdown",
      bytes: new Uint8Array(sizeBytes),
      altText: "a".repeat(2000),
    });

    test("distributes files over messages within the request limit, with alt texts within bounds", async () => {
      const mib = 1024 * 1024;
      const batches = await fitFiles([file("a", 9 * mib), file("b", 9 * mib), file("c", 9 * mib)], 10 * mib);
      expect(batches.map((batch) => batch.map((one) => one.name))).toEqual([["a", "b"], ["c"]]);
      expect(batches[0]?.[0]?.altText.length).toBe(1024);
      const many = await fitFiles(
        Array.from({ length: 11 }, (_, index) => file(`${index}`, 1)),
        mib,
      );
      expect(many.map((batch) => batch.length)).toEqual([10, 1]);
    });

    test("scales down a picture above the limit, and rejects other files", async () => {
      const { default: sharp } = await import("sharp");
      const noise = Buffer.from(Array.from({ length: 300 * 300 * 3 }, (_, index) => (index * 7919) % 251));
      const bytes = await sharp(noise, { raw: { width: 300, height: 300, channels: 3 } })
        .png()
        .toBuffer();
      const maxBytes = Math.floor(bytes.length / 2);
      const picture = { name: "big.png", mediaType: "image/png", bytes, altText: "noise" };
      const [[shown] = []] = await fitFiles([picture], maxBytes);
      expect((shown!.data as Uint8Array).length).toBeLessThanOrEqual(maxBytes);
      expect(shown?.name).toMatch(/^big\.(png|jpg|webp)$/);
      await expect(fitFiles([file("a.md", 100)], 50)).rejects.toMatchObject({ code: "attachment-too-large" });
    });
  });
});

describe("toDiscordMarkdown", () => {
  test("converts a narrow table to an aligned code block", () => {
    const table = "| Name | Age |\n|:-----|----:|\n| **Ada** | 36 |\n| 李 | 7 |";
    expect(toDiscordMarkdown(`Before\n${table}\nAfter`)).toBe(
      "Before\n```\nName  Age\n----  ---\nAda    36\n李      7\n```\nAfter",
    );
  });

  test("leaves a wide table unchanged", () => {
    const table = `| A | B |\n|---|---|\n| ${"x".repeat(60)} | ${"y".repeat(60)} |`;
    expect(toDiscordMarkdown(table)).toBe(table);
  });

  test("leaves code unchanged, tables and headings in it included", () => {
    const code = "```md\n#### not a heading\n| a | b |\n|---|---|\n| 1 | 2 |\n```";
    expect(toDiscordMarkdown(code)).toBe(code);
  });

  test("leaves code in a list item unchanged", () => {
    const code = "- item\n\n  ```md\n  #### not a heading\n  ```";
    expect(toDiscordMarkdown(code)).toBe(code);
  });

  test("replaces syntax that Discord does not render", () => {
    expect(toDiscordMarkdown("#### Deep\n\n---\n![a cat](https://example.com/cat.png)")).toBe(
      "**Deep**\n\n──────────\n[a cat](https://example.com/cat.png)",
    );
    expect(toDiscordMarkdown("# Title\n- point\n1. one")).toBe("# Title\n- point\n1. one");
  });

  test.for([
    ["an address alone", "[https://a.example/x](https://a.example/x)", "https://a.example/x"],
    [
      "another address, which says where it leads",
      "[https://bank.example](https://b.example/y)",
      "https://b.example/y",
    ],
    [
      "marks around it",
      "see [**https://a.example**](https://a.example) there",
      "see https://a.example there",
    ],
    ["words and the same address", "[docs: https://a.example](https://a.example)", "docs: https://a.example"],
    [
      "words and another address",
      "[docs https://a.example](https://b.example)",
      "docs https://a.example (<https://b.example>)",
    ],
    ["a picture's words", "![https://a.example](https://b.example/c.png)", "https://b.example/c.png"],
    ["no address", "[a.example](https://a.example)", "[a.example](https://a.example)"],
    ["the beginning of one", "[hello https://](https://a.example)", "[hello https://](https://a.example)"],
  ] as const)("a link whose label is %s is shown without brackets", ([, source, shown]) => {
    expect(toDiscordMarkdown(source)).toBe(shown);
  });

  test("a source whose title is its address is shown as that", () => {
    const source = { number: 1, url: "https://a.example/x", label: "https://a.example/x", host: "a.example" };
    const { content } = toDiscordContent({ text: "So.", state: "finished", sources: [source] });
    expect(content).toContain("-# 1. <https://a.example/x> (a\\.example)");
  });

  test("keeps every word of a table", () => {
    const cell = fc.stringMatching(/^[a-z]{1,8}$/);
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, cell, cell), { minLength: 1, maxLength: 6 }), (rows) => {
        const table = ["| a | b | c |", "|---|---|---|", ...rows.map((row) => `| ${row.join(" | ")} |`)].join(
          "\n",
        );
        const shown = toDiscordMarkdown(table);
        for (const row of rows) for (const word of row) expect(shown).toContain(word);
        expect(shown.startsWith("```\n") && shown.endsWith("\n```")).toBe(true);
      }),
    );
  });
});

describe("rich content", () => {
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
      botNames: [],
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
});
