import { toWrittenCall } from "../../core/command-input.ts";
import type { CommandServices } from "../../core/command-services.ts";
import { roomFailureNotice } from "../../core/error-messages.ts";
import { isParleyError } from "../../core/errors.ts";
import type { RoomMessage } from "../../core/room.ts";
import { nextPiece } from "../../support/pieces.ts";
import { createConcurrencyLimit } from "../../support/queues.ts";
import { cutText } from "../../support/text.ts";
import { translate } from "../../words/translate.ts";
import { historyWithheld } from "../access/access.ts";
import { type TurnDependencies, createReceiptDraft } from "../turn/turn.ts";
import { collectAnswer, streamAnswer, type PartialAnswer } from "../turn/stream-answer.ts";
import { toLabel, toQuotedLines } from "../../core/quoting.ts";
import { budgetFor, roomInstructions, toRoomText } from "../turn/context-window.ts";
import { estimateTokens, textOf } from "../turn/stored-messages.ts";
import type { Result } from "../../core/result.ts";
import { askAs, toCallAnswer, type CommandRun } from "./command-run.ts";

/** How many messages are read if the caller names no start. */
const usualMessages = 200;
const maxMessages = 1000;
/** The time for reading them, in milliseconds. */
const readForMs = 30_000;
/** How many parts are summarized one by one before the whole. Older parts that do not fit are left out. */
const maxParts = 8;
const partsAtOnce = 3;
/** The share of the model's context window for one part. The rest is for instructions and wrong estimates. */
const usualShare = 0.8;
const shrunkShare = 0.35;

type SummaryRequest = Parameters<CommandServices["summarize"]>[0];

/** A message as the model reads it. */
interface Said {
  /** The number by which the model names it, from 1. */
  readonly number: number;
  /** The key of the platform's message that shows it, if there is one. */
  readonly key: string | undefined;
  readonly author: string;
  readonly isApp: boolean;
  readonly isOwn: boolean;
  readonly at: number;
  readonly text: string;
}

interface Reading {
  /** The messages, oldest first. */
  readonly said: readonly Said[];
  readonly hasOlder: boolean;
  readonly notices: readonly string[];
}

/** Implements {@link CommandServices.summarize} for a thread, a channel or a conversation of the bot. */
export async function summarize(
  dependencies: TurnDependencies,
  run: CommandRun,
  request: SummaryRequest,
): Promise<Result> {
  const { reply } = run;
  await reply.show();
  reply.status(translate("summarize.reading"));
  const reading = await readSaid(dependencies, run, request);
  if (reading.said.length === 0) {
    const nothing = run.platform.guide.isForOne ? "summarize.nothing" : "summarize.nothing.thread";
    const key = request.since === undefined ? nothing : "summarize.nothing-since";
    const parts = [{ kind: "text", text: translate(key) }] as const;
    return { kind: "answer", answer: { parts }, notices: reading.notices, isUnstored: true };
  }
  const answer: PartialAnswer = { text: "", images: [], notices: [...reading.notices] };
  const receipt = createReceiptDraft();
  // Nothing that the model writes is shown without it.
  const link = await createLinker(run, reading.said);
  const parts = () => [{ kind: "text", text: link(answer.text) } as const];
  const attempt = (share: number) =>
    sumUp(dependencies, run, { request, reading, share, answer, receipt, link });
  try {
    const { model, usage, sources } = await attempt(usualShare).catch((error: unknown) => {
      if (!isParleyError(error, "gateway-context-length") || answer.text !== "") throw error;
      return attempt(shrunkShare);
    });
    const result = { parts: parts(), model, usage, ...(sources === undefined ? {} : { sources }) };
    return {
      kind: "answer",
      answer: toCallAnswer(dependencies, run, result, receipt),
      notices: answer.notices,
      isWritten: true,
    };
  } catch (error) {
    if (!isParleyError(error, "cancelled") || answer.text === "") throw error;
    const model = receipt.left(dependencies.gateway.usageIfLeft());
    const left = { parts: parts(), ...(model === undefined ? {} : { model }) };
    const kept = toCallAnswer(dependencies, run, left, receipt);
    return { kind: "stopped", answer: kept, notices: answer.notices, error };
  }
}

/**
 * Reads what people said here, or the stored conversation where that is all there is or all that is known.
 */
