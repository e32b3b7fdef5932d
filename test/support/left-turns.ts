import { toEditedQuestion } from "../../src/assistant/turn/read-messages.ts";
import { storedIn, type IncomingEvent, type ReplyAddress } from "../../src/core/events.ts";
import { messageIds } from "../../src/core/message-ids.ts";
import type { ChangeOutcome, Inbox } from "../../src/core/inbox.ts";
import type { StoredMessage } from "../../src/core/storage.ts";

/** Begins accepted events as one turn, with its reply at an address, as a process that has died did. */
export async function leaveBegun(
  inbox: Inbox,
  events: readonly IncomingEvent[],
  { address, attempts = 1 }: { readonly address: ReplyAddress; readonly attempts?: number },
): Promise<void> {
  const [first] = events as readonly [IncomingEvent];
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const records = await inbox.read((attempt === 1 ? events : [first]).map(({ key }) => key));
    const begun = await inbox.begin(records);
    if (begun === undefined) throw new Error("the turn could not be begun");
    const run = { key: first.key, attempt, conversationId: storedIn(first) };
    await inbox.write(run, { kind: "address", address, shownAs: [] });
  }
}

/** Stores how the last attempt at a turn ends, as a process did that died before it could show the answer. */
export async function leaveEnded(
  inbox: Inbox,
  event: IncomingEvent,
  answer: Partial<StoredMessage> = {},
): Promise<void> {
  const { key } = event;
  const [record] = await inbox.read([key]);
  const attempt = record?.turn?.attempt ?? 0;
  const written = await inbox.write(
    { key, attempt, conversationId: storedIn(event) },
    {
      kind: "end",
      end: { kind: "answer", at: 1, isStored: true },
      answer: {
        id: messageIds.answer(key),
        role: "assistant",
        turnKey: key,
        attempt,
        parts: [{ kind: "text", text: "stored before the crash" }],
        createdAt: 1,
        estimatedTokens: 1,
        outcome: "complete",
        ...answer,
      },
      questions: [],
      toEdited: (stored) => stored,
    },
  );
  if (!written.isWritten) throw new Error("the turn could not be ended");
}

/** Begins a turn again, as another process does that has taken its conversation over. */
export async function beginAgain(inbox: Inbox, { key }: Pick<IncomingEvent, "key">): Promise<void> {
  for (let tries = 0; tries < 10; tries++)
    if ((await inbox.begin(await inbox.read([key]))) !== undefined) return;
  throw new Error("the turn could not be begun again");
}

/** Stores an edit as another process does. `at` is in Unix milliseconds. */
export async function editElsewhere(
  inbox: Inbox,
  { key }: Pick<IncomingEvent, "key">,
  text: string,
  at = 5,
): Promise<ChangeOutcome> {
  return await inbox.change({
    kind: "edit",
    of: key,
    at,
    isAsked: true,
    toEvent: (event) => (event.kind === "call" ? { ...event, editedTo: { text } } : { ...event, text }),
    toQuestion: (stored) => toEditedQuestion(stored, { text }, at),
    toAddress: (address) => address,
  });
}
