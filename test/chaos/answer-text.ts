/** An answer of the slow gateway as it is shown or stored: `re #e1 #e2 ......`. */
export interface AnswerText {
  /** The labels in the order of the text. */
  readonly labels: readonly string[];
  /** Whether all of its six dots are there. */
  readonly isWhole: boolean;
  /** The answer alone, without a quoted question before it and notices behind it. */
  readonly text: string;
}

const answer = /(?:^|\n)(re (?:#\w+ )*(\.*))[ \t]*(?:\n|$)/;

/** Finds the answer in a message, or returns `undefined`. */
export function parseAnswer(text: string): AnswerText | undefined {
  const match = answer.exec(text.replaceAll("\r", ""));
  if (match === null) return undefined;
  const [, whole = "", dots = ""] = match;
  return { labels: whole.match(/#\w+/g) ?? [], isWhole: dots.length === 6, text: whole.trim() };
}
