import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { parseCommandLine, type Command } from "../../src/core/command.ts";
import { isAnswered } from "../../src/core/addressee.ts";
import { toRoomText } from "../../src/assistant/turn/context-window.ts";
import { parseSince } from "../../commands/summarize.ts";
import {
  readRichContent,
  mentions,
  toPlainText,
  toSpoken,
} from "../../src/platforms/slack/intake/read-message.ts";
import { parseCommandText } from "../../src/core/command-input.ts";
import { bytesOfDataUri, checkPictureUrl } from "../../src/wire/pictures.ts";
import { readForm } from "../../src/embedded-gateway/upload.ts";
import type { ChatBody } from "../../src/embedded-gateway/requests.ts";
import {
  answerChat,
  longText,
  recallText,
  withoutAuthor,
} from "../../src/embedded-gateway/sandbox/chat-model.ts";
import { toLines, toTokens } from "../../src/embedded-gateway/sandbox/sandbox.ts";
import { readError, toAttemptError, createScrub } from "../../src/wire/failures.ts";
import { createThoughtSplitter } from "../../src/gateway/answer-signs.ts";
import { createInlineImages } from "../../src/gateway/images.ts";
import { createFrameReader } from "../../src/wire/stream-frames.ts";
import { pageTitle } from "../../src/wire/transport.ts";
import { sniff } from "../../src/media/sniff.ts";
import { closeFence } from "../../src/support/markdown-fences.ts";
import { toFenced } from "../../src/core/quoting.ts";
import { createLog } from "../../src/operations/log.ts";
import { planEnding, planStreaming } from "../../src/platforms/delivery/message-plan.ts";
import { splitMarkdown } from "../../src/platforms/delivery/split-markdown.ts";
import {
  lengthOf,
  maxPieceChars,
  toDiscordContent,
  toDiscordMarkdown,
} from "../../src/platforms/discord/reply/content.ts";
import { readMessage, readRichParts } from "../../src/platforms/discord/intake/incoming.ts";
import { escapeMarkdown, escapedBytes } from "../../src/platforms/slack/reply/escape-markdown.ts";
import { toSlackContent } from "../../src/platforms/slack/reply/message-blocks.ts";
import { isVisible, nearestName, toTitle, withoutControls } from "../../src/support/text.ts";
import imagine from "../../commands/imagine.ts";
import { cpuMsOf, slowdown } from "../support/cpu-time.ts";
import { hostileParts } from "../support/hostile-parts.ts";

/** A parser of untrusted text. */
interface Parser {
  readonly name: string;
  readonly parse: (text: string) => unknown;
  /** The longest text that reaches it, in characters. */
  readonly maxChars: number;
  /** The parts that it knows besides {@link hostileParts}. */
  readonly parts?: readonly string[];
  /** Texts around the repeated part that make its patterns match far. */
  readonly around?: readonly (readonly [before: string, after: string])[];
}

const names = { botId: "1", botRoleId: "2", roleName: () => undefined, channelName: () => undefined };
const scrub = createScrub("sk-secret");
const log = createLog({ level: "info", secrets: ["xoxb-secret"], write: () => {} });
const plain = { maxLength: 2000, lengthOf: (text: string) => text.length };
const slack = { maxLength: 3900, lengthOf: escapedBytes };
const command: Command = imagine;

const chat = (text: string): ChatBody =>
  ({
    model: "sandbox/chat",
    messages: [{ role: "user", content: text }],
    stream: false,
    max_tokens: 1024,
  }) as ChatBody;
const said = (text: string) => [
  { role: "user" as const, text, images: 0 },
  { role: "user" as const, text: `${text}?`, images: 0 },
];
const readBody = async (text: string, type = "multipart/form-data; boundary=b"): Promise<void> => {
  try {
    await readForm(Readable.from([Buffer.from(text)]), type, 1_000_000);
  } catch (error) {
    expect(error).toMatchObject({ status: expect.toBeOneOf([400, 413]) as number });
  }
};
const inPieces = (text: string, chars: number): unknown => {
  const images = createInlineImages(1_000_000, () => true);
  for (let at = 0; at < text.length; at += chars) images.push(text.slice(at, at + chars));
  return images.end();
};
const signParts = [
  "<",
  "</",
  "<think>",
  "</think>",
  "<|",
  "[",
  "<tool_call>",
  "\n<tool_call>",
  "</tool_call>",
  "<answer>",
  "</answer>",
];
const splitThoughts = (text: string, chars: number): unknown => {
  const splitter = createThoughtSplitter();
  for (let at = 0; at < text.length; at += chars) splitter.push(text.slice(at, at + chars));
  return splitter.end();
};

