/** One message of the conversation. */
export interface Said {
  readonly role: "user" | "assistant";
  readonly text: string;
  /** Number of images. */
  readonly images: number;
}

/** What a question about the conversation asks for. `index` counts the messages of `by` from 0. */
export type Recall =
  | { readonly kind: "one"; readonly by: Said["role"]; readonly index: number }
  | { readonly kind: "all"; readonly by: Said["role"] | "both" }
  | { readonly kind: "count" };

type Counts = Readonly<Record<Said["role"], number>>;

const numbers = "zero one two three four five six seven eight nine ten".split(" ");
const ordinals = "first second third fourth fifth sixth seventh eighth ninth tenth".split(" ");

/** Removes the author's name, with which messages begin in conversations of several people. */
export function withoutAuthor(text: string): string {
  return text.replace(/^[\p{L}\p{N}][\p{L}\p{N} ._'-]{0,31}: (?=\S)/u, "").trim();
}

/**
 * Reads the last user message as a question about the conversation: "what did I say first?", "two messages ago",
 * "before that" (relative to the previous question), "repeat everything I said", "how many messages?". `undefined`
 * when it is none. The index may be outside the conversation.
 */
export function parseRecall(said: readonly Said[]): Recall | undefined {
  let previous: Recall | undefined;
  let counts: Counts = { user: 0, assistant: 0 };
  for (const [at, message] of said.entries()) {
    if (message.role === "user") {
      const recall = parseQuestion(message.text, counts, previous);
      if (at === said.length - 1) return recall;
      if (recall?.kind === "one") previous = recall;
    }
    counts = { ...counts, [message.role]: counts[message.role] + 1 };
  }
  return undefined;
}

function parseQuestion(text: string, counts: Counts, previous: Recall | undefined): Recall | undefined {
  if (text.length > 300) return undefined;
  const question = withoutAuthor(text).toLowerCase().replaceAll("’", "'");
  const asks = (pattern: RegExp): boolean => pattern.test(question);
  if (asks(/\bhow many (messages|turns|questions)\b/)) return { kind: "count" };

  const by = asks(/\b(did|have|had) you\b|\byour (first|last|previous)\b|\byou (said|told|wrote|answered)\b/)
    ? "assistant"
    : "user";
  const one = (index: number): Recall => ({ kind: "one", by, index });
  if (asks(/\bbefore (that|this|it)\b/)) {
    return previous?.kind === "one" ? { ...previous, index: previous.index - 1 } : one(counts[by] - 2);
  }
  if (!asks(/\b(say|said|write|wrote|asked?|tell|told|answer|messages?|questions?|repeat|quote)\b/))
    return undefined;
  const ago =
    /\b(\w{1,5}) (?:messages?|turns?|questions?)? ?(?:ago|earlier|back)\b/.exec(question)?.[1] ?? "";
  const steps = numbers.includes(ago) ? numbers.indexOf(ago) : Number.parseInt(ago);
  if (!Number.isNaN(steps)) return one(counts[by] - steps);

  if (!asks(/^(what|which|can|could|do|please|repeat|list|give|tell|quote|show|and|say)\b|\?$/))
    return undefined;
  if (asks(/\b(everything|all|whole|so far|list|conversation|history)\b/)) {
    return { kind: "all", by: asks(/\b(conversation|history|we|both)\b/) ? "both" : by };
  }
  const nth = /\b(?:message|question) (?:number |#)?(\d{1,4})\b/.exec(question)?.[1];
  if (nth !== undefined) return one(Number(nth) - 1);
  const ordinal = ordinals.findIndex((word) => asks(new RegExp(`\\b${word}\\b`)));
  if (ordinal >= 0) return one(ordinal);
  if (asks(/\b(last|previous|just|latest)\b/)) return one(counts[by] - 1);
  // "What did I say about X?" is answered by findRelated.
  const isGeneral = asks(/\bwhat (did|have) (i|you) (say|said|write|written|ask|asked|tell|told)\b/);
  return isGeneral && !asks(/\babout\b/) ? { kind: "all", by } : undefined;
}

const maxCompared = 100;
const maxComparedChars = 1000;

/** Words that say nothing about the subject of a question. */
const stopWords =
  " a about am an and are as at be but by can could did do for from had has have how i if in is it me my of on or our please said say tell that the their them then there they this to was we were what when where which who why will with would you your know remember name called ";

/**
 * Index of the earlier user message that shares most words with a question; the later of equals, which may correct
 * the earlier. `undefined` when none shares any. Of long conversations the last 100 messages are compared, of long
 * messages the first 1,000 characters.
 */
export function findRelated(said: readonly Said[]): number | undefined {
  const question = said.at(-1)?.text.slice(-maxComparedChars) ?? "";
  if (!question.includes("?")) return undefined;
  const wanted = toKeywords(question);
  const wantsName = /\bname\b|\bcalled\b/i.test(question);
  let best: { index: number; score: number } | undefined;
  const oldest = Math.max(0, said.length - 1 - maxCompared);
  for (const [offset, { role, text: whole }] of said.slice(oldest, -1).entries()) {
    const index = oldest + offset;
    const text = whole.slice(0, maxComparedChars);
    if (role !== "user" || whole.trimEnd().endsWith("?")) continue;
    const isNaming = wantsName && /\bname is\b|\bcalled\b|\bi am\b|\bi'm\b/i.test(text);
    const words = toKeywords(text);
    const score = [...wanted].filter((word) => words.has(word)).length + (isNaming ? 0.5 : 0);
    if (score > 0 && score >= (best?.score ?? 0)) best = { index, score };
  }
  return best?.index;
}

function toKeywords(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const subjects = words.filter((word) => !stopWords.includes(` ${word} `));
  return new Set(subjects.map((word) => word.replace(/(?<=\p{L}{3})s$/u, "")));
}
