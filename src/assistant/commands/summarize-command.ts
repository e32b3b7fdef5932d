import { toWrittenCall } from "../../core/command-input.ts";
import { endedEarlyNotice, toNotice, roomFailureNotice } from "../../core/error-messages.ts";
import { isParleyError } from "../../core/errors.ts";
import type { RoomMessage } from "../../core/room.ts";
import { createConcurrencyLimit } from "../../support/keyed-queue.ts";
import { cutText } from "../../support/text.ts";
import { translate } from "../../words/translate.ts";
import { historyWithheld } from "../access/access.ts";
import { throwIfAbandoned, type TurnDependencies } from "../turn/turn.ts";
import { collectAnswer, streamAnswer, type PartialAnswer } from "../turn/stream-answer.ts";
import { budgetFor, roomInstructions, toRoomText } from "../turn/context-window.ts";
import { createReceiptDraft } from "../turn/receipt-draft.ts";
import { estimateTokens, messageIds, textOf, toEnding } from "../turn/stored-messages.ts";
import { storeQuestion, storeResult, toResult, type CommandRun } from "./command-run.ts";
import { addressesIn, linkSummary } from "./summary-links.ts";

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

interface SummaryRequest {
  readonly what?: string | undefined;
  /** The start in Unix milliseconds. */
  readonly since?: number | undefined;
}

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
): Promise<void> {
  const { reply } = run;
  await reply.show();
  reply.status(translate("summarize.reading"));
  const reading = await readSaid(dependencies, run, request);
  if (reading.said.length === 0) {
    const key = request.since === undefined ? "summarize.nothing" : "summarize.nothing-since";
    reply.write({ text: translate(key) });
    return await reply.finish({ notices: reading.notices });
  }
  const answer: PartialAnswer = { text: "", images: [], notices: [...reading.notices] };
  const receipt = createReceiptDraft();
  /** Links the numbers of messages, and no others. Nothing that the model writes is shown without it. */
  let linked = (_text: string): string => "";
  const written = toWrittenCall(run.call.name, request.what, {
    since: request.since === undefined ? undefined : new Date(request.since).toISOString(),
  });
  const question = () => storeQuestion(dependencies, run, [{ kind: "text", text: written }]);
  const attempt = (share: number) =>
    sumUp(dependencies, run, {
      request,
      reading,
      share,
      answer,
      receipt,
      question,
      linksWith: (link) => (linked = link),
    });
  const stopped = (why: string): Parameters<typeof storeResult>[2] => ({
    id: messageIds.complete(run.call.key),
    parts: [{ kind: "text", text: linked(answer.text) }],
    notices: [...answer.notices, why],
    outcome: "interrupted",
  });
  run.offerSoFar((why) =>
    answer.text === ""
      ? undefined
      : { message: toResult(dependencies, run, stopped(why), receipt), lead: "" },
  );
  let end: Awaited<ReturnType<typeof sumUp>>;
  try {
    end = await attempt(usualShare).catch((error: unknown) => {
      if (!isParleyError(error, "gateway-context-length") || answer.text !== "") throw error;
      return attempt(shrunkShare);
    });
  } catch (error) {
    const isStopped = isParleyError(error, "cancelled") && error.detail["because"] === "stopped";
    if (!isStopped || answer.text === "") throw error;
    throwIfAbandoned(run.signal);
    const { notices = [], ...kept } = stopped(toNotice(error));
    const stored = await storeResult(dependencies, run, { ...kept, notices }, receipt);
    await reply.finish(toEnding(run.conversationId, stored, notices));
    return run.ended("cancelled");
  }
  const stored = await storeResult(
    dependencies,
    run,
    {
      parts: [{ kind: "text", text: linked(answer.text) }],
      notices: answer.notices,
      model: end.model,
      usage: end.usage,
      ...(end.sources === undefined ? {} : { sources: end.sources }),
    },
    receipt,
  );
  await reply.finish(toEnding(run.conversationId, stored, answer.notices));
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
  const files = attachments.map(({ name }) => `[file ${name}]`);
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
  /** Stores the question before any words of the answer are shown. */
  readonly question: () => Promise<void>;
  /** Called with what makes the shown text of the model's words, before there are any. */
  readonly linksWith: (link: (text: string) => string) => void;
}