async function readSaid(
  dependencies: TurnDependencies,
  run: CommandRun,
  { since }: SummaryRequest,
): Promise<Reading> {
  const { call, platform, signal } = run;
  if (dependencies.withheld !== undefined) throw historyWithheld();
  const most = since === undefined ? usualMessages : maxMessages;
  const reading = await platform.readRoom(call.address, {
    since,
    maxMessages: most,
    includesOwn: true,
    signal: AbortSignal.any([signal, AbortSignal.timeout(readForMs)]),
  });
  signal.throwIfAborted();
  if (reading === "alone") return await readConversation(dependencies, run, since);
  if (reading === "unreadable") {
    const stored = await readConversation(dependencies, run, since);
    return { ...stored, notices: [translate("room.unreadable")] };
  }
  const { failure, hasOlder } = reading;
  if (failure !== undefined && reading.messages.length === 0) throw failure;
  // The call itself and the beginning of its answer are left out.
  const ownKeys = new Set([call.key, ...run.shownMessageKeys()]);
  const messages = reading.messages.filter(({ key }) => !ownKeys.has(key));
  return {
    said: messages.map(toSaid),
    hasOlder,
    notices: failure === undefined ? [] : [roomFailureNotice(failure, messages.length)],
  };
}

function toSaid({ key, author, isApp, text, attachments, sentAt }: RoomMessage, index: number): Said {
  const files = attachments.map(({ name }) => `[file ${toLabel(name)}]`);
  return {
    number: index + 1,
    key,
    author: author.name,
    isApp,
    isOwn: false,
    at: sentAt,
    text: [text, ...files].filter((part) => part !== "").join("\n"),
  };
}

async function readConversation(
  { conversations }: TurnDependencies,
  { call }: CommandRun,
  since = 0,
): Promise<Reading> {
  const stored = await conversations.recent(call.conversationId, { maxMessages: usualMessages + 1 });
  const said = stored
    .filter((message) => message.inContext !== false && message.outcome !== "failed")
    .filter(({ createdAt, turnKey }) => createdAt >= since && turnKey !== call.key)
    .map(({ role, author, createdAt, parts, room, turnKey, shownAs }) => ({
      key: role === "assistant" ? shownAs?.[0] : turnKey,
      author: role === "assistant" ? "Parley" : (author?.name ?? "Somebody"),
      isApp: room?.isApp === true,
      isOwn: role === "assistant",
      at: createdAt,
      text: textOf(parts),
    }))
    .filter(({ text }) => text !== "");
  const last = said.slice(-usualMessages).map((one, index): Said => ({ ...one, number: index + 1 }));
  return { said: last, hasOlder: stored.length > usualMessages, notices: [] };
}

interface SumUp {
  readonly request: SummaryRequest;
  readonly reading: Reading;
  /** A share of the context window, from 0 to 1. */
  readonly share: number;
  readonly answer: PartialAnswer;
  readonly receipt: ReturnType<typeof createReceiptDraft>;
  /** Makes the shown text of the model's words. */
  readonly link: (text: string) => string;
}

/** Summarizes the parts of a long history first, and then their summaries. */
async function sumUp(
  dependencies: TurnDependencies,
  run: CommandRun,
  { request, reading, share, answer, receipt, link }: SumUp,
) {
  const { chat, conversations, factors, gateway, models } = dependencies;
  const { reply, signal } = run;
  const model = await models.choose("chat", undefined, signal);
  const notices = [...models.takeNotices()];
  const budget = budgetFor(models.find(model)?.contextLength, chat.maxTokens, factors.of(model)) * share;
  const parts = (await toParts(reading.said, budget)).slice(-maxParts);
  const system = `${chat.systemPrompt}\n\n${instructionsFor(run.call.author.name, request.what)}`;
  const ask = (instructions: string, text: string) => ({
    model,
    messages: [
      { role: "system", content: instructions },
      { role: "user", content: text },
    ] as const,
    maxTokens: chat.maxTokens,
    temperature: chat.temperature,
  });
  const limit = createConcurrencyLimit(partsAtOnce);
  const maxPartTokens = Math.max(1, Math.min(chat.maxTokens, Math.floor(budget / parts.length)));

  async function noteOn({ text }: Part, index: number): Promise<string> {
    reply.status(translate("summarize.reading.part", { part: index + 1, parts: parts.length }));
    const asked = ask(`${system}\n\n${partInstructions}`, text);
    const note = await collectAnswer(
      gateway.chat({ ...asked, maxTokens: maxPartTokens, stream: false }, signal),
    );
    return `[Notes on part ${index + 1} of ${parts.length}]\n${toQuotedLines(note.text)}`;
  }

  const notes =
    parts.length === 1
      ? parts.map(({ text }) => text)
      : await Promise.all(parts.map((part, index) => limit(() => noteOn(part, index))));
  reply.status(translate("summarize.writing"));
  const written = toWrittenCall(run.call.name, request.what, {
    since: request.since === undefined ? undefined : new Date(request.since).toISOString(),
  });
  receipt.asks("chat", model);
  const end = await streamAnswer(
    {
      gateway,
      request: { ...ask(system, notes.join("\n\n")), stream: true },
      reply: { ...reply, write: (content) => reply.write({ ...content, text: link(content.text) }) },
      ready: askAs(run, [{ kind: "text", text: written }]),
      lead: "",
      conversations,
      conversationId: run.conversationId,
      altText: "",
      onFirstText: () => receipt.firstText(),
    },
    answer,
    signal,
  );
  receipt.answered(end);
  await end.whenSettled;
  if (end.reason !== "stop") notices.push(translate(`notice.ended.${end.reason}`));
  answer.notices.push(
    ...notices,
    ...basisNotices(
      parts.flatMap(({ said }) => said),
      reading,
    ),
  );
  return end;
}

