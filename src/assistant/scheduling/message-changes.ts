import { isDeepStrictEqual } from "node:util";
import { toCommandLine } from "../../core/command-input.ts";
import { isParleyError } from "../../core/errors.ts";
import {
  storedIn,
  type Attachment,
  type CommandCall,
  type EditedContent,
  type IncomingEvent,
} from "../../core/events.ts";
import type { Inbox, InboxRecord } from "../../core/inbox.ts";
import { messageIds } from "../../core/message-ids.ts";
import type { Deletion, EditedMessage, MessageContent, Receiver } from "../../core/receiver.ts";
import type { SpendingLedger } from "../../core/spending.ts";
import type { Archive, ConversationQueue, Conversations, StoredMessage } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { toEditedQuestion } from "../turn/read-messages.ts";
import { textOf } from "../turn/stored-messages.ts";
import { changeAndKick } from "./steer-turn.ts";
import type { TurnLoop } from "./turn-loop.ts";

interface ChangeOptions {
  readonly inbox: Inbox;
  readonly conversations: Conversations;
  readonly archive: Archive;
  readonly queue: ConversationQueue;
  readonly loop: Pick<TurnLoop, "kick" | "noticed">;
  /** @throws ParleyError where the rules do not allow the author to use the bot there */
  readonly expectAllowed: (event: IncomingEvent) => Promise<void>;
  /** Erases what people set for places. */
  readonly settings: { erase(place: string): Promise<void> };
  readonly ledger: Pick<SpendingLedger, "countedPeople" | "forgetPeople">;
  readonly log: Log;
}

/** Creates {@link Receiver.changed}. */
export function createMessageChanges(options: ChangeOptions): Receiver["changed"] {
  const { deleted, deleteMessages } = createDeletions(options);
  const edited = createMessageEdited(options, deleteMessages);
  return async (change) => {
    if (change.kind === "edit") return await edited(change);
    await deleted(change);
    return "changed";
  };
}

/**
 * Deletes here what people delete on a platform. The record of each event goes first, so that nothing is
 * answered any more. Everything is idempotent, so a redelivery finishes an interrupted deletion.
 */
