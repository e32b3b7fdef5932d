/** One message as the sandbox remembers it. */
export interface Said {
  readonly role: "user" | "assistant";
  readonly text: string;
  readonly images: number;
}

const numbers: Readonly<Record<string, number>> = {
  a: 1,
  one: 1,
  two: 2,
  three: 3,
  four: 4,
  five: 5,
  six: 6,
  seven: 7,
  eight: 8,
  nine: 9,
  ten: 10,
};
const ordinals: readonly string[] = [
  "first",
  "second",
  "third",
  "fourth",
  "fifth",
  "sixth",
  "seventh",
  "eighth",
  "ninth",
  "tenth",
];

/** What a question about the conversation asks for. `index` counts the messages of `by`, from 0. */
export type Recall =
  | { readonly kind: "one"; readonly by: Said["role"]; readonly index: number }
  | { readonly kind: "all"; readonly by: Said["role"] | "both" }
  | { readonly kind: "count" };

/**
 * Reads the last user message as a question about what was said: "what did I say first?", "two messages ago",
 * "before that" (relative to the question before), "repeat everything I said", "how many messages?".
 * `undefined`: it is none. An index may lie outside the conversation.
 */
export function parseRecall(said: readonly Said[]): Recall | undefined {
  let before: Recall | undefined;
  let counts = { user: 0, assistant: 0 };
  for (const [at, message] of said.entries()) {
    if (message.role === "user") {
      const recall = parseQuestion(message.text, counts, before);
      if (at === said.length - 1) return recall;
      if (recall?.kind === "one") before = recall;
    }
    counts = { ...counts, [message.role]: counts[message.role] + 1 };
  }
  return undefined;
}

/** In conversations of several, messages begin with their author's name. */
export function withoutAuthor(text: string): string {
  return text.replace(/^[\p{L}\p{N}][\p{L}\p{N} ._'-]{0,31}: (?=\S)/u, "").trim();
}

function parseQuestion(
  text: string,
  counts: { user: number; assistant: number },
  before: Recall | undefined,
): Recall | undefined {
  if (text.length > 300) return undefined;
  const question = withoutAuthor(text).toLowerCase().replaceAll("’", "'");
  if (/\bhow many (messages|turns|questions)\b/.test(question)) return { kind: "count" };

  const by: Said["role"] =
    /\b(did|have|had) you\b|\byour? (first|last|previous)|\byou (said|say|tell|told|answered?|wrote)\b/.test(
      question,
    )
      ? "assistant"
      : "user";
  const isAboutSaying =
    /\b(say|said|write|wrote|ask|asked|tell|told|answer|answered|messages?|questions?|mentioned?|remember|repeat|quote)\b/.test(
      question,
    );

  if (/^(and |what about |what was )?(the one )?before (that|this|it)\b|\bbefore that\b/.test(question)) {
    if (before?.kind === "one") return { ...before, index: before.index - 1 };
    return { kind: "one", by, index: counts[by] - 2 };
  }
  if (!isAboutSaying) return undefined;

  const ago =
    /\b(\d{1,3}|[a-z]+) (?:messages?|turns?|questions?|posts?)? ?(?:ago|earlier|back|before)\b/.exec(
      question,
    );
  const steps = ago === null ? undefined : (numbers[ago[1] ?? ""] ?? Number(ago[1]));
  if (steps !== undefined && Number.isInteger(steps)) return { kind: "one", by, index: counts[by] - steps };

  const asksToShow =
    /^(what|which|can|could|do|please|repeat|list|give|tell|quote|show|remind|and|say)\b|\?$/.test(question);
  if (!asksToShow) return undefined;
  if (/\b(everything|all|whole|entire|so far|list|conversation|history)\b/.test(question)) {
    const isBoth = /\b(conversation|history|we|both)\b/.test(question);
    return { kind: "all", by: isBoth ? "both" : by };
  }
  const nth = /\b(?:message|question) (?:number |no\.? ?|#)?(\d{1,4})\b|#(\d{1,4})\b/.exec(question);
  if (nth !== null) return { kind: "one", by, index: Number(nth[1] ?? nth[2]) - 1 };
  const ordinal = ordinals.findIndex((word) => new RegExp(`\\b${word}\\b`).test(question));
  if (ordinal >= 0) return { kind: "one", by, index: ordinal };
  if (/\b(at the (start|beginning)|initially|originally)\b/.test(question))
    return { kind: "one", by, index: 0 };
  if (/\b(last|previous|previously|just|latest)\b/.test(question)) {
    return { kind: "one", by, index: counts[by] - 1 };
  }
  if (/\bwhat (did|have) (i|you) (say|said|write|written|ask|asked|tell|told)\b/.test(question)) {
    // "What did I say?" alone asks for all of it; "what did I say about X" is looked up by its words.
    return /\babout\b/.test(question) ? undefined : { kind: "all", by };
  }
  return undefined;
}

const stopWords = new Set(
  "a about am an and are as at be been but by can could did do does for from had has have how i if in is it its me my of on or our please said say tell that the their them then there they this to was we were what when where which who why will with would you your know remember name called".split(
    " ",
  ),
);

/**
 * The earlier user message that shares most words with a question, as an index into `said`; `undefined`: none does.
 * The later of equals wins, since it may correct the earlier.
 */
export function findRelated(said: readonly Said[]): number | undefined {
  const question = said.at(-1);
  if (question === undefined || !question.text.includes("?")) return undefined;
  const wanted = toKeywords(question.text);
  const wantsName = /\bname\b|\bcalled\b/i.test(question.text);
  let best: { index: number; score: number } | undefined;
  for (const [index, message] of said.slice(0, -1).entries()) {
    if (message.role !== "user" || message.text.trim().endsWith("?")) continue;
    const words = toKeywords(message.text);
    const namesSomething =
      wantsName && /\bname is\b|\bcalled\b|\bi am\b|\bi'm\b/i.test(message.text) ? 0.5 : 0;
    const score = [...wanted].filter((word) => words.has(word)).length + namesSomething;
    if (score > 0 && score >= (best?.score ?? 0)) best = { index, score };
  }
  return best?.index;
}

function toKeywords(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return new Set(
    words.filter((word) => !stopWords.has(word)).map((word) => word.replace(/(?<=\p{L}{3})s$/u, "")),
  );
}
