import { Lexer, type Token, type Tokens } from "marked";
import { describe, expect, test } from "vitest";
import { joinSources, toSource } from "../../../src/core/sources.ts";
import type { AnswerSource } from "../../../src/core/gateway.ts";
import { planEnding } from "../../../src/platforms/delivery/message-plan.ts";
import {
  lengthOf,
  lengthOfSource,
  maxContentChars,
  maxPieceChars,
  toDiscordContent,
  toPrivateMessages,
} from "../../../src/platforms/discord/reply/content.ts";
import { toSlackContent } from "../../../src/platforms/slack/reply/message-blocks.ts";
import { toMessages } from "../../../src/platforms/slack/reply/private-reply.ts";
import { toItem } from "../../../src/platforms/web/items.ts";

/** Addresses of pages, as a gateway may write them. */
const pages = [
  "https://pages.example/parrots",
  "http://pages.example/a?b=c&d=e#f",
  "HTTPS://Pages.Example/UP",
  "https://pages.example/a_(b)_[c]*d*`e`|f|",
  "https://pages.example/?q=<!channel>&r=\\`|{}[]()",
  "https://münchen.example/straße",
  "https://[2001:db8::1]:8443/x",
  `https://pages.example/${"long/".repeat(390)}`,
  "https://pages.example/@everyone/<@123>",
  "https://discord.gg/invite",
  ...Array.from({ length: 10 }, (_, index) => `https://pages.example/${index}`),
];
/** What is no page on the web, or must not be opened from here. */
const others = [
  "javascript:alert(1)",
  "data:text/html,<script>alert(1)</script>",
  "file:///etc/passwd",
  "ftp://pages.example/",
  "mailto:ada@pages.example",
  "slack://open?team=T1",
  "discord://-/channels/1",
  "//pages.example/secret",
  "/etc/secret",
  "pages.example/secret",
  "",
  "https://",
  "https://ada:secret@pages.example/",
  "https://ada@pages.example/secret",
  "https://:secret@pages.example/",
  "https://pages.example/sec\nret",
  "https://pages.example/sec\tret",
  "https://pages.example/sec\u0000ret",
  "https://pages.example/\u202Eterces",
  "https://pages.example/sec\u200Bret",
  "java\nscript:alert(1)",
  `https://pages.example/secret${"x".repeat(2000)}`,
  `https://pages.example/secret${"世".repeat(250)}`,
  "https://pages.example:99999/secret",
  "https://exa mple/secret",
];
const titles: readonly (string | undefined)[] = [
  undefined,
  "",
  " ",
  "\u200B\u2060",
  "Parrots of the world",
  "**bold** _it_ ~~gone~~ `code` ||hidden|| # head\n> quote\n- item",
  "](https://evil.example) [click](https://evil.example)",
  "[a] (b) <https://evil.example|b> <javascript:alert(1)>",
  "<!channel> <!here> <!everyone> <@U123> <#C123> <!subteam^S1>",
  "@everyone @here <@123456789012345678> <@&123456789012345678> <#123> </ask:1> <t:1:R> <a:x:1>",
  "https://evil.example/login",
  "hthttps://tps://evil.example x:/y:///evil.example",
  "discord.gg/invite",
  "one\r\ntwo\u2028three\u2029four\u0085five",
  "\u202Egnorw\u202C \u2066left\u2069 \u200Fr \u061Cx",
  "null\u0000 bell\u0007 escape\u001B[31m",
  `Z${"\u0301".repeat(300)}algo`,
  "x".repeat(5000),
  "😀".repeat(2500),
  "\uD800 alone",
  "```\nfence\n```",
  "<script>alert(1)</script><img src=x onerror=alert(1)>",
  "&lt;!channel&gt; &#60;!here&#62;",
  ":smile: :flag-de: $x^2$",
  "\\](<https://evil.example>) \\\\[",
];

/** Numbers that are the same in every run. */
function createRandom(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 3_266_489_917) >>> 0;
    return state % below;
  };
}

const lists = Array.from({ length: 100 }, (_, seed) => {
  const random = createRandom(seed + 1);
  return Array.from({ length: 1 + random(40) }, (): AnswerSource => {
    const from = random(2) === 0 ? pages : others;
    const title = titles[random(titles.length)];
    return { url: from[random(from.length)]!, ...(title === undefined ? {} : { title }) };
  });
});

/** What must be shown of a list: the pages in their order, each once. */
function wantedOf(list: readonly AnswerSource[]): string[] {
  const urls = list.filter(({ url }) => pages.includes(url)).map(({ url }) => new URL(url).href);
  return [...new Set(urls)].slice(0, 10);
}

const unseen = /[\p{Cc}\p{Zl}\p{Zp}\u061C\u200B\u200E\u200F\u202A-\u202E\u2060\u2066-\u2069\uFEFF]/u;

