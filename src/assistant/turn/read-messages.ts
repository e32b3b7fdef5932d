import type { Attachment, EditedContent, IncomingEvent, IncomingMessage } from "../../core/events.ts";
import type { ReplyFile } from "../../core/platform.ts";
import type { ReceiptCall } from "../../core/receipt.ts";
import type {
  ConversationSettings,
  MessagePart,
  StoredMessage,
  NotedWithMessage,
} from "../../core/storage.ts";
import { translate } from "../../words/translate.ts";
import { readFiles } from "./attachments.ts";
import { readRoom, unreadSince } from "./read-room.ts";
import {
  estimatePartsTokens,
  messageIds,
  withFixedWords,
  noteLastPicture,
  picturePartsOf,
  takePicture,
} from "./stored-messages.ts";
import { toQuotedTranscript } from "./transcribe-recording.ts";
import { toShownTranscript } from "./transcript.ts";
import type { TurnDependencies, Turn } from "./turn.ts";

/** How many stored messages are searched for the one that a person replies to. */
const maxRepliedTo = 200;

/** The messages of a turn, whose files were read. */
interface ReadMessages {
  /** The messages as stored when `whenStored` resolves, with what was said in the room between them. */
  readonly stored: readonly StoredMessage[];
  /** The model may be asked before, but nothing may be shown. Rejects with `store-unavailable`. */
  readonly whenStored: Promise<void>;
  /** The parts of the turn's own messages, in order. */
  readonly parts: readonly MessagePart[];
  readonly notices: readonly string[];
  /** The transcriptions that were made now. */
  readonly calls: readonly ReceiptCall[];
  /** Transcripts that are too long for a message. */
  readonly files: readonly ReplyFile[];
  /** The words of voice notes as a Markdown quote before the answer, so that people can check them. */
  readonly quoted: string;
}

/**
 * Reads the files of a turn's messages and stores the messages. It uses what an earlier attempt stored.
 * @throws ParleyError `store-unavailable`, or `gateway-…` for a voice note that could not be transcribed
 */
export async function readMessages(dependencies: TurnDependencies, turn: Turn): Promise<ReadMessages> {
  const { conversations } = dependencies;
  const stored: StoredMessage[] = [];
  const writes: Promise<unknown>[] = [];
  const notices: string[] = [];
  const calls: ReceiptCall[] = [];
  const within = turn.messages[0]?.within;
  let before: Promise<unknown> = Promise.resolve();
  const store = (message: StoredMessage, noted: NotedWithMessage = {}): void => {
    // Where one could not be stored, those after it are not stored either. The next attempt keeps the order.
    before = before.then(() => conversations.append(turn.conversationId, message, { within, ...noted }));
    writes.push(before);
    // Nobody waits for the writes if reading a later message fails first.
    void Promise.allSettled(writes);
    stored.push(message);
  };
  const settings = await conversations.settings(turn.conversationId);
  const room = await readRoomBefore(dependencies, turn, settings);
  const said = [...(room?.messages ?? [])];
  notices.push(...(room?.notices ?? []));
  const hint = toHint(settings, turn);
  if (hint !== undefined) notices.push(hint);
  calls.push(...(room?.calls ?? []));
  const questions: StoredMessage[] = [];
  for (const message of turn.messages) {
    // An edit has made a question of it, or it was accepted after a later one.
    if (message.edit !== undefined || message.sentAt <= (settings.room?.readAt ?? -Infinity))
      await takeFromRoom(dependencies, turn.conversationId, message.key);
    // A process that was paused may have stored it as it was before an edit.
    const known = turn.attempt > 1 ? await applyEdit(dependencies, turn.conversationId, message) : undefined;
    if (known !== undefined) {
      const fixed = withFixedWords(known, message.fixedWords);
      // This waits, because the model's history is read from the store.
      if (fixed !== known) await conversations.replace(turn.conversationId, fixed);
      stored.push(fixed);
      questions.push(fixed);
      continue;
    }
    const read = await readMessage(dependencies, turn, message);
    const upTo = lateEditAt(message) ?? message.sentAt;
    while (said[0] !== undefined && said[0].createdAt <= upTo) store(said.shift()!);
    const state = hint === undefined ? room?.state : { ...room?.state, hinted: turn.key };
    store(read.message, message === turn.messages.at(-1) ? { room: state } : {});
    writes.push(noteLastPicture(conversations, turn.conversationId, read.message));
    void Promise.allSettled(writes);
    questions.push(read.message);
    notices.push(...read.notices);
    calls.push(...read.calls);
  }
  const parts = questions.flatMap((message) => message.parts);
  for (const part of parts)
    if (part.kind === "unread")
      notices.push(translate("notice.unread", { name: part.name, reason: part.reason }));
  const whenStored = Promise.all(writes).then(() => undefined);
  void Promise.allSettled([whenStored]);
  const voices = parts.filter((part) => part.kind === "voice");
  const transcripts = await Promise.all(voices.map(toShownTranscript));
  const files = transcripts.flatMap(({ file }) => file ?? []);
  const quoted = transcripts.map(({ text }) => toQuotedTranscript(text)).join("\n\n");
  return { stored, whenStored, parts, notices, calls, files, quoted };
}

/**
 * Reads what was said in people's thread before the turn's messages, and in the bot's own thread what was
 * said to others since it was read. If all of the messages are stored, it reads nothing, because an earlier
 * attempt did.
 */
