/** Which messages are answered, as `answer-to` has it. A mention of the bot is answered with each of them. */
export type AnswerTo = "mentions" | "addressed" | "every-message";

/** How the messages of a place or thread are answered. */
export interface AnswerRule {
  readonly answerTo: AnswerTo;
  /** Whether nobody has set it. With a default, a message to somebody else is never answered. */
  readonly isDefault?: true;
}

/** A piece of a message's text: words, or a mention of the bot, or of another person, app or group. */
type Piece = string | { readonly mentions: "bot" | "other" };

/** The facts by which it is decided whether a message is for the bot. */
export interface SpokenMessage {
  readonly author: "person" | "app";
  /** The text as {@link toPieces} makes it. */
  readonly pieces: readonly Piece[];
  /**
   * It is a direct message, or the platform counts it as a mention of the bot, such as a reply that pings it.
   */
  readonly isCall?: boolean;
  /** The author of the message that it replies to. `self` is its own author. */
  readonly repliesTo?: "bot" | "app" | "person" | "self" | undefined;
  /** The name of the bot. A reply to a person that begins with it is said to the bot. */
  readonly botName?: string | undefined;
}

/**
 * Whether a message is answered. What an app writes never is, so that two bots do not answer each other, and
 * what mentions the bot always is. With `addressed` a message is not answered that is for somebody else: it
 * begins with a mention of others, after a greeting or thanks too, or it ends with one behind a comma, or it
 * replies to a person and does not name the bot. Where one person has written, by default, a reply to their
 * own message is for the bot.
 */
export function isAnswered(message: SpokenMessage, { answerTo, isDefault }: AnswerRule): boolean {
  if (message.author === "app") return false;
  if (message.isCall === true || message.pieces.some((piece) => isMention(piece, "bot"))) return true;
  switch (answerTo) {
    case "mentions":
      return false;
    case "every-message":
      return isDefault !== true || !(callsOthers(message) || isReplyTo(message, ["person"]));
    case "addressed":
      return !(callsOthers(message) || isReplyTo(message, ["person", "self"]));
  }
}

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

const hasWords = (piece: Piece): boolean => typeof piece !== "string" || piece.replace(openings, "") !== "";

/** Whether it begins with a mention of others, as in "@a look" and "hey @a", or ends so, as in "look, @a". */
function callsOthers({ pieces }: SpokenMessage): boolean {
  const [opening = "", ...rest] = pieces;
  const greeted =
    typeof opening === "string" ? opening.replace(openings, "").replace(greetings, "") : opening;
  const first = [greeted, ...rest].find(hasWords);
  if (first !== undefined && isMention(first, "other")) return true;
  const last = pieces.findLastIndex(hasWords);
  const before = pieces[last - 1];
  return isMention(pieces[last] ?? "", "other") && typeof before === "string" && endsWithComma(before);
}

function isReplyTo(message: SpokenMessage, whom: readonly SpokenMessage["repliesTo"][]): boolean {
  return message.repliesTo !== undefined && whom.includes(message.repliesTo) && !beginsWithName(message);
}

function beginsWithName({ pieces, botName = "" }: SpokenMessage): boolean {
  const [first = ""] = pieces;
  if (typeof first !== "string" || botName === "") return false;
  const words = first.replace(openings, "").toLowerCase();
  const after = words.slice(botName.length, botName.length + 1);
  return words.startsWith(botName.toLowerCase()) && !/[\p{L}\p{N}]/u.test(after);
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
