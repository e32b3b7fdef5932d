import type { Attachment, CommandCall, EditedContent, IncomingMessage } from "../../core/events.ts";
import type { EditedMessage, Receiver } from "../../core/platform.ts";
import type { Inbox, InboxEntry } from "../../core/inbox.ts";
import type { Archive, Conversations } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { toCommandLine } from "../../core/written-call.ts";
import { toEditedQuestion } from "../turn/edited-question.ts";
import { messageIds, textOf } from "../turn/stored-messages.ts";
import { findAnsweredTurn } from "./answered-turn.ts";
import { toEditedError } from "./edited-error.ts";
import { storedIn, type PendingTurn } from "./pending-turn.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";

/** People correct a message several times in a row: it is answered anew when they have stopped for so long. */
const quietMs = 1000;

/** What {@link createEditEvents} works with. */
export interface EditOptions {
  readonly inbox: Inbox;
  readonly conversations: Conversations;
  readonly archive: Pick<Archive, "replaceMessage">;
  readonly scheduler: Pick<TurnScheduler, "activeIn" | "schedule">;
  readonly messagesDeleted: Receiver["messagesDeleted"];
  readonly log: Log;
}

type Outcome = "edited" | "unchanged" | "unknown";

/**
 * Takes in edits. The accepted event is replaced first, durably; a turn that runs is aborted; then the turn waits for its
 * conversation like any other, and `prepareEdits` decides what is to be done.
 */
