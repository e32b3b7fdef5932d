import { parseAnswer } from "../answer-text.ts";
import type { FaultKind, FaultWindows } from "../fault-windows.ts";
import { isTextOf, type ShownMessage } from "../people/sent-message.ts";
import { textOf, type Outcome } from "./outcomes.ts";

/** How long an instance waits for what others are accepting: the scheduler's `settleMs`, and a margin. */
const settleMs = 140;
/** Slack delivers again what is not acknowledged by then. */
const maxDelayMs = 3000;
/** The first look-ups of people in a process that has just started take at most 0.7 s of this. */
const startMs = 1000;

/**
 * Returns a line, and its subject, for each shown answer or stored message that comes before one that was
 * sent earlier in the same conversation. Each instance has Discord's messages in their order. Slack delivers
 * each to one instance, and no other knows it while that one is paused, cannot reach the store, or has just
 * started.
 */
export function findDisorder(
  outcomes: readonly Outcome[],
  shown: readonly ShownMessage[],
  windows: Pick<FaultWindows, "had">,
): { readonly line: string; readonly of: readonly Outcome[] }[] {
  const positions = new Map(shown.map(({ id }, position) => [id, position]));
  const problems: { readonly line: string; readonly of: readonly Outcome[] }[] = [];
  const comparable = outcomes.filter(
    ({ sent, isAnswered, retry }) =>
      isAnswered && retry === undefined && sent.deletedAt === undefined && !sent.isRedelivered(),
  );
  for (const its of Map.groupBy(comparable, ({ sent }) => sent.conversation).values()) {
    for (const [index, later] of its.entries()) {
      const earlier = its[index - 1];
      if (earlier === undefined || isHeldUp(earlier, later)) continue;
      const names = `${nameOf(earlier)} and ${nameOf(later)} in ${later.sent.conversation}`;
      if (shownAt(earlier) > shownAt(later))
        problems.push({ line: `disordered: answers to ${names}`, of: [earlier, later] });
      if (storedAt(earlier) > storedAt(later))
        problems.push({ line: `disordered: stored messages ${names}`, of: [earlier, later] });
    }
  }
  for (const outcome of comparable) {
    const { sent, kept, history } = outcome;
    const [answer] = kept;
    if (answer !== undefined && history.indexOf(answer) < storedAt({ sent, history }))
      problems.push({ line: `disordered: the answer to ${sent.label} is stored before it`, of: [outcome] });
  }
  return problems;

  /** Whether Slack had delivered the earlier message to an instance that could not accept it for a while. */
  function isHeldUp(earlier: Outcome, later: Outcome): boolean {
    const { platform, sentAt } = earlier.sent;
    if (platform !== "slack") return false;
    const [afterMs, laterAt] = [acceptedAfterMs(earlier), later.sent.sentAt + acceptedAfterMs(later)];
    const isLate = afterMs < maxDelayMs && sentAt + afterMs > laterAt + settleMs;
    const had = (...kinds: readonly FaultKind[]) => windows.had(kinds, sentAt, sentAt + afterMs);
    return isLate && (had("paused", "store") || (afterMs <= startMs && had("process", "stopping")));
  }

  /** Returns twice the position of the answer, plus the place within an answer to several. */
  function shownAt({ sent, answers }: Outcome): number {
    const [answer] = answers;
    if (answer === undefined) return 0;
    const labels = parseAnswer(answer.text)?.labels ?? [];
    return (positions.get(answer.id) ?? 0) + labels.indexOf(sent.label) / (labels.length + 1);
  }
}

/** Names a message with how long after its sending it was accepted, and how it was delivered. */
function nameOf({ sent, entry }: Outcome): string {
  const afterMs = acceptedAfterMs({ sent, entry });
  return `${sent.label} (sent at ${sent.sentAt}, accepted after ${afterMs} ms; ${sent.deliveries().join(", ")})`;
}

/**
 * Returns the time by the clock of the process. Where that cannot be, since no event is accepted before it is
 * sent or after it is acknowledged, the clock is wrong, and the time until the acknowledgement counts.
 */
function acceptedAfterMs({ sent, entry }: Pick<Outcome, "sent" | "entry">): number {
  const byProcess = (entry?.acceptedAt ?? Number.NaN) - sent.sentAt;
  const acknowledged = sent.acknowledgedAfterMs?.();
  const isWrong = acknowledged !== undefined && (byProcess < 0 || byProcess > acknowledged);
  return isWrong ? Math.round(acknowledged) : byProcess;
}

function storedAt({ sent, history }: Pick<Outcome, "sent" | "history">): number {
  return history.findIndex(({ role, parts }) => role === "user" && isTextOf(textOf(parts), sent));
}