/** A model's answer may be this long. */
const answerChars = 100_000;
/** The length of one reply's messages, after which splitting stops. */
const pieceChars = 20_000;
/** The length of a text file that somebody sends. */
const fileChars = 100_000;
/** The length of a packet in an answer's stream. */
const deltaChars = 16_000;
/** The longest time that the event loop may be held up. */
const holdUpMs = 50;
/** The length of a message on the page. */
const messageChars = 60_000;

const parsers: readonly Parser[] = [
  { name: "sniff", parse: (text) => sniff(Buffer.from(text)), maxChars: 1_000_000 },
  { name: "parseCommandLine", parse: (text) => parseCommandLine(`/imagine ${text}`), maxChars: messageChars },
  {
    name: "parseCommandText",
    parse: (text) => parseCommandText(command, text),
    maxChars: messageChars,
    parts: ["size:„", " size:« ", "prompt:“", 'size:"'],
  },
  {
    name: "nearestName",
    parse: (text) => nearestName(text, ["openai/gpt", text.slice(1), "a".repeat(200)]),
    maxChars: messageChars,
  },
  { name: "toTitle", parse: toTitle, maxChars: messageChars },
  {
    name: "readMessage (Discord)",
    parse: (content) => readMessage({ content, author: { id: "3" } } as never, names as never),
    maxChars: 4000,
  },
  {
    name: "readRichParts (Discord)",
    parse: (text) =>
      readRichParts(
        {
          content: text,
          embeds: [{ title: text, description: text, url: text, footer: { text } }],
          components: [{ type: 10, content: text }],
        },
        { hasButtons: true },
      ),
    maxChars: 4000,
  },
  {
    name: "toPlainText (Slack)",
    parse: (text) => toPlainText(text, { botUserId: "U1", nameOf: async () => "Ana" }),
    maxChars: 40_000,
    parts: ["<@U1", "<@U1|", "<@U1> ", "<mailto:", "<!date^"],
  },
  {
    name: "readRichContent (Slack)",
    parse: (text) =>
      readRichContent({
        ts: "1.1",
        bot_id: "B1",
        text,
        blocks: [{ type: "section", text }],
        attachments: [{ author_name: text, from_url: text, text }],
      }),
    maxChars: 40_000,
  },
  {
    name: "toRoomText",
    parse: (text) =>
      toRoomText({ author: { id: "1", name: text }, createdAt: 0, room: { isApp: false } }, text, true),
    maxChars: 40_000,
  },
  { name: "parseSince", parse: (text) => parseSince(text, 0), maxChars: 40_000 },
  {
    name: "toSpoken (Slack)",
    parse: (text) => {
      const spoken = toSpoken(text, { author: "person", isDirect: false, botUserId: "U1" });
      const said = { ...spoken, botNames: ["Parley"] };
      const before = { isAlone: false, isNext: true, names: ["Lena Vogt", "Tom", "佐藤ゆき"] };
      return isAnswered(said, { answerTo: "addressed", isPeoples: false }, before);
    },
    maxChars: 40_000,
    parts: [
      "<@U1",
      "<@U1|",
      "<@U1> ",
      "<!subteam^S1|",
      "&gt;",
      ":-",
      ":+:",
      "tom ",
      "parley ",
      "ask ",
      "佐藤さん",
      "a.",
      "...a",
      "aaa",
      ", ",
      "`",
      "https://",
    ],
  },
  { name: "mentions (Slack)", parse: (text) => mentions(text, "U1"), maxChars: 40_000 },
  { name: "escapeMarkdown (Slack)", parse: escapeMarkdown, maxChars: answerChars },
  {
    name: "toSlackContent",
    parse: (text) => toSlackContent({ text, state: "failed", failure: text, notices: [text] }),
    maxChars: 12_000,
  },
  {
    name: "toDiscordMarkdown",
    parse: toDiscordMarkdown,
    maxChars: pieceChars,
    parts: ["![a](https://a ", "#### a ", "- -", "* *", "|-", "| :-:"],
    around: [
      ["#### ", " x"],
      ["|a|b|\n|", "x"],
      ["|a|b|\n", ""],
      ["![", "](https://a)"],
      ["![](https://a", ")"],
      ["- ", " -"],
    ],
  },
  { name: "toFenced, a text file", parse: (text) => toFenced(text, "python"), maxChars: fileChars },
  { name: "closeFence", parse: closeFence, maxChars: answerChars },
  {
    name: "toDiscordContent",
    parse: (text) =>
      toDiscordContent({ text: text.slice(0, 2000), state: "streaming", status: text, notices: [text] }),
    maxChars: 12_000,
  },
  { name: "splitMarkdown", parse: (text) => splitMarkdown(text, plain), maxChars: pieceChars },
  { name: "splitMarkdown (Slack)", parse: (text) => splitMarkdown(text, slack), maxChars: pieceChars },
  {
    name: "splitMarkdown (Discord)",
    parse: (text) => splitMarkdown(text, { maxLength: maxPieceChars, lengthOf }),
    maxChars: pieceChars / 2,
  },
  {
    name: "planStreaming",
    parse: (text) => planStreaming(text, { status: undefined }, { ...plain, maxMessages: 5 }),
    maxChars: answerChars,
  },
  {
    name: "planEnding",
    parse: (text) =>
      planEnding(text, { state: "finished" }, { ...plain, lengthOfSource: () => 1, maxMessages: 5 }),
    maxChars: answerChars,
  },
  {
    name: "createInlineImages, one push",
    parse: (text) => inPieces(text, text.length),
    maxChars: deltaChars,
  },
  { name: "createInlineImages, small pushes", parse: (text) => inPieces(text, 3), maxChars: deltaChars },
  {
    name: "createInlineImages, an address",
    parse: (text) => inPieces(text, 100),
    maxChars: deltaChars,
    around: [
      ["![x](", "x)"],
      ["![x](data:", ")"],
      ["![x](data:image/png;base64,", 'x")'],
      ["![x](<data:a", "b>)"],
      ["![x](https://", "x)"],
    ],
  },
  {
    name: "createThoughtSplitter, one push",
    parse: (text) => splitThoughts(text, text.length),
    maxChars: deltaChars,
    parts: signParts,
  },
  {
    name: "createThoughtSplitter, small pushes",
    parse: (text) => splitThoughts(text, 3),
    maxChars: deltaChars,
    parts: signParts,
  },
  { name: "isVisible", parse: isVisible, maxChars: answerChars },
  { name: "withoutControls", parse: withoutControls, maxChars: answerChars },
  {
    name: "createFrameReader",
    parse: (text) => createFrameReader(1_000_000).push(Buffer.from(text)),
    maxChars: deltaChars,
  },
  { name: "scrub", parse: (text) => scrub(text, 300), maxChars: 20_000 },
  { name: "scrub with a secret", parse: (text) => scrub(`${text} sk-secret`, 100_000), maxChars: 20_000 },
  { name: "pageTitle", parse: pageTitle, maxChars: 64_000 },
  { name: "readError", parse: (message) => readError({ error: { message } }), maxChars: 64_000 },
  {
    name: "toAttemptError",
    parse: (message) =>
      toAttemptError(
        {
          operation: "chat",
          model: message,
          status: 400,
          headers: { "retry-after": message },
          info: { message, code: message, param: message },
        },
        scrub,
      ),
    maxChars: 64_000,
  },
  { name: "log", parse: (text) => log.info({ text }, text), maxChars: 64_000 },
  { name: "checkPictureUrl", parse: checkPictureUrl, maxChars: 100_000 },
  {
    name: "checkPictureUrl, base64",
    parse: (text) => checkPictureUrl(`data:image/png;base64,${text}`),
    maxChars: 1_000_000,
    parts: ["A", "=", "A="],
  },
  { name: "checkPictureUrl, https", parse: (text) => checkPictureUrl(`https://${text}`), maxChars: 60_000 },
  { name: "bytesOfDataUri", parse: bytesOfDataUri, maxChars: 100_000 },
  {
    name: "readForm, boundary",
    parse: (text) => readBody("", `multipart/form-data ${text}`),
    maxChars: 16_000,
    parts: ["; boundary", '; boundary="', ";  "],
  },
  {
    name: "readForm, header",
    parse: (text) => readBody(`--b\r\nContent-Disposition: form-data; name="a"${text}\r\n\r\n\r\n--b--`),
    maxChars: 16_000,
    parts: ['; name="', '; filename="\\', '; filename="a\\"', "\ncontent-type:", ";  "],
  },
  {
    name: "readForm, body",
    parse: (text) => readBody(`--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n${text}\r\n--b--`),
    maxChars: 100_000,
    parts: ["\r\n--", "\r\n--a", "--b", "\r"],
  },
  { name: "sandbox chat", parse: (text) => answerChat(chat(text), async () => ""), maxChars: 100_000 },
  {
    name: "sandbox chat, a request to write",
    parse: (text) => answerChat(chat(`write ${text} ?`), async () => ""),
    maxChars: 100_000,
  },
  { name: "longText", parse: (text) => longText(`write ${text}`), maxChars: 4000 },
  { name: "toLines", parse: (text) => toLines(text, 100), maxChars: 100_000 },
  { name: "withoutAuthor", parse: withoutAuthor, maxChars: 100_000 },
  { name: "recallText", parse: (text) => recallText(said(text)), maxChars: 100_000 },
  { name: "toTokens", parse: toTokens, maxChars: 100_000 },
];

