import type { Attachment, EditedContent, IncomingMessage } from "../../core/events.ts";
import type { ReplyFile } from "../../core/reply.ts";
import type { ReceiptCall } from "../../core/receipt.ts";
import { messageIds } from "../../core/message-ids.ts";
import type { ConversationSettings, MessagePart, StoredMessage } from "../../core/storage.ts";
import { translate } from "../../words/translate.ts";
import { readFiles } from "./attachments.ts";
import { readRoom, unreadSince } from "./read-room.ts";
import {
  estimatePartsTokens,
  noteLastPicture,
  picturePartsOf,
  takePicture,
  textOf,
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
  const { settings } = turn;
  const stored: StoredMessage[] = [];
  /** What is to be stored: questions, and what was said in the room between them. */
  const unstored: StoredMessage[] = [];
  const notices: string[] = [];
  const calls: ReceiptCall[] = [];
  const room = await readRoomBefore(dependencies, turn);
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
    const known = await findQuestion(dependencies, turn, message);
    if (known !== undefined && isRead(turn, message, known)) {
      stored.push(known);
      questions.push(known);
      continue;
    }
    // It was deleted after the attempt had begun.
    if (isInLog(message)) continue;
    const read = await readMessage(dependencies, turn, message, known);
    const upTo = lateEditAt(message) ?? message.sentAt;
    while (said[0] !== undefined && said[0].createdAt <= upTo) unstored.push(said.shift()!);
    unstored.push(read.message);
    questions.push(read.message);
    notices.push(...read.notices);
    calls.push(...read.calls);
  }
  stored.push(...unstored);
  const parts = questions.flatMap((message) => message.parts);
  for (const part of parts)
    if (part.kind === "unread")
      notices.push(translate("notice.unread", { name: part.name, reason: part.reason }));
  const state = hint === undefined ? room?.state : { ...room?.state, hinted: turn.key };
  const within = turn.messages[0]?.within;
  const whenStored = unstored.length === 0 ? Promise.resolve() : storeAll();
  void Promise.allSettled([whenStored]);

  async function storeAll(): Promise<void> {
    await turn.ask(unstored, { within, room: state });
    for (const message of unstored) await noteLastPicture(conversations, turn.conversationId, message);
  }

  const voices = parts.filter((part) => part.kind === "voice");
  const transcripts = await Promise.all(voices.map(toShownTranscript));
  const files = transcripts.flatMap(({ file }) => file ?? []);
  const quoted = transcripts.map(({ text }) => toQuotedTranscript(text)).join("\n\n");
  return { stored, whenStored, parts, notices, calls, files, quoted };
}

/** Whether a message was asked before: its words are in the log, and nothing of it is still to be read. */
export function isInLog({ text, attachments, pictures }: IncomingMessage): boolean {
  return text === "" && attachments.length === 0 && pictures === undefined;
}

/** Whether nothing of a stored question is still to be read. That of a command is stored when all is read. */
function isRead({ command }: Turn, message: IncomingMessage, known: StoredMessage): boolean {
  return command === undefined ? isInLog(message) : known.inContext !== false;
}

/** The question of a message that an earlier attempt has stored, or this one when it began. */
async function findQuestion(
  { conversations }: TurnDependencies,
  { conversationId, questions, attempt }: Turn,
  message: IncomingMessage,
): Promise<StoredMessage | undefined> {
  const known = questions.get(message.key);
  if (known !== undefined || (attempt === 1 && !isInLog(message))) return known;
  return await conversations.find(conversationId, messageIds.user(message.key));
}

/**
 * The questions of messages that need nothing but their words, so that they can be stored when the attempt
 * begins. `undefined`: there is something to read first.
 */
export function toPlainQuestions(
  messages: readonly IncomingMessage[],
  settings: ConversationSettings,
): readonly StoredMessage[] | undefined {
  const isPlain = messages.every(
    ({ attachments, pictures, repliesTo, inRoom, edit, origin, sentAt, text }) =>
      text !== "" &&
      attachments.length === 0 &&
      pictures === undefined &&
      (repliesTo?.attachments.length ?? 0) === 0 &&
      inRoom !== true &&
      edit?.madeQuestion !== true &&
      origin?.readsHistory !== false &&
      sentAt > (settings.room?.readAt ?? -Infinity),
  );
  const hasRoom = unreadSince(settings) !== undefined || isHintDue(settings);
  return isPlain && !hasRoom ? messages.map((message) => toQuestion(message, [])) : undefined;
}

/** The question of a message as it is stored. */
export function toQuestion(message: IncomingMessage, files: readonly MessagePart[]): StoredMessage {
  const text: MessagePart[] = message.text === "" ? [] : [{ kind: "text", text: message.text }];
  const parts = [...text, ...files];
  return {
    id: messageIds.user(message.key),
    role: "user",
    turnKey: message.key,
    author: message.author,
    parts,
    createdAt: message.sentAt,
    ...(message.edit === undefined ? {} : { editedAt: message.edit.at }),
    estimatedTokens: estimatePartsTokens(parts),
  };
}

/**
 * Reads what was said in people's thread before the turn's messages, and in the bot's own thread what was
 * said to others since it was read. If all of the messages are stored, it reads nothing, because an earlier
 * attempt did.
 */
async function readRoomBefore(
  dependencies: TurnDependencies,
  turn: Turn,
): Promise<Awaited<ReturnType<typeof readRoom>> | undefined> {
  const { conversations } = dependencies;
  const { settings } = turn;
  if (turn.questions.size > 0) return undefined;
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
  edit?.madeQuestion === true ? edit.at : undefined;

/** Says, once in a thread, which messages are answered there, after one with words was left to others. */
function toHint(settings: ConversationSettings, { key, platform }: Turn): string | undefined {
  const hinted = settings.room?.hinted;
  if (hinted === undefined ? !isHintDue(settings) : hinted !== key) return undefined;
  return translate("rule.hint", { prefix: platform.guide.commandPrefix });
}

function isHintDue({ aside, room }: ConversationSettings): boolean {
  return room?.hinted === undefined && aside?.words !== undefined && aside.to > (room?.readAt ?? 0);
}

/** @param known the question as an earlier attempt has stored it, which could not read all of its files */
async function readMessage(
  dependencies: TurnDependencies,
  turn: Turn,
  message: IncomingMessage,
  known: StoredMessage | undefined,
): Promise<Pick<ReadMessages, "notices" | "calls"> & { readonly message: StoredMessage }> {
  const files = [...message.attachments, ...(await picturesRepliedTo(dependencies, turn, message))];
  const isAskedInWords = turn.messages.some(({ text }) => text.trim() !== "");
  const read = await readFiles(dependencies, { ...turn, isAskedInWords }, files);
  const pictures: MessagePart[] = [];
  for (const ref of message.pictures ?? [])
    pictures.push((await takePicture(dependencies.conversations, ref, turn.conversationId)).part);
  const text = textOf(known?.parts.filter(({ kind }) => kind === "text") ?? []);
  const asked = toQuestion({ ...message, text: message.text || text }, [...pictures, ...read.parts]);
  const question = known?.editedAt === undefined ? asked : { ...asked, editedAt: known.editedAt };
  return { message: question, notices: read.notices, calls: read.calls };
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