export function createEditEvents(options: EditOptions): Pick<Receiver, "messageEdited"> {
  const { inbox, conversations, archive, scheduler, log } = options;

  async function editMessage(
    entry: InboxEntry,
    event: IncomingMessage,
    edited: EditedMessage,
  ): Promise<Outcome> {
    const content = await edited.read(event);
    if (content === undefined || isSame(event, content)) return "unchanged";
    if (isEmpty({ ...event, ...content })) return await empty(event.conversationId, edited);
    const toAddress = (address: typeof event.address) => edited.toAddress?.(address, content) ?? address;
    const { fixedWords, ...before } = event;
    const { attachments = event.attachments } = content;
    // Those of a recording that was taken away go with it.
    const left = fixedWords?.filter((fixed) => attachments.some(({ name }) => name === fixed.name));
    const message: IncomingMessage = {
      ...before,
      ...content,
      ...(left === undefined ? {} : { fixedWords: left }),
      address: toAddress(event.address),
    };
    const running = scheduler.activeIn(storedIn(event));
    const isRunning = running?.keys.includes(event.key) === true;
    const known = await startedTurn(entry, event, running?.keys);
    const attemptsBefore = known?.attempts ?? (isRunning ? 1 : 0);
    const outcome = await inbox.edit(message, { at: edited.editedAt, attemptsBefore, toAddress });
    if (outcome !== "edited") return outcome;
    log.info({ isRunning, attemptsBefore }, "message edited");
    const hasBegun = attemptsBefore > 0 ? ({ isEdited: true } as const) : {};
    const turn = isRunning ? await runningTurn(running?.keys ?? []) : undefined;
    // After what runs, which does not end its reply: the next run does.
    if (isRunning) running?.abandon(toEditedError());
    scheduler.schedule(
      { ...(turn ?? { event: message, progress: undefined, others: [] }), ...hasBegun },
      { quietMs },
    );
    return "edited";
  }

  /** The turn that answers an event, where it has begun: here, in another process, or long ago. */
  async function startedTurn(
    entry: InboxEntry,
    event: IncomingMessage,
    running: readonly string[] = [],
  ): Promise<InboxEntry["turn"]> {
    if (entry.turn !== undefined) return entry.turn;
    if (entry.isClosed === true || entry.wasAnswered === true)
      return (await findAnsweredTurn({ inbox, conversations }, event))?.progress;
    const [first] = running.includes(event.key) ? await inbox.lookUp(running.slice(0, 1)) : [];
    if (first !== undefined) return first.turn;
    const open = await inbox.listOpenIn(event.conversationId);
    return open.find(({ turn }) => turn?.keys.includes(event.key))?.turn;
  }

  /** The turn that runs here, as it is to run again: the address of its reply may be about to be saved. */
  async function runningTurn(keys: readonly string[]): Promise<PendingTurn | undefined> {
    const [first, ...others] = await inbox.lookUp(keys);
    if (first === undefined) return undefined;
    const { event, turn } = first;
    return {
      event,
      progress: turn ?? { keys, address: event.address, attempts: 1 },
      others: others.flatMap((other) => (other.event.kind === "message" ? [other.event] : [])),
    };
  }

  async function empty(conversationId: string, { key }: EditedMessage): Promise<Outcome> {
    await options.messagesDeleted(conversationId, [key]);
    return "edited";
  }

  /** A command has run, or runs, as it was written: only what is stored of it changes. */
  async function editCall(entry: InboxEntry, call: CommandCall, edited: EditedMessage): Promise<Outcome> {
    if (entry.isClosed === true) {
      const outcome = await editStored([storedIn(call)], edited);
      // Also where an earlier delivery of the edit came no further.
      await inbox.withdraw([call.key]);
      return outcome;
    }
    const files = filesOf(call);
    const content = await edited.read({ text: toCommandLine(call), attachments: files });
    if (content === undefined) return "unchanged";
    const { text, attachments = files } = content;
    if (text === "" && attachments.length === 0) return await empty(call.conversationId, edited);
    const toAddress = (address: typeof call.address) => edited.toAddress?.(address, content) ?? address;
    const changed: CommandCall = { ...call, editedTo: content, address: toAddress(call.address) };
    const attemptsBefore = entry.turn?.attempts ?? 0;
    const outcome = await inbox.edit(changed, { at: edited.editedAt, attemptsBefore, toAddress });
    if (outcome !== "edited") return outcome;
    log.info({ turn: call.key }, "message of a command edited");
    // The run applies it when it ends. It may have ended meanwhile: then the event is open again.
    scheduler.schedule({ event: changed, progress: entry.turn, others: [] });
    return "edited";
  }

  /** Of a message that was answered so long ago that only its conversation knows it. */
  async function editStored(conversationIds: readonly string[], edited: EditedMessage): Promise<Outcome> {
    for (const conversationId of conversationIds) {
      const stored = await conversations.find(conversationId, messageIds.user(edited.key));
      if (stored === undefined) continue;
      if ((stored.editedAt ?? -Infinity) >= edited.editedAt) return "unchanged";
      const content = await edited.read({ text: textOf(stored.parts), attachments: [] });
      if (content === undefined) return "unchanged";
      const changed = toEditedQuestion(stored, content, edited.editedAt);
      if (changed.parts.length === 0) return await empty(conversationId, edited);
      const isReplaced = await archive.replaceMessage(conversationId, changed);
      return isReplaced ? "edited" : "unchanged";
    }
    return "unknown";
  }

  return {
    async messageEdited(edited) {
      const [entry] = await inbox.lookUp([edited.key]);
      if (entry === undefined) return await editStored(edited.conversationIds, edited);
      const { event } = entry;
      return event.kind === "message"
        ? await editMessage(entry, event, edited)
        : await editCall(entry, event, edited);
    },
  };
}

function isSame(before: IncomingMessage, { text, attachments }: EditedContent): boolean {
  const idsOf = (files: IncomingMessage["attachments"]) => files.map(({ id }) => id).join(" ");
  return (
    text === before.text && (attachments === undefined || idsOf(attachments) === idsOf(before.attachments))
  );
}

function filesOf({ options }: CommandCall): Attachment[] {
  return Object.values(options).filter((value) => typeof value === "object");
}

function isEmpty({ text, attachments }: IncomingMessage): boolean {
  return text === "" && attachments.length === 0;
}