async function readRoomBefore(
  dependencies: TurnDependencies,
  turn: Turn,
  settings: ConversationSettings,
): Promise<Awaited<ReturnType<typeof readRoom>> | undefined> {
  const { conversations } = dependencies;
  const whole =
    turn.messages.findLast(({ inRoom }) => inRoom === true) ??
    ((await dependencies.withheld?.hasAny(turn.conversationId)) === true ? turn.messages.at(-1) : undefined);
  const since = whole === undefined ? unreadSince(settings) : undefined;
  const last = whole ?? (since === undefined ? undefined : turn.messages.at(-1));
  if (last === undefined) return undefined;
  const editedAt = Math.max(...turn.messages.map((message) => lateEditAt(message) ?? 0));
  const id = messageIds.user(turn.messages.at(-1)?.key ?? last.key);
  if (turn.attempt > 1 && (await conversations.find(turn.conversationId, id)) !== undefined) return undefined;
  return await readRoom(dependencies, {
    ...turn,
    address: last.address,
    ...(editedAt >= last.sentAt ? { until: editedAt } : { before: last.key, beforeAt: last.sentAt }),
    own: turn.messages.map(({ key }) => messageIds.user(key)),
    since,
  });
}

/** When an edit made a question of a message. What others said between is read with it. */
const lateEditAt = ({ edit }: IncomingMessage): number | undefined =>
  edit?.count === 0 ? edit.at : undefined;

/** Says, once in a thread, which messages are answered there, after one with words was left to others. */
function toHint({ aside, room }: ConversationSettings, { key, platform }: Turn): string | undefined {
  const isUnread = aside?.words !== undefined && aside.to > (room?.readAt ?? 0);
  if (room?.hinted === undefined ? !isUnread : room.hinted !== key) return undefined;
  return translate("rule.hint", { prefix: platform.guide.commandPrefix });
}

async function readMessage(
  dependencies: TurnDependencies,
  turn: Turn,
  message: IncomingMessage,
): Promise<Pick<ReadMessages, "notices" | "calls"> & { readonly message: StoredMessage }> {
  const files = [...message.attachments, ...(await picturesRepliedTo(dependencies, turn, message))];
  const isAskedInWords = turn.messages.some(({ text }) => text.trim() !== "");
  const read = await readFiles(dependencies, { ...turn, eventKey: message.key, isAskedInWords }, files);
  const text: MessagePart[] = message.text === "" ? [] : [{ kind: "text", text: message.text }];
  const pictures: MessagePart[] = [];
  for (const ref of message.pictures ?? [])
    pictures.push((await takePicture(dependencies.conversations, ref, turn.conversationId)).part);
  const parts = [...text, ...pictures, ...read.parts];
  return {
    message: {
      id: messageIds.user(message.key),
      role: "user",
      turnKey: message.key,
      author: message.author,
      parts,
      createdAt: message.sentAt,
      ...(message.edit === undefined ? {} : { editedAt: message.edit.at }),
      estimatedTokens: estimatePartsTokens(parts),
    },
    notices: read.notices,
    calls: read.calls,
  };
}

/** Removes what an earlier turn has read as said to others, because it is a question of this one. */
async function takeFromRoom(
  { conversations, archive }: TurnDependencies,
  conversationId: string,
  key: string,
): Promise<void> {
  const id = messageIds.room(key);
  if ((await conversations.find(conversationId, id)) !== undefined)
    await archive.removeMessages(conversationId, { ids: [id] });
}

/** The files of the bot's message that a person replies to, if the conversation does not have them. */
async function picturesRepliedTo(
  { conversations }: TurnDependencies,
  { conversationId }: Turn,
  { repliesTo }: IncomingMessage,
): Promise<readonly Attachment[]> {
  if (repliesTo === undefined || repliesTo.attachments.length === 0) return [];
  const recent = await conversations.recent(conversationId, { maxMessages: maxRepliedTo });
  const shown = recent.find(({ shownAs }) => shownAs?.includes(repliesTo.key));
  return shown !== undefined && picturePartsOf(shown).length > 0 ? [] : repliesTo.attachments;
}

/** A stored question after an edit, with the new words, without removed files, and not as a call. */
export function toEditedQuestion(
  stored: StoredMessage,
  { text, attachments }: EditedContent,
  editedAt: number,
): StoredMessage {
  const isKept = (part: MessagePart): boolean => {
    if (part.kind === "text") return false;
    if (attachments === undefined) return true;
    return attachments.some(({ name, linkUrl }) =>
      part.kind === "image-link" ? linkUrl === part.url : name === part.name,
    );
  };
  const words: MessagePart[] = text === "" ? [] : [{ kind: "text", text }];
  const parts = [...words, ...stored.parts.filter(isKept)];
  const { call: _asItWas, ...kept } = stored;
  return { ...kept, parts, estimatedTokens: estimatePartsTokens(parts), editedAt };
}

/**
 * Stores the edit of a question, which replaces and erases what it said before. Resolves to the question as
 * it is then stored, or to `undefined` if it is not stored. It can be repeated.
 * @throws ParleyError `store-unavailable`
 */
export async function applyEdit(
  { conversations, archive }: Pick<TurnDependencies, "conversations" | "archive">,
  conversationId: string,
  event: IncomingEvent,
): Promise<StoredMessage | undefined> {
  const stored = await conversations.find(conversationId, messageIds.user(event.key));
  const content = event.kind === "message" ? event : event.editedTo;
  const editedAt = event.edit?.at;
  if (stored === undefined || content === undefined || editedAt === undefined) return stored;
  if (editedAt < (stored.editedAt ?? -Infinity)) return stored;
  // An edit that is stored may still have to be removed from the store's files.
  const edited = editedAt === stored.editedAt ? stored : toEditedQuestion(stored, content, editedAt);
  await archive.replaceMessage(conversationId, edited);
  return edited;
}
