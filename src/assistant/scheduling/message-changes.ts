import { toCommandLine } from "../../core/command-input.ts";
import { isParleyError } from "../../core/errors.ts";
import {
  storedIn,
  type IncomingMessage,
  type CommandCall,
  type Attachment,
  type EditedContent,
} from "../../core/events.ts";
import type { Inbox, InboxEntry, TurnProgress } from "../../core/inbox.ts";
import type { Deletion, EditedMessage, Receiver } from "../../core/platform.ts";
import type { SpendingLedger } from "../../core/spending.ts";
import type { Archive, ConversationQueue, Conversations } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import type { TurnRate } from "../access/admission.ts";
import { applyEdit, toEditedQuestion } from "../turn/read-messages.ts";
import { messageIds, textOf } from "../turn/stored-messages.ts";
import { editsOf, eventsOf, type PendingTurn, toEditedError } from "./pending-turn.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";

interface ChangeOptions {
  readonly inbox: Inbox;
  readonly conversations: Conversations;
  readonly archive: Archive;
  readonly queue: ConversationQueue;
  readonly scheduler: Pick<TurnScheduler, "activeIn" | "schedule">;
  /** Erases what people set for places. */
  readonly settings: { erase(place: string): Promise<void> };
  readonly ledger: Pick<SpendingLedger, "countedPeople" | "forgetPeople">;
  readonly log: Log;
}

/** Creates the receiver's methods for what people edit and delete. */
export function createMessageChanges(options: ChangeOptions): Pick<Receiver, "deleted" | "messageEdited"> {
  const { deleted, deleteMessages } = createDeletions(options);
  return { deleted, messageEdited: createMessageEdited(options, deleteMessages) };
}

/**
 * Deletes here what people delete on a platform. It first withdraws the event, so that nothing is answered
 * any more, and then erases the data. Both are idempotent, so a redelivery finishes an interrupted deletion.
 */