interface Part {
  readonly said: readonly Said[];
  readonly text: string;
}

/** Makes parts of whole messages that each fit the budget, oldest first, and cuts too long messages. */
async function toParts(said: readonly Said[], budgetTokens: number): Promise<Part[]> {
  const parts: { said: Said[]; texts: string[]; tokens: number }[] = [];
  for (const one of said) {
    await nextPiece();
    const text = toLines(one, Math.floor(budgetTokens));
    const tokens = estimateTokens(text) + 1;
    const last = parts.at(-1);
    if (last === undefined || last.tokens + tokens > budgetTokens)
      parts.push({ said: [one], texts: [text], tokens });
    else {
      last.said.push(one);
      last.texts.push(text);
      last.tokens += tokens;
    }
  }
  return parts.map((part) => ({
    said: part.said,
    text: `[Said in this thread]\n${part.texts.join("\n\n")}`,
  }));
}

/** Makes what turns the numbers in a summary into links to the messages that were read, and no others. */
async function createLinker(
  { call, platform }: CommandRun,
  said: readonly Said[],
): Promise<(text: string) => string> {
  const urls = await platform.linksTo(
    call.address,
    said.flatMap(({ key }) => key ?? []),
  );
  const links = new Map(
    said.flatMap(({ number, key = "" }) => {
      const url = urls.get(key);
      return url === undefined ? [] : [[number, url] as const];
    }),
  );
  const known = await addressesIn(said.map(({ text }) => text));
  return (text) => linkSummary(text, { links, known });
}

function toLines({ number, author, isApp, at, text }: Said, maxChars: number): string {
  const words = toRoomText(
    { author: { id: "", name: author }, createdAt: at, room: { isApp } },
    cutText(text, maxChars),
    false,
  );
  return `[${number}] ${words}`;
}

