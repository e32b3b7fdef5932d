import type { StoredMessage } from "../../src/core/storage.ts";
import type { Store } from "../../src/conversations/open-store.ts";
import { answers } from "../simulators/gateway/slow-gateway.ts";
import type { People, SentMessage } from "./people.ts";

/** The outcome of all sent messages. `doubled`, `lost` and `historyFaults` must be 0. */
export interface Account {
  readonly sent: number;
  /** In the store. */
  readonly accepted: number;
  /** Completely answered in exactly one message. */
  readonly answered: number;
  /** Ended with a notice and a Retry, after too many attempts. */
  readonly sealed: number;
  /** Not accepted: the person was told, or Slack never got an acknowledgement. */
  readonly refused: number;
  readonly doubled: number;
  readonly lost: number;
  /** Messages that are missing or duplicated in the history, and turns that are still open. */
  readonly historyFaults: number;
  /** One line for each fault. */
  readonly problems: readonly string[];
}

const maxAttempts = 4;

/** Compares the sent messages with the stored and the shown ones. The bot must have stopped. */
export async function checkAccount(
  sent: readonly SentMessage[],
  people: People,
  store: Store,
): Promise<Account> {
  const shown = people.shown();
  const retries = shown.filter(({ hasRetry }) => hasRetry).length;
  const dropped = people.droppedKeys();
  const problems: string[] = [];
  const histories = new Map<string, readonly StoredMessage[]>();
  const counts = { accepted: 0, answered: 0, sealed: 0, refused: 0, doubled: 0, lost: 0, historyFaults: 0 };
  const stillOpen = new Set((await store.inbox.listOpen()).map(({ event }) => event.key));
  for (const { label, key, conversation } of sent) {
    const mentions = shown.filter(({ text }) => new RegExp(`${label}\\b`).test(text));
    const entry = await store.inbox.reopen(key);
    if (mentions.length > 1) {
      counts.doubled += 1;
      problems.push(`doubled: ${label} in ${conversation}: ${mentions.map(({ text }) => text).join(" | ")}`);
    }
    if (entry === undefined) {
      if (dropped.has(key) || people.wasTold(key)) counts.refused += 1;
      else {
        counts.lost += 1;
        problems.push(`lost: ${label} in ${conversation} was neither accepted nor refused`);
      }
      continue;
    }
    counts.accepted += 1;
    const { conversationId } = entry.event;
    const history =
      histories.get(conversationId) ??
      (await store.conversations.recent(conversationId, { maxMessages: 10_000 }));
    histories.set(conversationId, history);
    const stored = history.filter(({ role, parts }) => role === "user" && includes(parts, label)).length;
    const isAnswered = mentions.some(({ text }) => answers(text, label));
    const isSealed = !isAnswered && (entry.turn?.attempts ?? 0) >= maxAttempts && counts.sealed < retries;
    if (isAnswered) counts.answered += 1;
    else if (isSealed) counts.sealed += 1;
    else {
      counts.lost += 1;
      problems.push(`lost: ${label} in ${conversation}, ${JSON.stringify({ mentions, turn: entry.turn })}`);
    }
    if (stillOpen.has(key) || stored > 1 || (isAnswered && stored !== 1)) {
      counts.historyFaults += 1;
      problems.push(
        `history: ${label} is stored ${stored} times${stillOpen.has(key) ? " and still open" : ""}`,
      );
    }
  }
  return { sent: sent.length, ...counts, problems };
}

function includes(parts: StoredMessage["parts"], label: string): boolean {
  return parts.some((part) => part.kind === "text" && new RegExp(`${label}\\b`).test(part.text));
}
