import { storedIn } from "../../../src/core/events.ts";
import type { InboxRecord } from "../../../src/core/inbox.ts";
import type { StoredMessage } from "../../../src/core/storage.ts";
import type { Store } from "../../../src/conversations/open-store.ts";
import { withoutRetriedAttempts } from "../../../src/assistant/turn/stored-messages.ts";
import { parseAnswer } from "../answer-text.ts";
import type { Refusal, SentMessage, ShownMessage } from "../people/sent-message.ts";

/** What is known about one sent message at the end. */
export interface Outcome {
  readonly sent: SentMessage;
  /** Its accepted event: the one that is answered, or the one that leads to it. */
  readonly entry: InboxRecord | undefined;
  /** Messages with an answer to it and without a Retry. */
  readonly answers: readonly ShownMessage[];
  /** Whether one of them is complete. */
  readonly isAnswered: boolean;
  /** The message whose Retry runs its turn again. */
  readonly retry: ShownMessage | undefined;
  readonly refusal: Refusal | undefined;
  /** The conversation that it is stored in. It is empty where it was not accepted. */
  readonly history: readonly StoredMessage[];
  /** The complete stored answers of its own turn. */
  readonly kept: readonly StoredMessage[];
}

/** Looks up what became of each sent message. */
export async function findOutcomes(
  sent: readonly SentMessage[],
  shown: readonly ShownMessage[],
  store: Store,
): Promise<Outcome[]> {
  const histories = new Map<string, readonly StoredMessage[]>();
  const historyOf = async (entry: InboxRecord | undefined): Promise<readonly StoredMessage[]> => {
    if (entry === undefined) return [];
    const id = storedIn(entry.event);
    const known = histories.get(id);
    if (known !== undefined) return known;
    const all = await store.conversations.recent(id, { maxMessages: 10_000 });
    // People and models are shown the last attempt of each turn.
    const history = withoutRetriedAttempts(all);
    histories.set(id, history);
    return history;
  };
  const entries = await lookUpAll(
    store,
    sent.flatMap(({ keys }) => keys),
  );
  /** Maps a key to the first key of the turn that answers it. */
  const turns = new Map<string, string>();
  for (const { event, turn } of entries.values())
    for (const key of turn?.keys ?? []) turns.set(key, event.key);
  const mentions = Map.groupBy(
    shown.flatMap((message) =>
      [...new Set(parseAnswer(message.text)?.labels)].map((label) => ({ label, message })),
    ),
    ({ label }) => label,
  );
  const retries = new Map(
    shown.flatMap((message) => (message.retryKey === undefined ? [] : [[message.retryKey, message]])),
  );
  return Promise.all(
    sent.map(async (one): Promise<Outcome> => {
      const entry = one.keys.map((key) => entries.get(key)).findLast((found) => found !== undefined);
      const history = await historyOf(entry);
      // For `/chat` with a message, only the message itself can be answered.
      const answered = entry === undefined ? one.keys : [entry.event.key];
      const turnKeys = answered.flatMap((key) => [key, turns.get(key) ?? key]);
      const answers = (mentions.get(one.label) ?? [])
        .map(({ message }) => message)
        // A turn that was stopped because one of its messages was deleted answers the others in a new reply.
        .filter(({ retryKey, text }) => retryKey === undefined && !text.includes("the message was deleted"));
      return {
        sent: one,
        entry,
        answers,
        isAnswered: answers.some(({ text }) => parseAnswer(text)?.isWhole === true),
        retry: turnKeys.map((key) => retries.get(key)).find((message) => message !== undefined),
        refusal: one.refusal(),
        history,
        kept: history.filter((stored) => turnKeys.includes(stored.turnKey) && isAnswerTo(stored, one.label)),
      };
    }),
  );
}

/** Whether a stored message is a complete answer that repeats the label. */
export function isAnswerTo({ role, outcome, parts }: StoredMessage, label: string): boolean {
  if (role !== "assistant" || outcome !== "complete") return false;
  return parseAnswer(textOf(parts))?.labels.includes(label) === true;
}

/** Returns the text of a stored message. */
export function textOf(parts: StoredMessage["parts"]): string {
  return parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
}

async function lookUpAll(store: Store, keys: readonly string[]): Promise<Map<string, InboxRecord>> {
  const found = new Map<string, InboxRecord>();
  for (let from = 0; from < keys.length; from += 200)
    for (const entry of await store.inbox.read(keys.slice(from, from + 200)))
      // Nothing is to be answered for the key of a refused event.
      if (entry.state !== "erased") found.set(entry.event.key, entry);
  return found;
}