function instructionsFor(caller: string, what: string | undefined): string {
  const name = toLabel(caller, 80);
  return [
    `Sum up for ${name} what was said. Begin with what matters most: decisions, open questions, who does what. Say who said it where that matters. Be short; use a list where it helps. Do not add anything that was not said. Each message has a number: end each point with the numbers of the messages that it rests on, as [3] or [3][8]. Write no links.`,
    what === undefined
      ? ""
      : `${name} asks for this in particular ("me" is ${name}):\n${toQuotedLines(what)}`,
    roomInstructions,
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

const partInstructions =
  "This is one part of a longer history. Write notes on it, at most 300 words, with the numbers of the messages; they are put together later.";

/** Notices that say which messages a summary is based on and what it does not cover. */
function basisNotices(said: readonly Said[], { said: all, hasOlder }: Reading): string[] {
  const named = (isApp: boolean) =>
    new Set(said.filter((one) => one.isApp === isApp && !one.isOwn).map(({ author }) => author)).size;
  const values = {
    messages: said.length,
    people: named(false),
    from: toMinute(said[0]?.at ?? 0),
    to: toMinute(said.at(-1)?.at ?? 0),
  };
  const apps = named(true);
  const leftOut = all.length - said.length;
  return [
    apps === 0
      ? translate("summarize.basis", values)
      : translate("summarize.basis.apps", { ...values, apps }),
    ...(leftOut === 0 ? [] : [translate("summarize.left-out", { count: leftOut })]),
    ...(hasOlder ? [translate("summarize.older")] : []),
  ];
}

function toMinute(unixMs: number): string {
  return new Date(unixMs).toISOString().replace("T", " ").slice(0, 16);
}

/** What a summary may link to and name. */
interface ReadMessages {
  /** The addresses of messages that were read, by the numbers that the model was given. */
  readonly links: ReadonlyMap<number, string>;
  /** The web addresses that stand in the messages ({@link addressesIn}). */
  readonly known: ReadonlySet<string>;
}

/** How many messages are linked at one place of a summary. */
const maxLinks = 5;

/** Web addresses as platforms find them in plain text: after a scheme, or after "www.". */
const addressPattern = /(?:\b[a-z][a-z\d+-]{0,15}:\/{1,8}|\bwww\.)[^\s<>()[\]{}"'`|\\]{0,2000}/gi;
const schemePattern =
  /(?:\b[a-z][a-z\d+-]{0,15}:\/{1,8}|:\/{1,8}|\bwww\.|\b(?:javascript|data|vbscript|mailto|tel):)/gi;
/** A link in Markdown, which may be a picture, with its label and its target. */
const linkPattern =
  /!?\[([^[\]\n]{0,300})\]\([^\S\n]{0,9}<?([^\s<>()]{0,500})>?(?:[^\S\n]{1,9}["'][^()\n]{0,200})?[^\S\n]{0,9}\)/g;
/** The numbers of messages: `[3]`, `[#3, #8]`, `[3][8]`, `【3】`. */
const citationPattern = / ?(?:!?[[【]#?\d{1,9}(?:[ ,;]{1,3}#?\d{1,9}){0,20}[\]】]){1,9}/g;
/** What begins a link, a mention or HTML in angle brackets. */
const anglePattern = /<(?=[a-z/!@#:&?\u{E000}])/giu;
/** Marks around addresses that stay. No text of a model has them when it is read. */
const marks = /[\u{E000}\u{E001}]/gu;
const held = /\u{E000}([^\u{E000}\u{E001}]{0,20000})\u{E001}/gu;

/** The web addresses in texts. */
export async function addressesIn(texts: readonly string[]): Promise<ReadonlySet<string>> {
  const addresses = new Set<string>();
  for (const text of texts) {
    await nextPiece();
    for (const found of text.toWellFormed().match(addressPattern) ?? []) addresses.add(withoutEnd(found));
  }
  return addresses;
}

/**
 * The text of a summary with links to the messages whose numbers it names. A number that no message has is
 * dropped. Addresses that stand in the messages stay as text; those that the model has made up stay without
 * their scheme, so that no platform makes a link of them. It works on any part of a text that still grows.
 */
export function linkSummary(text: string, { links, known }: ReadMessages): string {
  return withoutLinks(text.toWellFormed(), known).replaceAll(citationPattern, (citation) => {
    const numbers = new Set((citation.match(/\d+/g) ?? []).map(Number));
    const named = [...numbers].flatMap((number) => {
      const url = links.get(number);
      return url === undefined ? [] : [`[#${number}](${url})`];
    });
    return named.length === 0 ? "" : ` ${named.slice(0, maxLinks).join(" ")}`;
  });
}

/** Plain text in place of all links, whichever way a platform would make them. */
function withoutLinks(text: string, known: ReadonlySet<string>): string {
  const labelled = text.replaceAll(marks, "").replaceAll(linkPattern, (_, label: string, target: string) => {
    // The model may have linked the number by itself.
    if (/^#?\d{1,9}$/.test(label)) return `[${label}]`;
    return known.has(target) ? `${label} ${target}` : label;
  });
  const plain = labelled.replaceAll(addressPattern, (found, at: number) => {
    const address = withoutEnd(found);
    if (!known.has(address)) return found;
    // What follows without a space could belong to the address where a platform finds it.
    const isEnd = /^(?:\s|$)/.test(labelled.slice(at + found.length, at + found.length + 1));
    return `${hold(address)}${found.slice(address.length)}${isEnd ? "" : " "}`;
  });
  return (
    plain
      // Where words would meet, a space is left between them: they could make another scheme.
      .replaceAll(schemePattern, (_, at: number) => (at === 0 || /\s/.test(plain.charAt(at - 1)) ? "" : " "))
      .replaceAll("](", "] (")
      .replaceAll(anglePattern, "‹")
      .replaceAll(held, (_, encoded: string) => decodeURIComponent(encoded))
  );
}

/** An address that stays, in a form in which nothing is taken away. */
function hold(address: string): string {
  return `\u{E000}${encodeURIComponent(address).replaceAll(".", "%2E")}\u{E001}`;
}

function withoutEnd(address: string): string {
  return address.replace(/[.,;:!?*_~]{1,50}$/, "");
}
