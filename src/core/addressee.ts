import { callsByName, hasWords } from "./called-names.ts";

/**
 * Which messages are answered in a channel and its threads, as `answer-to` has it.
 * - `addressed`, the default: what mentions the bot or replies to it. In a thread of its own also every
 *   message while one person alone writes there, and then its name and the next message of whom it has just
 *   answered.
 * - `named`: what mentions the bot, replies to it or names it.
 * - `mentions`: what mentions it.
 * - `all`: everything that people write.
 */
export type AnswerTo = "addressed" | "all" | "mentions" | "named";

/** Which messages are answered in a place. */
export interface AnswerRule {
  readonly answerTo: AnswerTo;
  /** People had the place before, or `/dismiss` sent the bot away. Otherwise the thread is the bot's own. */
  readonly isPeoples: boolean;
}

/** A piece of a message's text: words, or a mention of the bot, or of another person, app or group. */
type Piece = string | { readonly mentions: "bot" | "other" };

/** What a message says, and to whom, as far as the message itself tells. */
export interface SpokenMessage {
  readonly author: "person" | "app";
  /** The text as {@link toPieces} makes it. */
  readonly pieces: readonly Piece[];
  readonly hasFiles?: boolean;
  /**
   * It is a direct message, or the platform counts it as a mention of the bot, such as a reply that pings it.
   */
  readonly isCall?: boolean;
  /** The author of the message that it replies to. `self` is its own author. */
  readonly repliesTo?: "bot" | "app" | "person" | "self" | undefined;
  /** The names of the bot where the message stands. */
  readonly botNames?: readonly string[];
}

/** What was said before a message in a thread of the bot's own. */
export interface SaidBefore {
  /** Nobody else has written there. */
  readonly isAlone: boolean;
  /** The bot has just answered the author, or is asked by them already: nobody spoke since. */
  readonly isNext: boolean;
  /** The names of the others who write there. */
  readonly names: readonly string[];
}

/**
 * Whether a message is answered. What an app writes never is, so that two bots do not answer each other, and
 * what mentions the bot always is.
 */
export function isAnswered(
  message: SpokenMessage,
  { answerTo, isPeoples }: AnswerRule,
  before: SaidBefore = { isAlone: false, isNext: false, names: [] },
): boolean {
  if (message.author === "app") return false;
  if (message.isCall === true || message.pieces.some((piece) => isMention(piece, "bot"))) return true;
  switch (answerTo) {
    case "mentions":
      return false;
    case "all":
      return true;
    case "named":
      return isReplyToBot(message) || isNamed(message);
    case "addressed":
      if (isReplyToBot(message)) return true;
      if (isPeoples) return false;
      return isNamed(message) || (before.isAlone ? !callsOthers(message) : isNextQuestion(message, before));
  }
}

/** Whether a message says anything: it has words or files, and is not only emoji, a link, code or "+1". */
export function saysSomething(message: SpokenMessage): boolean {
  return message.hasFiles === true || hasWords(wordsOf(message));
}

/** What is neither words nor files is nobody's question, nor is what turns to somebody else. */
function isNextQuestion(message: SpokenMessage, { isNext, names }: SaidBefore): boolean {
  if (!isNext || !saysSomething(message)) return false;
  if (message.repliesTo === "person" || message.repliesTo === "app") return false;
  return !message.pieces.some((piece) => isMention(piece, "other")) && !callsByName(wordsOf(message), names);
}

/** A reply to the bot that begins with a mention of somebody else shows them what it said. */
const isReplyToBot = (message: SpokenMessage): boolean =>
  message.repliesTo === "bot" && !beginsWithOthers(message);

const isNamed = (message: SpokenMessage): boolean =>
  callsByName(wordsOf(message), message.botNames ?? [], true);

/** The words of a message. A mention separates them. */
const wordsOf = ({ pieces }: SpokenMessage): string =>
  pieces.map((piece) => (typeof piece === "string" ? piece : " <@> ")).join("");

/** Whether it mentions others first, or at its end behind a comma, or replies to them. */
const callsOthers = (message: SpokenMessage): boolean =>
  message.repliesTo === "person" || beginsWithOthers(message) || endsWithOthers(message);

/** Spaces, marks and emoji that people type before the name of the addressee. A backtick begins code. */
const openings = /^(?:\s|:[\w+-]+:|(?!`)\p{P}|(?!`)\p{S}|\u{200d}|\u{fe0f})*/u;

/** What people say before the name of whom they greet or thank, in the languages that Parley speaks. */
const greetings =
  /^(?:hey|hi|hello|yo|ok|okay|thanks|thank you|thx|sorry|(?:good )?(?:morning|afternoon|evening)|hallo|moin|danke|guten (?:morgen|tag|abend)|salut|bonjour|bonsoir|merci|hola|oye|gracias|buen[oa]s (?:días|tardes|noches)|ねえ|おはよう|こんにちは|ありがとう(?:ございます)?)(?=$|[\s\p{P}])/iu;

/** Whether the last sentence has words and ends with its only comma. */
function endsWithComma(text: string): boolean {
  const words = text.trimEnd();
  const sentence =
    words
      .slice(0, -1)
      .split(/[.!?。！？\n]/u)
      .at(-1) ?? "";
  return /[,，、]$/u.test(words.slice(-1)) && !/[,，、]/u.test(sentence) && /\p{L}/u.test(sentence);
}

const saysAny = (piece: Piece): boolean => typeof piece !== "string" || piece.replace(openings, "") !== "";

/** Whether it begins with a mention of others, as in "@a look" and "hey @a". */
function beginsWithOthers({ pieces }: SpokenMessage): boolean {
  const [opening = "", ...rest] = pieces;
  const greeted =
    typeof opening === "string" ? opening.replace(openings, "").replace(greetings, "") : opening;
  const first = [greeted, ...rest].find(saysAny);
  return first !== undefined && isMention(first, "other");
}

/** Whether it ends so, as in "look, @a". */
function endsWithOthers({ pieces }: SpokenMessage): boolean {
  const last = pieces.findLastIndex(saysAny);
  const before = pieces[last - 1];
  return isMention(pieces[last] ?? "", "other") && typeof before === "string" && endsWithComma(before);
}

function isMention(piece: Piece, of: "bot" | "other"): boolean {
  return typeof piece !== "string" && piece.mentions === of;
}

/**
 * Lines that quote what somebody has said, as they are typed and as Slack sends them. `>>>` quotes all that
 * follows.
 */
const quotes = /^(?:>|&gt;){3}[^]*|^(?:>|&gt;)[^\n]*(?:\n|$)/gm;

/**
 * Splits the text of a message at its mentions. Quoted lines are left out, since others have said them.
 * @param mention finds mentions and is global
 * @param isBot whether a mention that was found is one of the bot
 */
export function toPieces(text: string, mention: RegExp, isBot: (found: string) => boolean): readonly Piece[] {
  const own = text.replace(quotes, "");
  const pieces: Piece[] = [];
  let end = 0;
  for (const { 0: found, index } of own.matchAll(mention)) {
    if (index > end) pieces.push(own.slice(end, index));
    pieces.push({ mentions: isBot(found) ? "bot" : "other" });
    end = index + found.length;
  }
  return end < own.length ? [...pieces, own.slice(end)] : pieces;
}