/** These words stand around the repeated part, so that a pattern for an end does not match at once. */
const surroundings: readonly (readonly [before: string, after: string])[] = [["a ", " a"]];
const slowMs = 12;
const maxGrowth = 8;
/** How often each length is measured, and how often at most where a parser looks too slow. */
const leastRounds = 3;
const mostRounds = 20;

const fill = (part: string, [before, after]: readonly [string, string], chars: number): string =>
  before + part.repeat(Math.ceil(chars / part.length)).slice(0, chars) + after;

for (const { name, parse, maxChars, parts = [], around = [] } of parsers) {
  // Attack: Text that makes a parser work for seconds: repeated delimiters, nesting, white space. What
  // holds: linear parsers over bounded text; sniffing decodes 64 kB; splitting stops after the
  // messages of a reply.
  // Attack: Output larger than its input: a deep quote repeated in every message. What holds: quotes of
  // more than 12 levels are text.
  // Attack: A text file of 100,000 line breaks, anew at every turn. What holds: the longest run of
  // backticks is looked for, whatever stands before it.
  // Attack: An answer with a data URI and 80,000 blanks behind it, or an address of blanks alone. What
  // holds: it is split once; blanks past 4,096 are text.
  describe(name, () => {
    it(`takes linear time and never 50 ms, up to ${maxChars} characters`, async () => {
      const found: string[] = [];
      for (const part of [...hostileParts, ...parts]) {
        for (const surrounding of [...surroundings, ...around]) {
          const problem = await findProblem(parse, maxChars, (chars) => fill(part, surrounding, chars));
          if (problem !== undefined)
            found.push(`${JSON.stringify(part)} in ${JSON.stringify(surrounding)}: ${problem}`);
        }
      }
      expect(found).toEqual([]);
    }, 120_000);
  });
}

