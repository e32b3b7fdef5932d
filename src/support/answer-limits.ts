/** How large a chat answer may become. Only an answer that ignores its token limit meets these bounds. */
export interface AnswerLimits {
  /** The limit of the text that people see. */
  readonly textChars: number;
  /** The limit of reasoning, tool calls and refusals, which some services count separately. */
  readonly asideChars: number;
  /** The highest number of events without any content. */
  readonly silentEvents: number;
  /** The limit of the whole body as it is sent. */
  readonly wireBytes: number;
}

/** The longest tokens in use have 128 characters of white space, so 64 is above any average. */
const charsPerToken = 64;
/** How many tokens reasoning may have beyond the limit of the answer. */
const reasoningTokens = 65_536;
/** The size of an event with one token. */
const wireBytesPerToken = 1024;
const spareChars = 64 * 1024;

/** The limits of an answer with `maxTokens`. `imageBytes` is the limit for its images on the wire. */
export function answerLimitsOf(maxTokens: number, imageBytes: number): AnswerLimits {
  const tokens = maxTokens + reasoningTokens;
  return {
    textChars: maxTokens * charsPerToken + spareChars,
    asideChars: tokens * charsPerToken,
    silentEvents: tokens,
    wireBytes: tokens * wireBytesPerToken + imageBytes,
  };
}

/** The parts of an answer that have limits. */
export type AnswerPart = "text" | "aside" | "silent" | "wire";

/** Adds up the parts of one answer. */
export function createAnswerMeter(limits: AnswerLimits) {
  const left: Record<AnswerPart, number> = {
    text: limits.textChars,
    aside: limits.asideChars,
    silent: limits.silentEvents,
    wire: limits.wireBytes,
  };
  let exceeded: AnswerPart | undefined;
  return {
    add: (part: AnswerPart, amount: number): void => {
      left[part] -= amount;
      if (left[part] < 0) exceeded ??= part;
    },
    /** How much is left for a part. It is 0 or less once the part is used up. */
    left: (part: AnswerPart) => left[part],
    /** The first part that is over its limit. */
    exceeded: () => exceeded,
  };
}