function expectLine(label: string): void {
  expect(label).not.toMatch(unseen);
  expect(label).not.toMatch(/:\/\//);
  expect(label).not.toMatch(/\p{M}{4}/u);
  expect(label.isWellFormed()).toBe(true);
  expect(label.length).toBeGreaterThan(0);
  expect(label.length).toBeLessThanOrEqual(100);
}

/** Links of Markdown with their addresses, as their own parser finds them. */
function linksIn(tokens: readonly Token[]): Tokens.Link[] {
  return tokens.flatMap((token) => [
    ...(token.type === "link" || token.type === "image" ? [token as Tokens.Link] : []),
    ...linksIn("tokens" in token ? (token.tokens ?? []) : []),
  ]);
}

/** Addresses may be written with the codes of their marks. */
const decoded = (url: string): string =>
  url.replaceAll(/%[0-7][0-9A-F]/g, (code) => decodeURIComponent(code));

const discord = { maxLength: maxPieceChars, lengthOf, lengthOfSource, maxMessages: 8 };

describe.each(lists.map((list, index) => ({ index, list })))("hostile sources $index", ({ list }) => {
  const wanted = wantedOf(list);

  test("keep the pages alone, and are the same when they are read again", () => {
    const kept = joinSources(list);
    expect(kept.map(({ url }) => url)).toEqual(wanted);
    expect(joinSources(kept)).toEqual(kept);
    expect(joinSources(kept, list)).toEqual(kept);
  });

  test("are lines of small print on Discord", () => {
    const { contents } = planEnding("The answer.", { state: "finished", sources: list }, discord);
    const messages = [
      ...contents.map((content) => toDiscordContent(content)),
      ...toPrivateMessages({ kind: "told", markdown: "Details", sources: list }),
    ];
    for (const { content, allowed_mentions, flags } of messages) {
      expect(content.length).toBeLessThanOrEqual(maxContentChars);
      expect(allowed_mentions).toEqual({ parse: [] });
      expect(flags & 4).toBe(4);
    }
    const lines = messages
      .slice(0, contents.length)
      .flatMap(({ content }) => content.split("\n"))
      .filter((line) => line !== "The answer." && line !== "-# **Sources**");
    expect(lines).toHaveLength(wanted.length);
    for (const [index, line] of lines.entries()) {
      const [, number, words = ""] = /^-# (\d+)\. (.+)$/u.exec(line) ?? [];
      expect(number).toBe(String(index + 1));
      expect(words).not.toMatch(unseen);
      const links = linksIn(new Lexer({ gfm: true }).lex(words));
      const url = wanted[index]!;
      if (lengthOf(words) < url.length) expect(links).toEqual([]);
      else expect(links.map(({ href }) => decoded(href))).toEqual([decoded(url)]);
      // All but the link itself, its brackets and the brackets around the host, is escaped.
      const rest = words.replace(/^\[(.*)\]\(<[^<>()\\|`\s]+>\)/u, "$1");
      expect(rest.replaceAll(/\\[!-/:-@[-`{-~]/g, "")).not.toMatch(/[<>@#`*_~|[\]\\:]/);
      expect(rest).not.toMatch(/discord\.gg|evil\.example/);
    }
  });

  test("are rich text on Slack, in which nothing is parsed", () => {
    const { contents } = planEnding(
      "The answer.",
      { state: "finished", sources: list },
      { ...discord, maxLength: 3900, lengthOfSource: () => 300 },
    );
    const all = [...contents, ...toMessages("Details", { state: "finished", sources: list })];
    for (const content of all) {
      const { text, blocks } = toSlackContent(content);
      for (const block of blocks) {
        if (block["type"] === "rich_text") continue;
        expect(JSON.stringify(block)).not.toMatch(/pages\.example|evil/);
      }
      expect(text).not.toMatch(/<[!@#]|evil/);
      const alone = toSlackContent(content, "text");
      expect(alone.blocks).toEqual([]);
      expect(alone.text).not.toMatch(/[<>]/);
    }
    const links = JSON.stringify(contents.map((content) => toSlackContent(content).blocks));
    const found = Array.from(
      links.matchAll(/\{"type":"link","url":("(?:[^"\\]|\\.)*"),"text":("(?:[^"\\]|\\.)*")\}/g),
      ([, url = "", text = ""]) => ({ url: JSON.parse(url) as string, text: JSON.parse(text) as string }),
    );
    expect(found.map(({ url }) => url)).toEqual(wanted);
    for (const { text } of found) expectLine(text);
  });

  test("are addresses and plain lines on the page", () => {
    const { sources = [] } = toItem("web:1", {
      id: "web:1/answer",
      role: "assistant",
      turnKey: "web:1",
      parts: [{ kind: "text", text: "The answer." }],
      createdAt: 0,
      estimatedTokens: 1,
      sources: list,
    });
    expect(sources.map(({ url }) => url)).toEqual(wanted);
    expect(sources.map(({ number }) => number)).toEqual(wanted.map((_, index) => index + 1));
    for (const { label, host } of sources) {
      expectLine(label);
      if (host !== undefined) expectLine(host);
    }
  });
});

test("what is no text is no source", () => {
  for (const value of [undefined, null, 7, {}, [], true]) expect(toSource(value, "Title")).toBeUndefined();
  expect(toSource("https://pages.example/", { toString: () => "x" })).toEqual({
    url: "https://pages.example/",
  });
});
