/** How large one chat answer may become. The bounds are generous: only an answer that ignores its limit meets them. */
export interface AnswerLimits {
  /** Of the text that is shown. */
  readonly textChars: number;
  /** Of reasoning, tool calls and refusals, which some services count apart from the limit. */
  readonly asideChars: number;
  /** Number of events without any content. */
  readonly silentEvents: number;
  /** Of the whole body, as it is sent. */
  readonly wireBytes: number;
}

/** The longest tokens in use have 128 characters of white space; 64 is above any average. */
const charsPerToken = 64;
/** Tokens that reasoning may have beyond the limit of the answer. */
const reasoningTokens = 65_536;
/** Of an event with one token in it. */
const wireBytesPerToken = 1024;
const spareChars = 64 * 1024;

/** The limits of an answer for which `maxTokens` were requested. `imageBytes` is what its images may have on the wire. */
export function answerLimitsOf(maxTokens: number, imageBytes: number): AnswerLimits {
  const tokens = maxTokens + reasoningTokens;
  return {
    textChars: maxTokens * charsPerToken + spareChars,
    asideChars: tokens * charsPerToken,
    silentEvents: tokens,
    wireBytes: tokens * wireBytesPerToken + imageBytes,
  };
}

/** What of an answer grows past its limits. */
export type AnswerPart = "text" | "aside" | "silent" | "wire";

/** Adds up the parts of one answer. */
interface AnswerMeter {
  add(part: AnswerPart, amount: number): void;
  /** What is left for a part; 0 or less once it is used up. */
  left(part: AnswerPart): number;
  /** The first part that is over its limit. */
  exceeded(): AnswerPart | undefined;
}

/** @see {@link AnswerMeter} */
export function createAnswerMeter(limits: AnswerLimits): AnswerMeter {
  const left: Record<AnswerPart, number> = {
    text: limits.textChars,
    aside: limits.asideChars,
    silent: limits.silentEvents,
    wire: limits.wireBytes,
  };
  let exceeded: AnswerPart | undefined;
  return {
    add: (part, amount) => {
      left[part] -= amount;
      if (left[part] < 0) exceeded ??= part;
    },
    left: (part) => left[part],
    exceeded: () => exceeded,
  };
}