function createDeletions(options: ChangeOptions) {
  const { inbox, conversations, archive, queue, scheduler, settings, ledger, log } = options;

  /** Groups keys by conversation: those that the platform names and that exist, and those of the inbox. */
  async function findConversations(
    named: ReadonlyMap<string, readonly string[]>,
    keys: readonly string[],
  ): Promise<Map<string, readonly string[]>> {
    const [entries, existing] = await Promise.all([
      inbox.lookUp(keys),
      conversations.existing([...named.keys()]),
    ]);
    const found = new Map<string, readonly string[]>(existing.map((id) => [id, named.get(id) ?? []]));
    for (const { event } of entries) {
      const others = found.get(event.conversationId) ?? [];
      if (!others.includes(event.key)) found.set(event.conversationId, [...others, event.key]);
    }
    return found;
  }

  async function deleteFrom(
    conversationId: string,
    keys: readonly string[],
    { isSaidToOthers, wereOpen }: { readonly isSaidToOthers: boolean; readonly wereOpen: boolean },
  ): Promise<void> {
    const inRoom = isSaidToOthers ? [] : keys.map((key) => messageIds.room(key));
    const ids = [...keys.map((key) => messageIds.user(key)), ...inRoom];
    const isCancelled = scheduler.activeIn(conversationId)?.deleteMessages(keys) === true;
    await archive.removeMessages(conversationId, { ids, shownAs: keys });
    if (!isCancelled && !wereOpen) return;
    // Their turn, here or in another process, may still store a file or the reply's address, which are erased
    // after its end. A process that has died may have stored a file.
    queue
      .run(conversationId, async () => {
        await inbox.withdraw(keys, { keepsReplies: true });
        await archive.removeMessages(conversationId, { ids, withLooseFiles: true });
      })
      .catch((error: unknown) =>
        log.error({ conversation: conversationId, err: error }, "leftovers of a cancelled turn not erased"),
      );
  }

  /**
   * Finds open turns that have started and whose reply must be ended, because their process may have died. A
   * turn that also answers other open messages is left out.
   */
  async function findBegun(keys: readonly string[], open: ReadonlySet<string>): Promise<PendingTurn[]> {
    const begun: PendingTurn[] = [];
    for (const { event, turn } of await inbox.lookUp(keys)) {
      if (turn === undefined || !open.has(event.key)) continue;
      const others = turn.keys.filter((key) => !keys.includes(key));
      if ((await Promise.all(others.map((key) => inbox.isOpen(key)))).includes(true)) continue;
      begun.push({ event, progress: turn, others: [], state: "withdrawn" });
    }
    return begun;
  }

  async function deleteConversation(conversationId: string): Promise<void> {
    const [open, exists] = await Promise.all([
      inbox.listOpenIn(conversationId),
      conversations.exists(conversationId),
    ]);
    const keys = open.map(({ event }) => event.key);
    if (!exists && keys.length === 0) return;
    if (keys.length > 0) await inbox.withdraw(keys);
    scheduler.activeIn(conversationId)?.deleteMessages(keys);
    await queue.run(conversationId, async () => {
      if (keys.length > 0) await inbox.withdraw(keys);
      const { messages } = await archive.deleteConversation(conversationId);
      log.info({ conversation: conversationId, messages }, "conversation deleted");
    });
  }

  /** A message that an edit has addressed to others, with `isSaidToOthers`, can still be read in its room. */
  async function deleteMessages(
    { conversationId, keys, others = new Map() }: Omit<Deletion & { kind: "messages" }, "kind">,
    { isSaidToOthers = false }: { readonly isSaidToOthers?: boolean } = {},
  ): Promise<void> {
    const found = await findConversations(new Map([...others, [conversationId, keys]]), keys);
    if (found.size === 0) return;
    const withdrawn = [...new Set([...found.values()].flat())];
    const open = new Set<string>();
    for (const key of withdrawn) if (await inbox.isOpen(key)) open.add(key);
    const begun = await findBegun(withdrawn, open);
    await inbox.withdraw(withdrawn, { keepsReplies: true });
    for (const [id, theirs] of found) {
      const wereOpen = theirs.some((key) => open.has(key));
      await deleteFrom(id, theirs, { isSaidToOthers, wereOpen });
    }
    // A turn that still runs here or in another process ends its reply itself first. Recovery finds it too.
    for (const turn of begun) scheduler.schedule(turn);
  }

  async function deletePlace(place: string): Promise<void> {
    await settings.erase(place);
    // The places of a conversation are stored with its first message, when its turn has begun.
    const [stored, open] = await Promise.all([conversations.listWithin(place), inbox.listOpen()]);
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
      case "messages":
        return await deleteMessages(what);
      case "conversation":
        return await deleteConversation(what.conversationId);
      case "place":
        return await deletePlace(what.place);
      case "people":
        return await deletePeople(what.idPrefix);
    }
  }

  return { deleted, deleteMessages };
}

/** People often correct a message several times, so it is answered anew only after this quiet time. */
const quietMs = 1000;

type Outcome = "edited" | "unchanged" | "unknown";

/**
 * Stores edits. It durably replaces the accepted event and aborts a running turn. Then the turn waits for its
 * conversation like any other, and `prepareEdits` decides what to do.
 */
