import type { Store } from "../../../src/conversations/open-store.ts";
import { parseAnswer } from "../answer-text.ts";
import type { FaultKind, FaultWindows } from "../fault-windows.ts";
import { isTextOf, type SentMessage, type ShownMessage } from "../people/sent-message.ts";
import { findDisorder } from "./order-check.ts";
import { findOutcomes, isAnswerTo, textOf, type Outcome } from "./outcomes.ts";

/** These counts must be 0. */
export const faultCounts = [
  "doubled",
  "lost",
  "frozen",
  "contradicted",
  "disordered",
  "misstored",
  "unexcused",
  "leftover",
  "open",
] as const;

/** One of {@link faultCounts}. */
export type FaultCount = (typeof faultCounts)[number];

/** The outcome of all sent messages. */
export interface Account extends Readonly<Record<FaultCount, number>> {
  readonly sent: number;
  readonly answered: number;
  /** Those that ended in a failure with a Retry of the same turn. */
  readonly sealed: number;
  /** Those that were refused in words during a fault that explains it, and not answered. */
  readonly refused: number;
  /** The refused ones by reason. */
  readonly refusals: Readonly<Record<string, number>>;
  /** Those that their authors deleted. */
  readonly withdrawn: number;
  /** Those that their authors edited. */
  readonly edited: number;
  /** One line for each fault. */
  readonly problems: readonly string[];
  /** What is known about the messages with faults, as JSON lines. */
  readonly evidence: readonly string[];
}

/** The facts that an account is made from. The bot must have stopped. */
export interface Evidence {
  readonly sent: readonly SentMessage[];
  readonly shown: readonly ShownMessage[];
  readonly store: Store;
  readonly windows: FaultWindows;
  /** Every byte that the store keeps. */
  readonly bytes: Buffer;
  /** Whether a process took Discord's events during these milliseconds without a fault. */
  readonly wasListening: (from: number, to: number) => boolean;
  /** Whether Discord itself, without a fault, refused more threads during these milliseconds. */
  readonly wereThreadsLimited: (from: number, to: number) => boolean;
}

const maxAttempts = 4;
/** How long after it was sent a message may be refused. */
const refusedWithinMs = 15_000;
/** Discord's limit of new threads in a channel counts those of five minutes. */
const threadLimitMs = 5 * 60_000;
const excuses: Readonly<Record<string, readonly FaultKind[]>> = {
  store: ["store"],
  stopping: ["stopping"],
  busy: ["store", "process", "stopping", "platform"],
  platform: ["store", "process", "stopping", "platform"],
  unconfirmed: ["store", "process", "stopping", "paused", "platform"],
};