/** Compares the longest text with its half and its quarter, wherever it takes measurable time. */
async function findProblem(
  parse: (text: string) => unknown,
  maxChars: number,
  textOf: (chars: number) => string,
): Promise<string | undefined> {
  const msOf = (chars: number, rounds: number): Promise<number> => {
    const text = textOf(chars);
    return cpuMsOf(() => parse(text), rounds);
  };
  for (const share of [64, 16, 4]) {
    const ms = await msOf(Math.ceil(maxChars / share), 1);
    // Not even quadratic growth would be measurable at the full length.
    if (share === 4 && ms < 1) return undefined;
    if (ms > 500) return `${Math.ceil(maxChars / share)} characters took ${ms} ms`;
  }
  if ((await msOf(maxChars, 1)) < slowMs) return undefined;
  // They are measured in turns, so that what slows the machine down for a moment slows all three. The least
  // of each is compared, since other threads of this process (garbage, compilation) only ever add to it.
  let [quarter, half, whole] = [Infinity, Infinity, Infinity];
  const growsTooFast = () => whole > slowMs && whole > maxGrowth * quarter && whole > (maxGrowth / 2) * half;
  for (let round = 0; round < leastRounds || (growsTooFast() && round < mostRounds); round += 1) {
    quarter = Math.min(quarter, await msOf(Math.ceil(maxChars / 4), 1));
    half = Math.min(half, await msOf(Math.ceil(maxChars / 2), 1));
    whole = Math.min(whole, await msOf(maxChars, 1));
  }
  if (growsTooFast())
    return `a quarter of the length took ${quarter} ms, half ${half} ms, the whole ${whole} ms`;
  let limitMs = holdUpMs;
  // The machine's speed changes from moment to moment, so time and limit are measured side by side.
  for (let round = 0; whole > limitMs && round < 3; round += 1) {
    limitMs = holdUpMs * (await slowdown());
    whole = Math.min(whole, await msOf(maxChars, 1));
  }
  return whole > limitMs ? `${maxChars} characters took ${whole} ms of ${limitMs}` : undefined;
}