/** Summarizes the parts of a long history first, and then their summaries. */
async function sumUp(
  dependencies: TurnDependencies,
  run: CommandRun,
  { request, reading, share, answer, receipt, question, linksWith }: SumUp,
) {
  const { chat, conversations, factors, gateway, models } = dependencies;
  const { reply, signal } = run;
  const model = await models.choose("chat", undefined, signal);
  const notices = [...models.takeNotices()];
  const budget = budgetFor(models.find(model)?.contextLength, chat.maxTokens, factors.of(model)) * share;
  const all = toParts(reading.said, budget);
  const parts = all.slice(-maxParts);
  const link = await createLinker(
    run,
    parts.flatMap(({ said }) => said),
  );
  linksWith(link);
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
  const sums =
    parts.length === 1
      ? [parts[0]?.text ?? ""]
      : await Promise.all(
          parts.map(({ text }, index) =>
            limit(async () => {
              reply.status(translate("summarize.reading.part", { part: index + 1, parts: parts.length }));
              const part = await collectAnswer(
                gateway.chat(
                  {
                    ...ask(`${system}\n\n${partInstructions}`, text),
                    maxTokens: Math.max(1, Math.min(chat.maxTokens, Math.floor(budget / parts.length))),
                    stream: false,
                  },
                  signal,
                ),
              );
              return part.text;
            }),
          ),
        );
  reply.status(translate("summarize.writing"));
  const whole = sums
    .map((text, index) =>
      sums.length === 1 ? text : `[Notes on part ${index + 1} of ${sums.length}]\n${text}`,
    )
    .join("\n\n");
  receipt.asks("chat", model);
  const end = await streamAnswer(
    {
      gateway,
      request: { ...ask(system, whole), stream: true },
      reply: { ...reply, write: (content) => reply.write({ ...content, text: link(content.text) }) },
      ready: question(),
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
  if (end.reason !== "stop") notices.push(endedEarlyNotice(end.reason));
  const basis = toBasis(
    parts.flatMap(({ said }) => said),
    reading,
  );
  answer.notices.push(...notices, ...summaryNotices(basis));
  return end;
}

interface Part {
  readonly said: readonly Said[];
  readonly text: string;
}

/** Makes parts of whole messages that each fit the budget, oldest first, and cuts too long messages. */
function toParts(said: readonly Said[], budgetTokens: number): Part[] {
  const parts: { said: Said[]; texts: string[]; tokens: number }[] = [];
  for (const one of said) {
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

/** Makes what turns the numbers in a summary into links to the messages that the model has read. */
async function createLinker(
  { call, platform }: CommandRun,
  said: readonly Said[],
): Promise<(text: string) => string> {
  const links = new Map<number, string>();
  const urls = await platform.linksTo(
    call.address,
    said.flatMap(({ key }) => key ?? []),
  );
  for (const { number, key } of said) {
    const url = key === undefined ? undefined : urls.get(key);
    if (url !== undefined) links.set(number, url);
  }
  const known = addressesIn(said.map(({ text }) => text));
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

function toBasis(said: readonly Said[], { said: all, hasOlder }: Reading): SummaryBasis {
  const named = (isApp: boolean) =>
    new Set(said.filter((one) => one.isApp === isApp && !one.isOwn).map(({ author }) => author)).size;
  return {
    messages: said.length,
    people: named(false),
    apps: named(true),
    from: said[0]?.at ?? 0,
    to: said.at(-1)?.at ?? 0,
    leftOut: all.length - said.length,
    hasOlder,
  };
}

function instructionsFor(caller: string, what: string | undefined): string {
  const name = caller.replaceAll(/\s+/g, " ").slice(0, 80);
  return [
    `Sum up for ${name} what was said. Begin with what matters most: decisions, open questions, who does what. Say who said it where that matters. Be short; use a list where it helps. Do not add anything that was not said. Each message has a number: end each point with the numbers of the messages that it rests on, as [3] or [3][8]. Write no links.`,
    what === undefined ? "" : `${name} asks for this in particular ("me" is ${name}): ${what}`,
    roomInstructions,
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

const partInstructions =
  "This is one part of a longer history. Write notes on it, at most 300 words, with the numbers of the messages; they are put together later.";

/** What a summary is based on, with times in Unix ms. */
interface SummaryBasis {
  readonly messages: number;
  readonly people: number;
  readonly apps: number;
  readonly from: number;
  readonly to: number;
  /** The number of messages that were read but did not fit. */
  readonly leftOut: number;
  /** Whether there are older messages that were requested but not read. */
  readonly hasOlder: boolean;
}

/** Notices that say what a summary is based on and what it does not cover. */
function summaryNotices({ apps, leftOut, hasOlder, ...basis }: SummaryBasis): string[] {
  const values = {
    messages: basis.messages,
    people: basis.people,
    from: toMinute(basis.from),
    to: toMinute(basis.to),
  };
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
