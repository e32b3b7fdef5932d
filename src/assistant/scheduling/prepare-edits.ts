import { isParleyError } from "../../core/errors.ts";
import type { CommandCall, IncomingMessage } from "../../core/events.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Archive, Conversations } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import type { TurnRate } from "../access/turn-rate.ts";
import { applyCallEdit, applyEdit } from "../turn/edited-question.ts";
import { messageIds } from "../turn/stored-messages.ts";
import { findAnsweredTurn } from "./answered-turn.ts";
import { editsOf, eventsOf, storedIn, type PendingTurn } from "./pending-turn.ts";

/** What {@link createPrepareEdits} works with. */
export interface PrepareEditsOptions {
  readonly inbox: Inbox;
  readonly conversations: Conversations;
  readonly archive: Archive;
  readonly turnRate: TurnRate;
  /** @throws ParleyError where the rules do not allow its author to use the bot there */
  readonly expectAllowed: (message: IncomingMessage) => Promise<void>;
  /** What is to be run after all: an edit came while another one was applied. */
  readonly schedule: (turn: PendingTurn) => void;
  readonly log: Log;
}

/**
 * Returns a function that applies the edits of a batch to what is stored, before it runs: in the conversation's queue,
 * where nothing else writes. An answered question is answered anew if it is the last of its conversation.
 */
export function createPrepareEdits(options: PrepareEditsOptions) {
  const { inbox, conversations, archive, turnRate, log } = options;

  async function prepareTurn(turn: PendingTurn): Promise<PendingTurn | undefined> {
    if (turn.wasAnswered === true) return await prepareAnswered(turn);
    for (const event of eventsOf(turn))
      if (event.kind === "message") await applyEdit(options, storedIn(event), event);
    if (turn.redo?.kind === "edit") await eraseFailures(turn);
    return turn.isEdited === true ? await count(turn) : turn;
  }

  /** Only the stored words change where the message is not the last one, or nothing in it changes after all. */
  async function prepareAnswered(turn: PendingTurn): Promise<PendingTurn | undefined> {
    const { event } = turn;
    if (event.kind === "call") return await endEditedCall(turn, event);
    const conversationId = storedIn(event);
    const before = await conversations.find(conversationId, messageIds.user(event.key));
    const answered = await findAnsweredTurn({ inbox, conversations }, event);
    const after = await applyEdit(options, conversationId, event);
    const isChanged = JSON.stringify(before?.parts) !== JSON.stringify(after?.parts);
    const isApplied = before?.editedAt === event.edit?.at;
    const isLast = answered?.isLast === true && (isChanged || isApplied) && (await isAllowed(event));
    const attempts = answered?.progress.attempts ?? 0;
    // The process that answered it anew has died: its reply may show half of the new answer.
    const hasBegun = attempts > (event.edit?.attemptsBefore ?? attempts);
    const again = isLast || hasBegun ? await reopen(answered?.progress.keys ?? [], turn) : undefined;
    if (again === undefined || answered === undefined) {
      log.info({ turn: event.key, isLast }, "edit applied to the history");
      if (!(await inbox.close([event.key], { edits: editsOf(turn) }))) options.schedule(turn);
      return undefined;
    }
    const since = Math.min(event.edit?.attemptsBefore ?? attempts, attempts);
    const redone: PendingTurn = {
      ...again,
      progress: answered.progress,
      redo: { kind: "edit", since, requestedAt: event.edit?.takenAt ?? 0 },
      isEdited: true,
    };
    await eraseFailures(redone);
    return await count(redone);
  }

  /** It was edited when it had just run. */
  async function endEditedCall(turn: PendingTurn, call: CommandCall): Promise<undefined> {
    await applyCallEdit(options, storedIn(call), call);
    if (!(await inbox.close([call.key], { edits: editsOf(turn) }))) options.schedule(turn);
  }

  async function isAllowed(message: IncomingMessage): Promise<boolean> {
    try {
      await options.expectAllowed(message);
      return true;
    } catch (error) {
      if (!isParleyError(error, "access-denied")) throw error;
      return false;
    }
  }

  /** The events of an answered turn, open again. */
  async function reopen(
    keys: readonly string[],
    turn: PendingTurn,
  ): Promise<Pick<PendingTurn, "event" | "others"> | undefined> {
    const messages: IncomingMessage[] = [];
    for (const key of keys) {
      const event = key === turn.event.key ? turn.event : (await inbox.reopen(key))?.event;
      if (event?.kind === "message") messages.push(event);
    }
    const [event, ...others] = messages;
    return event === undefined ? undefined : { event, others };
  }

  /** Attempts that failed before the edit say what the earlier question was about. */
  async function eraseFailures({ event, progress, redo }: PendingTurn): Promise<void> {
    const attempts = Math.min(progress?.attempts ?? 0, redo?.since ?? 0);
    const ids = Array.from({ length: attempts }, (_, index) => messageIds.assistant(event.key, index + 1));
    const stored = await Promise.all(ids.map((id) => conversations.find(storedIn(event), id)));
    const left = ids.filter((_, index) => stored[index] !== undefined);
    if (left.length > 0) await archive.removeMessages(storedIn(event), { ids: left });
  }

  /** Each new answer counts as a request of the person who edited. */
  async function count(turn: PendingTurn): Promise<PendingTurn> {
    const { refusal } = await turnRate.count(turn.event.author.id);
    return refusal === undefined ? turn : { ...turn, refusal };
  }

  return async (batch: readonly PendingTurn[]): Promise<readonly PendingTurn[]> => {
    const prepared: PendingTurn[] = [];
    for (const turn of batch) {
      const left = await prepareTurn(turn);
      if (left !== undefined) prepared.push(left);
    }
    return prepared;
  };
}