function createDeletions(options: ChangeOptions) {
  const { inbox, conversations, archive, queue, settings, ledger, log } = options;

  /** Groups keys by conversation: those that the platform names and that exist, and those of the inbox. */
  async function findConversations(
    named: ReadonlyMap<string, readonly string[]>,
    keys: readonly string[],
  ): Promise<Map<string, readonly string[]>> {
    const [records, existing] = await Promise.all([
      inbox.read(keys),
      conversations.existing([...named.keys()]),
    ]);
    const found = new Map<string, readonly string[]>(existing.map((id) => [id, named.get(id) ?? []]));
    for (const { event, state } of records) {
      const others = found.get(event.conversationId) ?? [];
      if (state !== "erased" && !others.includes(event.key))
        found.set(event.conversationId, [...others, event.key]);
    }
    return found;
  }

  async function deleteEvents(keys: readonly string[]): Promise<void> {
    const records = await inbox.read(keys);
    for (const key of keys) {
      const record = records.find(({ event }) => event.key === key);
      await changeAndKick(options, record, { kind: "delete", of: key });
    }
  }

  async function deleteConversation(conversationId: string): Promise<void> {
    const [open, existing] = await Promise.all([
      inbox.openIn(conversationId),
      conversations.existing([conversationId]),
    ]);
    if (existing.length === 0 && open.length === 0) return;
    await deleteEvents(open.flatMap(({ event, turn }) => turn?.keys ?? [event.key]));
    await queue.run(conversationId, async () => {
      const { messages } = await archive.deleteConversation(conversationId);
      log.info({ conversation: conversationId, messages }, "conversation deleted");
    });
  }

  /** A message that an edit has addressed to others, with `isSaidToOthers`, can still be read in its room. */
  async function deleteMessages(
    { conversationId, keys, others = new Map() }: Omit<Deletion & { kind: "delete-messages" }, "kind">,
    { isSaidToOthers = false }: { readonly isSaidToOthers?: boolean } = {},
  ): Promise<void> {
    const found = await findConversations(new Map([...others, [conversationId, keys]]), keys);
    if (found.size === 0) return;
    await deleteEvents([...new Set([...found.values()].flat())]);
    for (const [id, theirs] of found) {
      const inRoom = isSaidToOthers ? [] : theirs.map((key) => messageIds.room(key));
      const ids = [...theirs.map((key) => messageIds.user(key)), ...inRoom];
      await archive.removeMessages(id, { ids, shownAs: theirs });
    }
  }

  async function deletePlace(place: string): Promise<void> {
    await settings.erase(place);
    // The places of a conversation are stored with its first message, when its turn has begun.
    const [stored, open] = await Promise.all([conversations.listWithin(place), inbox.open()]);
    const begun = open.flatMap(({ event }) =>
      event.within?.includes(place) === true ? [event.conversationId] : [],
    );
    for (const conversationId of new Set([...stored, ...begun])) await deleteConversation(conversationId);
  }

  async function deletePeople(idPrefix: string): Promise<void> {
    // Settings are erased first, because a repetition would find no counted people.
    const people = await ledger.countedPeople(idPrefix);
    for (const person of people) await settings.erase(person);
    await ledger.forgetPeople(idPrefix);
    log.info({ people: people.length }, "people deleted");
  }

  async function deleted(what: Deletion): Promise<void> {
    switch (what.kind) {
      case "delete-messages":
        return await deleteMessages(what);
      case "delete-conversation":
        return await deleteConversation(what.conversationId);
      case "delete-place":
        return await deletePlace(what.place);
      case "delete-people":
        return await deletePeople(what.idPrefix);
    }
  }

  return { deleted, deleteMessages };
}

type Outcome = Awaited<ReturnType<Receiver["changed"]>>;

/** What a message says now, and what it was said with before. */
interface Before extends MessageContent {
  readonly question: StoredMessage | undefined;
}