function createMessageEdited(
  { inbox, conversations, archive, scheduler, log }: ChangeOptions,
  deleteMessages: ReturnType<typeof createDeletions>["deleteMessages"],
): Receiver["messageEdited"] {
  async function editMessage(
    entry: InboxEntry,
    event: IncomingMessage,
    edited: EditedMessage,
  ): Promise<Outcome> {
    const content = await edited.read({ ...event, wasAsked: event.isAside !== true });
    if (content === undefined) return "unchanged";
    // Nobody asks the bot any more. What the message says is read from its thread.
    const isLater = edited.editedAt > (event.edit?.at ?? -Infinity);
    if (content.isAside === true && !wasAnswered(entry) && isLater)
      return await empty(event.conversationId, edited, { isSaidToOthers: true });
    if (isSame(event, content)) return "unchanged";
    if (isEmpty({ ...event, ...content })) return await empty(event.conversationId, edited);
    const toAddress = (address: typeof event.address) => edited.toAddress?.(address, content) ?? address;
    const { fixedWords, isAside: _isAside, ...before } = event;
    const { attachments = event.attachments } = content;
    // Corrections of a recording that the edit removed are dropped.
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
    // The abandoned run does not end its reply, because the next run does.
    if (isRunning) running?.abandon(toEditedError());
    scheduler.schedule(
      { ...(turn ?? { event: message, progress: undefined, others: [] }), ...hasBegun },
      { quietMs },
    );
    return "edited";
  }

  /** The started turn that answers an event, whether it runs here or in another process, or ran long ago. */
  async function startedTurn(
    entry: InboxEntry,
    event: IncomingMessage,
    running: readonly string[] = [],
  ): Promise<InboxEntry["turn"]> {
    if (entry.turn !== undefined) return entry.turn;
    if (wasAnswered(entry)) return (await findAnsweredTurn({ inbox, conversations }, event))?.progress;
    const [first] = running.includes(event.key) ? await inbox.lookUp(running.slice(0, 1)) : [];
    if (first !== undefined) return first.turn;
    const open = await inbox.listOpenIn(event.conversationId);
    return open.find(({ turn }) => turn?.keys.includes(event.key))?.turn;
  }

  /** The turn that runs here, as it must run again. The address of its reply may not be saved yet. */
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

  async function empty(
    conversationId: string,
    { key }: EditedMessage,
    how?: { readonly isSaidToOthers: boolean },
  ): Promise<Outcome> {
    await deleteMessages({ conversationId, keys: [key] }, how);
    return "edited";
  }

  /** A command runs as it was written, so an edit only changes what is stored of it. */
  async function editCall(entry: InboxEntry, call: CommandCall, edited: EditedMessage): Promise<Outcome> {
    if (entry.state === "answered") {
      const outcome = await editStored([storedIn(call)], edited);
      // An earlier delivery of the edit may not have reached this step.
      await inbox.withdraw([call.key]);
      return outcome;
    }
    const files = filesOf(call);
    const content = await edited.read({
      text: toCommandLine(call),
      attachments: files,
      wasAsked: true,
    });
    if (content === undefined) return "unchanged";
    const { text, attachments = files } = content;
    if (text === "" && attachments.length === 0) return await empty(call.conversationId, edited);
    const toAddress = (address: typeof call.address) => edited.toAddress?.(address, content) ?? address;
    const changed: CommandCall = { ...call, editedTo: content, address: toAddress(call.address) };
    const attemptsBefore = entry.turn?.attempts ?? 0;
    const outcome = await inbox.edit(changed, { at: edited.editedAt, attemptsBefore, toAddress });
    if (outcome !== "edited") return outcome;
    log.info({ turn: call.key }, "message of a command edited");
    // The run applies the edit at its end. If it has already ended, the event is open again.
    scheduler.schedule({ event: changed, progress: entry.turn, others: [] });
    return "edited";
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
      return isReplaced && !isKnown ? "edited" : "unchanged";
    }
    return "unknown";
  }

  return async (edited) => {
    const [entry] = await inbox.lookUp([edited.key]);
    if (entry === undefined) return await editStored(edited.conversationIds, edited);
    const { event } = entry;
    return event.kind === "message"
      ? await editMessage(entry, event, edited)
      : await editCall(entry, event, edited);
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

interface PrepareEditsOptions {
  readonly inbox: Inbox;
  readonly conversations: Conversations;
  readonly archive: Archive;
  readonly turnRate: TurnRate;
  /** @throws ParleyError where the rules do not allow the author to use the bot there */
  readonly expectAllowed: (message: IncomingMessage) => Promise<void>;
  /** Schedules a turn again because an edit came while another one was applied. */
  readonly schedule: (turn: PendingTurn) => void;
  readonly log: Log;
}

/**
 * Returns a function that applies the edits of a batch to the store before it runs. It works in the
 * conversation's queue, where nothing else writes. The last question of a conversation is then answered anew.
 */
export function createPrepareEdits(options: PrepareEditsOptions) {
  const { inbox, conversations, archive, turnRate, log } = options;

  async function prepareTurn(turn: PendingTurn): Promise<PendingTurn | undefined> {
    if (turn.state === "edited") return await prepareAnswered(turn);
    for (const event of eventsOf(turn))
      if (event.kind === "message") await applyEdit(options, storedIn(event), event);
    if (turn.redo?.kind === "edit") await eraseFailures(turn);
    return turn.isEdited === true ? await count(turn) : turn;
  }

  /** If the message is not the last one or says the same as before, only the stored text changes. */
  async function prepareAnswered(turn: PendingTurn): Promise<PendingTurn | undefined> {
    const { event } = turn;
    if (event.kind === "call") return await endEditedCall(turn, event);
    const conversationId = storedIn(event);
    const before = await conversations.find(conversationId, messageIds.user(event.key));
    const answered = await findAnsweredTurn({ inbox, conversations }, event);
    const after = await applyEdit(options, conversationId, event);
    const isChanged = JSON.stringify(before?.parts) !== JSON.stringify(after?.parts);
    const isApplied = before?.editedAt === event.edit?.at;
    const isLast =
      answered?.isLast === true &&
      (isChanged || isApplied) &&
      event.isAside !== true &&
      (await isAllowed(event));
    const attempts = answered?.progress.attempts ?? 0;
    // The process that answered it anew has died, and its reply may show half of the new answer.
    const hasBegun = attempts > (event.edit?.attemptsBefore ?? attempts);
    const [first = event.key] = answered?.progress.keys ?? [];
    const again = isLast || hasBegun ? await inbox.reopen(first, "edit") : "gone";
    if (typeof again === "string") {
      log.info({ turn: event.key, isLast }, "edit applied to the history");
      if (!(await inbox.close([event.key], { edits: editsOf(turn) }))) options.schedule(turn);
      return undefined;
    }
    const since = Math.min(event.edit?.attemptsBefore ?? attempts, attempts);
    // The form that was applied runs, also where a later one is stored by now, which then ends this run.
    const [own, ...others] = [again.event, ...again.others].map((one) =>
      one.key === event.key ? event : one,
    );
    const redone: PendingTurn = {
      event: own ?? event,
      others: others.filter((one) => one.kind === "message"),
      progress: again.turn,
      redo: { kind: "edit", since, requestedAt: event.edit?.takenAt ?? 0 },
      isEdited: true,
    };
    await eraseFailures(redone);
    return await count(redone);
  }

  /** Applies an edit that arrived just after the call had run. */
  async function endEditedCall(turn: PendingTurn, call: CommandCall): Promise<undefined> {
    await applyEdit(options, storedIn(call), call);
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

  /** Erases attempts that failed before the edit, because they reveal the earlier question. */
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

/** Whether an event was answered, also where an edit has opened it again since. */
function wasAnswered({ state }: InboxEntry): boolean {
  return state === "answered" || state === "edited";
}

/** How many stored messages are searched for a message's turn and for what was said after it. */
const maxLater = 200;

/** The turn that answered a message. */
interface AnsweredTurn {
  readonly progress: TurnProgress;
  /** Whether nobody has said anything or reset the conversation since. */
  readonly isLast: boolean;
}

/**
 * Finds the turn whose reply answers a message, alone or with others. It is `undefined` if it is too old.
 * @throws ParleyError `store-unavailable`
 */
async function findAnsweredTurn(
  { inbox, conversations }: { readonly inbox: Inbox; readonly conversations: Conversations },
  message: IncomingMessage,
): Promise<AnsweredTurn | undefined> {
  const conversationId = storedIn(message);
  const [log, settings, open] = await Promise.all([
    conversations.recent(conversationId, { maxMessages: maxLater }),
    conversations.settings(conversationId),
    inbox.listOpenIn(message.conversationId),
  ]);
  const position = log.findIndex(({ id }) => id === messageIds.user(message.key));
  const later = position === -1 ? [] : log.slice(position + 1);
  const firstKeys = [
    message.key,
    ...later.filter(({ role }) => role === "assistant").map(({ turnKey }) => turnKey),
  ];
  const first = (await inbox.lookUp([...new Set(firstKeys)])).find(
    ({ event, turn }) => turn !== undefined && [event.key, ...turn.keys].includes(message.key),
  );
  if (first?.turn === undefined) return undefined;
  const { keys } = first.turn;
  const isOther = (key: string): boolean => !keys.includes(key);
  const isReset = later.some(({ id }) => id === settings.resetAfter);
  const isFollowed =
    later.some(({ turnKey, inContext }) => inContext !== false && isOther(turnKey)) ||
    open.some(
      ({ event, state }) => state !== "edited" && isOther(event.key) && storedIn(event) === conversationId,
    );
  return {
    progress: first.turn,
    isLast: position !== -1 && !isReset && !isFollowed,
  };
}
