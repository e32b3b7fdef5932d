import { isAnswered, saysSomething, type AnswerRule, type SaidBefore } from "../../core/addressee.ts";
import type { Aside, MessageFacts, Placement } from "../../core/placement.ts";
import type { Receiver } from "../../core/receiver.ts";
import type { ConversationSettings, StoredMessage } from "../../core/storage.ts";
import { writersOf } from "../settings/conversation-writers.ts";
import type { ThreadRules, ThreadState } from "../settings/thread-rules.ts";

/** What is known where a message stands. */
export interface PlaceRules {
  readonly rule: AnswerRule;
  readonly answerIn: "thread" | "channel";
  /** A question in the thread brings all that was said there and is not stored. */
  readonly inRoom?: boolean;
  readonly before?: SaidBefore;
}

/**
 * Says what becomes of a message. A platform gives the facts, and every platform is answered alike. An aside
 * is what was said to others in a thread of the bot's own; elsewhere it concerns nobody.
 */
export function place(
  facts: MessageFacts,
  { rule, answerIn, before, inRoom = rule.isPeoples }: PlaceRules,
): Placement {
  const { stands } = facts;
  const known = facts.wasAsked === true && before !== undefined ? { ...before, isNext: true } : before;
  const isForBot = isAnswered(facts, rule, known);
  switch (stands.in) {
    case "direct":
      return isForBot
        ? { kind: "question", conversationId: stands.conversationId, inRoom: false, where: "here" }
        : { kind: "ignore" };
    case "channel":
      if (!isForBot) return { kind: "ignore" };
      return answerIn === "channel"
        ? { kind: "question", conversationId: stands.conversationId, inRoom: false, where: "here" }
        : { kind: "question", conversationId: stands.threadId, inRoom: false, where: "new-thread" };
    case "thread":
      if (isForBot) return { kind: "question", conversationId: stands.conversationId, inRoom, where: "here" };
      return rule.isPeoples ? { kind: "ignore" } : toAside(facts, rule, before);
  }
}

function toAside(facts: MessageFacts, { answerTo }: AnswerRule, before: SaidBefore | undefined): Aside {
  const { conversationId } = facts.stands;
  const isPersons = facts.author === "person";
  return {
    kind: "aside",
    conversationId,
    sentAt: facts.sentAt,
    ...(isPersons && answerTo === "addressed" && saysSomething(facts) ? { hasWords: true } : {}),
    ...(isPersons && before?.isAlone === false ? { isShared: true } : {}),
  };
}

/** Creates {@link Receiver.placeMessage}. */
export function createPlacing({
  rules,
  askedAt,
}: {
  readonly rules: ThreadRules;
  /** When this person's message was sent that this process has accepted there and not yet answered. */
  readonly askedAt: (conversationId: string, authorId: string) => number | undefined;
}): Receiver["placeMessage"] {
  async function read(facts: MessageFacts): Promise<PlaceRules> {
    const { stands } = facts;
    if (stands.in === "direct") return { rule: { answerTo: "all", isPeoples: false }, answerIn: "thread" };
    if (stands.in === "channel") {
      const { answerTo, answerIn } = await rules.ofChannel(stands.place);
      return { rule: { answerTo, isPeoples: true }, answerIn };
    }
    const state = await rules.ofThread(stands.conversationId, stands.place);
    const isPeoples = state.isPeoples ?? !(await isOwn(facts, stands.isOwn));
    const rule = { answerTo: state.answerTo, isPeoples };
    // Below a message of the bot's that stands in the channel, the conversation does not hold that message.
    const inRoom = isPeoples || (state.isPeoples === undefined && stands.isBelowOwn === true);
    const known = { rule, inRoom, answerIn: "thread" } as const;
    if (isPeoples || state.answerTo !== "addressed") return known;
    const { settings } = state;
    const messages = await state.messages();
    const asked =
      askedAt(stands.conversationId, facts.authorId) ??
      (await rules.askedAt(stands.conversationId, facts.authorId));
    return { ...known, before: toSaidBefore(facts, { settings, messages }, asked) };
  }

  return async (facts) => place(facts, await read(facts));
}

/** Whoever calls the bot is answered, whether or not the platform can say whose the thread is. */
async function isOwn(facts: MessageFacts, ask: () => boolean | Promise<boolean>): Promise<boolean> {
  try {
    return await ask();
  } catch (error) {
    if (facts.isCall === true) return false;
    throw error;
  }
}

/** What was said in the bot's thread before a message, from what is stored of it. */
function toSaidBefore(
  { authorId, sentAt, isEdited = false }: Pick<MessageFacts, "authorId" | "isEdited" | "sentAt">,
  { messages, settings }: Pick<ThreadState, "settings"> & { readonly messages: readonly StoredMessage[] },
  askedAt?: number,
): SaidBefore {
  const others = writersOf(messages).filter(({ id }) => id !== authorId);
  const { aside, room } = settings;
  const isUnread = aside !== undefined && aside.to > (room?.readAt ?? 0);
  // What an edit changes was itself said to others before.
  const until = isEdited ? sentAt - 1 : sentAt;
  const spokenSince = [answeredAt(messages, authorId, sentAt), askedAt].filter(
    (at) => at !== undefined && at < sentAt,
  );
  return {
    isAlone: others.length === 0 && !(isUnread && aside.isShared === true),
    isNext: spokenSince.some((at) => !hasSpokenSince(aside, at ?? 0, until)),
    names: [...new Set(others.flatMap(({ name, alsoCalled = [] }) => [name, ...alsoCalled]))],
  };
}

/**
 * When the last turn before a message was answered, if it was this person's; if there is no answer yet, when
 * it was asked. Another process may know later questions than the message that it decides about.
 */
function answeredAt(
  messages: readonly StoredMessage[],
  authorId: string,
  sentAt: number,
): number | undefined {
  const asked = messages.filter(
    ({ role, room, createdAt }) => role === "user" && room === undefined && createdAt < sentAt,
  );
  const keys = new Set(asked.map(({ turnKey }) => turnKey));
  const all = messages.filter((one) =>
    one.role === "assistant" ? keys.has(one.turnKey) : asked.includes(one),
  );
  const last = all.findLastIndex(({ role }) => role === "assistant");
  const earlier = all.slice(0, Math.max(0, last)).findLastIndex(({ role }) => role === "assistant");
  const question = all.findLast(
    ({ role, author }, index) => index > earlier && role === "user" && author?.id === authorId,
  );
  if (question === undefined) return undefined;
  const answer = all[last];
  const isAnswered = answer !== undefined && all.indexOf(question) < last && answer.createdAt < sentAt;
  if (!isAnswered) return question.createdAt;
  // The bot turns to whoever has asked it since.
  return asked.some(({ createdAt }) => createdAt > answer.createdAt) ? undefined : answer.createdAt;
}

/** Whether somebody has said something to others after a time and until another one. */
function hasSpokenSince(aside: ConversationSettings["aside"], from: number, until: number): boolean {
  const { words } = aside ?? {};
  return words !== undefined && [words.from, words.to].some((at) => at > from && at <= until);
}