/** Stores edits: in the record of the event, or in the log where its words are there. */
function createMessageEdited(
  options: ChangeOptions,
  deleteMessages: ReturnType<typeof createDeletions>["deleteMessages"],
): (edited: EditedMessage) => Promise<Outcome> {
  const { inbox, conversations, archive, log } = options;

  async function beforeOf({ event, isInLog }: InboxRecord): Promise<Before> {
    if (event.kind === "call")
      return { text: toCommandLine(event), attachments: filesOf(event), question: undefined };
    const { text, attachments } = event;
    if (isInLog !== true) return { text, attachments, question: undefined };
    const question = await conversations.find(storedIn(event), messageIds.user(event.key));
    const words = textOf(question?.parts.filter(({ kind }) => kind === "text") ?? []);
    return { text: words, attachments, question };
  }

  async function editEvent(record: InboxRecord, edited: EditedMessage): Promise<Outcome> {
    const { event } = record;
    const { question, ...before } = await beforeOf(record);
    const wasAsked = event.kind === "call" || event.isAside !== true;
    const content = await edited.read({ ...before, wasAsked });
    if (content === undefined) return "unchanged";
    const { text, attachments = before.attachments, isAside } = content;
    const [turn] = record.in === undefined ? [record] : await inbox.read([record.in]);
    const isOpen = turn?.state === "open";
    const isLater = edited.editedAt > (question?.editedAt ?? event.edit?.at ?? -Infinity);
    // Nobody asks the bot any more. What the message says is read from its thread.
    if (event.kind === "message" && isAside === true && isOpen && isLater)
      return await empty(event.conversationId, edited, { isSaidToOthers: true });
    if (isSame(before, question, content)) return "unchanged";
    const keepsFiles = (question?.parts ?? []).some(({ kind }) => kind !== "text" && kind !== "unread");
    if (text === "" && attachments.length === 0 && !keepsFiles)
      return await empty(event.conversationId, edited);
    const { result } = await changeAndKick(options, record, {
      kind: "edit",
      of: event.key,
      at: edited.editedAt,
      isAsked: isAside !== true && (await isAllowed(event)),
      toEvent: (now) =>
        now.kind === "call"
          ? { ...now, editedTo: content }
          : { ...now, text, attachments: keptOf(now, content) },
      toQuestion: (stored) => toEditedQuestion(stored, content, edited.editedAt),
      toAddress: (address) => edited.toAddress?.(address, content) ?? address,
    });
    log.info({ turn: event.key, result }, "message edited");
    return result === "done" ? "changed" : result === "unchanged" ? result : "unknown";
  }

  async function isAllowed(event: IncomingEvent): Promise<boolean> {
    try {
      await options.expectAllowed(event);
      return true;
    } catch (error) {
      if (!isParleyError(error, "access-denied")) throw error;
      return false;
    }
  }

  async function empty(
    conversationId: string,
    { key }: EditedMessage,
    how?: { readonly isSaidToOthers: boolean },
  ): Promise<Outcome> {
    await deleteMessages({ conversationId, keys: [key] }, how);
    return "changed";
  }

  /**
   * Edits a message that only its conversation knows: it was answered long ago, or read as said to others. If
   * the latter is said to the bot now, the platform may take it as a new question.
   */
  async function editStored(conversationIds: readonly string[], edited: EditedMessage): Promise<Outcome> {
    // Most edits are of messages that were never for the bot, so that this is the only look.
    for (const conversationId of await conversations.existing(conversationIds)) {
      const stored =
        (await conversations.find(conversationId, messageIds.user(edited.key))) ??
        (await conversations.find(conversationId, messageIds.room(edited.key)));
      if (stored === undefined) continue;
      const storedAt = stored.editedAt ?? -Infinity;
      if (storedAt > edited.editedAt) return "unchanged";
      const content = await edited.read({
        text: textOf(stored.parts),
        attachments: [],
        wasAsked: stored.room === undefined,
      });
      if (content === undefined) return "unchanged";
      // A process that has stored this edit may have died before the following steps.
      const isKnown = storedAt === edited.editedAt;
      const changed = isKnown ? stored : toEditedQuestion(stored, content, edited.editedAt);
      if (changed.parts.length === 0) return await empty(conversationId, edited);
      const isReplaced = await archive.replaceMessage(conversationId, changed);
      if (stored.room !== undefined && content.isAside !== true) return "unknown";
      return isReplaced && !isKnown ? "changed" : "unchanged";
    }
    return "unknown";
  }

  return async (edited) => {
    const [record] = await inbox.read([edited.key]);
    if (record === undefined || record.state === "erased")
      return await editStored(edited.conversationIds, edited);
    const outcome = await editEvent(record, edited);
    // Its turn was erased with what somebody else wrote, and its own words are still in the log.
    return outcome === "unknown" ? await editStored(edited.conversationIds, edited) : outcome;
  };
}

/** Whether an edit changes nothing. */
function isSame(
  before: MessageContent,
  question: StoredMessage | undefined,
  content: EditedContent,
): boolean {
  if (question !== undefined)
    return isDeepStrictEqual(toEditedQuestion(question, content, 0).parts, question.parts);
  const idsOf = (files: readonly Attachment[]) => files.map(({ id }) => id).join(" ");
  const { text, attachments } = content;
  return (
    text === before.text && (attachments === undefined || idsOf(attachments) === idsOf(before.attachments))
  );
}

/** The files of an event that an edit has left, which are still to be read. */
function keptOf(
  { attachments }: Extract<IncomingEvent, { kind: "message" }>,
  content: EditedContent,
): readonly Attachment[] {
  return content.attachments ?? attachments;
}

function filesOf({ options }: CommandCall): Attachment[] {
  return Object.values(options).filter((value) => typeof value === "object");
}
