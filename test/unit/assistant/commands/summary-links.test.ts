import { Lexer, type Token, type Tokens } from "marked";
import { describe, expect, it, test } from "vitest";
import { addressesIn, linkSummary } from "../../../../src/assistant/commands/summarize-command.ts";
import { cpuMsOf } from "../../../support/cpu-time.ts";

const shown = "https://good.example/a?b=c";
const known = await addressesIn([`see ${shown}, and (http://good.example/) or www.good.example.`]);
const links = new Map([1, 2, 3, 12].map((number) => [number, `https://chat.example/m/${number}`]));
const link = (text: string) => linkSummary(text, { links, known });
const to = (number: number) => `[#${number}](https://chat.example/m/${number})`;

describe("the summary of messages", () => {
  it.each<[string, string, string]>([
    ["links the number of a message", "They ship on Friday [3].", `They ship on Friday ${to(3)}.`],
    ["links several", "Agreed [1, 2][12] and【3】", `Agreed ${to(1)} ${to(2)} ${to(12)} and ${to(3)}`],
    ["links a number once in a place", "Agreed [#3][3]", `Agreed ${to(3)}`],
    ["drops a number that no message has", "Agreed [4], [0][99999999] and [4, 2].", `Agreed, and ${to(2)}.`],
    ["makes no picture of a number", "Look ![2]", `Look ${to(2)}`],
    ["takes its own target for a number", "Agreed [2](https://evil.example)", `Agreed ${to(2)}`],
    ["leaves other brackets", "a[i], [x], [2026-11-20]", "a[i], [x], [2026-11-20]"],
    ["keeps an address of the messages as text", `Read ${shown}.`, `Read ${shown}.`],
    ["names the target of a link with an address of the messages", `[a](${shown})`, `a ${shown}`],
    ["keeps the words of another link", "Read [the plan](https://evil.example/a).", "Read the plan."],
    ["writes other addresses without a scheme", "Read https://evil.example/a", "Read evil.example/a"],
    ["keeps code and comparisons", "`a < b` and 1 <2", "`a < b` and 1 <2"],
  ])("%s", (_, text, wanted) => {
    expect(link(text)).toBe(wanted);
  });
});

/** What a model might make up around an address. */
const frames: readonly ((address: string) => string)[] = [
  (address) => address,
  (address) => `<${address}>`,
  (address) => `[click](${address})`,
  (address) => `![picture](${address})`,
  (address) => `[click](<${address}> "title")`,
  (address) => `[a [nested](${address})](${address})`,
  (address) => `[click][1]\n\n[1]: ${address}`,
  (address) => `[click]: ${address}\n\n[click]`,
  (address) => `<${address}|click>`,
  (address) => `<a href="${address}">click</a>`,
  (address) => `\`\`\`\n${address}\n\`\`\`\n\`${address}`,
  (address) => `| a |\n| - |\n| ${address} |`,
  (address) => `[click] (${address}) ](${address})`,
  (address) => `\\[3](${address}) [3](${address}) [#3](${address}`,
  (address) => `${shown}${address} ${shown}|@evil.example ${shown}\`@evil.example ${shown}\\@evil.example`,
  (address) => `\u{E000}${encodeURIComponent(address.toWellFormed())}\u{E001}`,
];
const addresses = [
  "https://evil.example/",
  "HTTPS://EVIL.example/?[3]",
  "http://good.example@evil.example/",
  "https://good.example/a?b=c.evil.example",
  "hthttps://tps://evil.example",
  "htwww.tps:www.//evil.example",
  "www.evil.example",
  "javascript:alert(1)",
  "java:/script:alert(1)",
  "ht:/tps:////evil.example",
  "java\u200Bscript://evil.example",
  "discord://-/channels/1",
  "slack://open?team=T1",
  "mailto:evil@evil.example",
  "https:/\\evil.example",
  "//evil.example/",
  "https://chat.example/m/4",
  "https://evil.example/(a)[b]",
  "https:\\/\\/evil.example",
  "data:text/html,evil",
  "https://evil\u202E.example",
  "\uD800https://evil.example",
];

/** The targets of links, as Markdown's parser finds them. */
function linksIn(tokens: readonly Token[]): string[] {
  return tokens.flatMap((token) => [
    ...(token.type === "link" || token.type === "image" ? [(token as Tokens.Link).href] : []),
    ...linksIn("tokens" in token ? (token.tokens ?? []) : []),
    ...(token.type === "list" ? linksIn((token as Tokens.List).items) : []),
    ...(token.type === "table"
      ? (token as Tokens.Table).rows.flat().flatMap((cell) => linksIn(cell.tokens))
      : []),
  ]);
}

const invented = frames.flatMap((frame) => addresses.map((address) => frame(address)));
const allowed = new Set([...links.values(), ...known]);

test(`none of ${invented.length} invented links is shown, whole or while it grows`, () => {
  for (const text of invented) {
    for (const end of [...Array.from({ length: text.length / 9 }, (_, step) => step * 9 + 5), text.length]) {
      const made = link(`It is said [12] ${text.slice(0, end)}`);
      expect(made).toContain(to(12));
      for (const target of linksIn(new Lexer({ gfm: true }).lex(made)))
        if (/^(?:[a-z]+:)?\/\//i.test(target)) expect([...allowed], made).toContain(target);
      // What Discord and Slack make links of in plain text.
      for (const [found] of made.matchAll(/(?:https?|discord|slack):\/\/[^\s<]+/gi)) {
        const address = found.replace(/[)\].,;:'"!?]+$/, "").replace(/\).*$/s, "");
        expect([...allowed], made).toContain(address);
      }
      expect(made).not.toMatch(/<[a-z/!@#]|\bjavascript:/i);
    }
  }
});

test("invented numbers are dropped", () => {
  const numbers = Array.from({ length: 100 }, (_, index) => 13 + index * 9_999_999);
  for (const number of numbers)
    expect(link(`a [${number}] b [3, ${number}]`)).toMatch(/^a(?: \[\d{10,}\])? b/);
  expect(link(numbers.map((number) => `[${number % 1_000_000_000}]`).join(" "))).not.toContain(
    "chat.example",
  );
});

test("long and hostile text takes little time", async () => {
  const work = () => {
    for (const piece of ["[1][", "[a](", "https://", "<", "a:", "[1,", "www.", `${shown} `, "\u{E000}"])
      link(piece.repeat(4000));
  };
  expect(await cpuMsOf(work, 1)).toBeLessThan(1000);
});
