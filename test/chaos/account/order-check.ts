import { parseAnswer } from "../answer-text.ts";
import type { ShownMessage } from "../people/sent-message.ts";
import { textOf, type Outcome } from "./outcomes.ts";

/**
 * One line for each answer that is shown, or message that is stored, before one that was sent earlier in the same
 * conversation.
 */
export function findDisorder(outcomes: readonly Outcome[], shown: readonly ShownMessage[]): string[] {
  const positions = new Map(shown.map(({ id }, position) => [id, position]));
  const problems: string[] = [];
  const comparable = outcomes.filter(
    ({ sent, isAnswered, retry }) =>
      isAnswered && retry === undefined && sent.deletedAt === undefined && !sent.isRedelivered(),
  );
  for (const its of Map.groupBy(comparable, ({ sent }) => sent.conversation).values()) {
    for (const [index, later] of its.entries()) {
      const earlier = its[index - 1];
      if (earlier === undefined) continue;
      const names = `${nameOf(earlier)} and ${nameOf(later)} in ${later.sent.conversation}`;
      if (shownAt(earlier) > shownAt(later)) problems.push(`disordered: answers to ${names}`);
      if (storedAt(earlier) > storedAt(later)) problems.push(`disordered: stored messages ${names}`);
    }
  }
  for (const { sent, kept, history } of comparable) {
    const [answer] = kept;
    if (answer !== undefined && history.indexOf(answer) < storedAt({ sent, history }))
      problems.push(`disordered: the answer to ${sent.label} is stored before it`);
  }
  return problems;

  /** Twice the position of the answer, and the place within an answer to several. */
  function shownAt({ sent, answers }: Outcome): number {
    const [answer] = answers;
    if (answer === undefined) return 0;
    const labels = parseAnswer(answer.text)?.labels ?? [];
    return (positions.get(answer.id) ?? 0) + labels.indexOf(sent.label) / (labels.length + 1);
  }
}

/** With how long after it was sent it was accepted, and how it was delivered. */
function nameOf({ sent, entry }: Outcome): string {
  const afterMs = (entry?.acceptedAt ?? Number.NaN) - sent.sentAt;
  return `${sent.label} (sent at ${sent.sentAt}, accepted after ${afterMs} ms; ${sent.deliveries().join(", ")})`;
}

function storedAt({ sent, history }: Pick<Outcome, "sent" | "history">): number {
  return history.findIndex(
    ({ role, parts }) => role === "user" && textOf(parts).includes(`(${sent.secret})`),
  );
}