/** Compares what was sent with what is shown and stored. */
export async function checkAccount(options: Evidence): Promise<Account> {
  const { sent, shown, store, windows, bytes, wasListening, wereThreadsLimited } = options;
  const counts = Object.fromEntries(
    [...faultCounts, "answered", "sealed", "refused", "withdrawn"].map((name) => [name, 0]),
  ) as Record<FaultCount | "answered" | "sealed" | "refused" | "withdrawn", number>;
  const refusals: Record<string, number> = {};
  const problems: string[] = [];
  const report = (count: FaultCount, words: string): void => {
    counts[count] += 1;
    problems.push(`${count}: ${words}`);
  };

  const evidence = new Set<string>();
  const show = (outcome: Outcome): void => {
    evidence.add(JSON.stringify({ ...outcome, delivered: outcome.sent.deliveries() }));
  };
  const outcomes = await findOutcomes(sent, shown, store);
  for (const outcome of outcomes) {
    const before = problems.length;
    judge(outcome);
    checkKept(outcome);
    checkLeftover(outcome);
    if (problems.length > before) show(outcome);
  }
  for (const { id, platform, text, origin } of shown.filter(({ isUnfinished }) => isUnfinished)) {
    const its = outcomes.filter(({ entry }) => JSON.stringify(entry?.turn?.address ?? {}).includes(id));
    report(
      "frozen",
      `${platform} message ${id}: ${JSON.stringify(text)} ${origin}, of ${its.map(({ sent: one }) => one.label).join(" ")}`,
    );
  }
  for (const { line, of } of findDisorder(outcomes, shown, windows)) {
    counts.disordered += 1;
    problems.push(line);
    of.forEach(show);
  }
  for (const { event } of await store.inbox.open()) report("open", event.key);
  const edited = sent.filter(({ edits }) => edits.length > 0).length;
  return { sent: sent.length, ...counts, edited, refusals, problems, evidence: [...evidence] };

  /** Returns what the messages of a reply show now, and those of its stored answer. */
  function showingOf({ entry, kept }: Outcome): readonly { readonly id: string; readonly text: string }[] {
    const known = JSON.stringify([entry?.turn?.address ?? {}, kept]);
    return shown.filter(({ id }) => known.includes(id)).map(({ id, text }) => ({ id, text }));
  }

  /**
   * Whether a message stands in a thread that the bot did not know. Slack had given up its mention before
   * the store was back: it is people's thread then, and what they say there is not for the bot. Or the
   * mention was accepted later than the message was sent.
   */
  function isInUnknownThread({ sent: one, entry }: Outcome): boolean {
    if (one.kind !== "thread" || entry !== undefined) return false;
    const root = outcomes.find(
      ({ sent: { kind, conversation } }) => kind === "mention" && conversation === one.conversation,
    );
    if (root === undefined) return false;
    if (root.entry === undefined) return root.refusal?.reason === "platform";
    return root.sent.isRedelivered() && root.entry.acceptedAt > one.sentAt;
  }

  /** Returns how often the turn that begins with an event was started. */
  function attemptsAt(key: string | undefined): number {
    return outcomes.find(({ entry }) => entry?.event.key === key)?.entry?.turn?.attempt ?? 0;
  }

  /** Checks that each message has exactly one outcome. */
  function judge(outcome: Outcome): void {
    const { entry, answers, isAnswered, retry, refusal, kept } = outcome;
    const one = outcome.sent;
    const what = `${one.label} (${one.kind}, ${one.conversation})`;
    if (answers.length > 1)
      report(
        "doubled",
        `${what}: ${answers.map(({ id, text }) => `${id} ${JSON.stringify(text)}`).join(" | ")}`,
      );
    const isRefused =
      refusal !== undefined && refusal.reason !== "platform" && refusal.isConditional !== true;
    // An edited mention that was refused is a new question.
    if (isAnswered && isRefused && one.edits.length === 0)
      report("contradicted", `${what} is answered, and refused: ${refusal.words}`);
    if (retry !== undefined && kept.length > 0)
      report(
        "contradicted",
        `${what} has an answer, and a Retry: ${JSON.stringify(retry.text)} ${JSON.stringify(showingOf(outcome))}`,
      );
    if (one.deletedAt !== undefined) counts.withdrawn += 1;
    else if (retry !== undefined) {
      counts.sealed += 1;
      const isExcused =
        attemptsAt(retry.retryKey) >= maxAttempts ||
        windows.had(["gateway", "store", "platform", "clock"], one.sentAt, Date.now()) ||
        (one.kind === "chat" && wereThreadsLimited(one.sentAt - threadLimitMs, Date.now()));
      if (!isExcused) report("unexcused", `${what} ended in ${JSON.stringify(retry.text)}`);
    } else if (isAnswered) counts.answered += 1;
    else if (refusal !== undefined && (entry === undefined || refusal.reason === "unconfirmed")) {
      counts.refused += 1;
      refusals[refusal.reason] = (refusals[refusal.reason] ?? 0) + 1;
      const kinds = excuses[refusal.reason] ?? [];
      const until = refusal.reason === "unconfirmed" ? Date.now() : one.sentAt + refusedWithinMs;
      if (!windows.had(kinds, one.sentAt, until))
        report("unexcused", `${what} was refused without a cause: ${refusal.words}`);
    } else if (isInUnknownThread(outcome)) {
      counts.refused += 1;
      refusals["platform"] = (refusals["platform"] ?? 0) + 1;
    } else {
      const state = entry === undefined ? "neither accepted nor refused" : "accepted and not answered";
      report(
        "lost",
        `${what} ${state}; ${JSON.stringify({ key: one.keys, at: one.sentAt, answers, turn: entry?.turn, refusal, told: one.told?.(), showing: showingOf(outcome) })}`,
      );
    }
  }

  /** Checks that a message is stored once, and so is the answer that is shown. */
  function checkKept({ sent: one, entry, answers, isAnswered, retry, history, kept }: Outcome): void {
    if (entry === undefined || one.deletedAt !== undefined || retry !== undefined || !isAnswered) return;
    const questions = history.filter(
      ({ role, parts }) => role === "user" && isTextOf(textOf(parts), one),
    ).length;
    if (questions !== 1) report("misstored", `${one.label} is stored ${questions} times`);
    const shownText = parseAnswer(answers[0]?.text ?? "")?.text;
    // A batch that was split later is stored only under the key of its first message.
    const answersTo = kept.length > 0 ? kept : history.filter((message) => isAnswerTo(message, one.label));
    const keptTexts = answersTo.map(({ parts }) => parseAnswer(textOf(parts))?.text);
    if (keptTexts.length !== 1 || keptTexts[0] !== shownText)
      report(
        "misstored",
        `the answer to ${one.label} (${one.kind}) is ${shownText}, stored: ${keptTexts.join(" | ")}`,
      );
  }

  function checkLeftover({ sent: one }: Outcome): void {
    // It may have been edited or deleted before it was taken in, as it was first written.
    if (one.isRedelivered()) return;
    for (const { secret, at, isReceived } of one.edits) {
      if (!bytes.includes(secret) || !(isReceived?.() ?? wasListening(at, at + 4000))) continue;
      report("leftover", `the text of ${one.label} (${one.conversation}), edited away at ${at}`);
    }
    const at = one.deletedAt;
    if (at === undefined || !bytes.includes(one.secret)) return;
    const isReceived = one.isDeletionReceived?.() ?? wasListening(at, at + 4000);
    if (isReceived) report("leftover", `the text of ${one.label} (${one.conversation}), deleted at ${at}`);
  }
}
