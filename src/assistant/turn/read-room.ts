import { isDeepStrictEqual } from "node:util";
import type { Aside } from "../../core/placement.ts";
import type { Clock } from "../../core/clock.ts";
import { roomFailureNotice, roomFilesNotice } from "../../core/error-messages.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Attachment, ReplyAddress } from "../../core/events.ts";
import type { Platform } from "../../core/platform.ts";
import type { Reply } from "../../core/reply.ts";
import type { ReceiptCall } from "../../core/receipt.ts";
import type { RoomMessage, RoomReading, RoomResult, RoomState } from "../../core/room.ts";
import type {
  AsideTimes,
  Conversations,
  ConversationSettings,
  MessagePart,
  StoredMessage,
} from "../../core/storage.ts";
import { inTime, untilAborted } from "../../support/clock.ts";
import { cutText } from "../../support/text.ts";
import { translate } from "../../words/translate.ts";
import { historyWithheld } from "../access/access.ts";
import { readFiles, toReason } from "./attachments.ts";
import { messageIds } from "../../core/message-ids.ts";
import { estimatePartsTokens } from "./stored-messages.ts";
import type { RoomBounds, TurnDependencies } from "./turn.ts";

/** The time for reading messages, in milliseconds. The platform must end in it, with little grace. */
const readForMs = 8000;
const graceMs = 1000;
/** The time for reading their files, in milliseconds. */
const filesForMs = 20_000;
/** How many files are read, newest first. */
const maxFiles = 8;
/** What {@link RoomState.told} names where the platform cannot read rooms. */
const noPermissionHelps = "";
/** How many stored messages are compared with what is read. */
const maxCompared = 200;

/** Whose room is read, and where. */
export interface RoomTarget {
  /** The key of the turn. A missing permission is told once, and again if its turn runs again. */
  readonly key: string;
  readonly platform: Pick<Platform, "readRoom" | "download">;
  readonly conversationId: string;
  readonly address: ReplyAddress;
  /** The key of the message that is answered. Without it everything until now is read. */
  readonly before?: string;
  /** The ids of the questions that are answered, which are no part of what was said to others. */
  readonly own?: readonly string[];
  /** When that message was sent. */
  readonly beforeAt?: number;
  /** Only what was said until this time is read, in Unix milliseconds. */
  readonly until?: number;
  /** Only what was said since this time is read, in Unix milliseconds. */
  readonly since?: number | undefined;
  readonly reply: Pick<Reply, "status">;
  readonly signal: AbortSignal;
}

/** What was said in a room, ready to be stored. */
interface ReadRoom {
  /** The messages that are not stored yet, oldest first. */
  readonly messages: readonly StoredMessage[];
  readonly notices: readonly string[];
  /** The calls of the transcriptions. */
  readonly calls: readonly ReceiptCall[];
  /** How far it was read, to be saved with the messages. It is `undefined` if nothing is new. */
  readonly state: RoomState | undefined;
}

/**
 * Reads what people and apps said in a thread since the last reading. `notices` tell what cannot be read or
 * is withheld from the asker. What no permission would change is told once in a conversation.
 * @throws ParleyError `store-unavailable`, or the signal's reason
 */
export async function readRoom(dependencies: TurnDependencies, target: RoomTarget): Promise<ReadRoom> {
  const { conversations, room: bounds } = dependencies;
  const { conversationId } = target;
  if (bounds.maxMessages === 0) return nothing;
  const { room = {} } = await conversations.settings(conversationId);
  const found =
    dependencies.withheld === undefined
      ? await readInTime(dependencies.clock, target, bounds, room.readUpTo)
      : { messages: [], hasOlder: false, failure: historyWithheld() };
  if (found === "alone") return nothing;
  if (found === "unreadable") {
    if (wasTold(room, noPermissionHelps, target.key)) return nothing;
    const told = { permission: noPermissionHelps, turnKey: target.key };
    return { ...nothing, notices: [translate("room.unreadable")], state: { told } };
  }
  const { until = Infinity } = target;
  const reading = { ...found, messages: found.messages.filter(({ sentAt }) => sentAt <= until) };
  // Usually nobody said anything, so there is nothing to compare.
  const recent =
    reading.messages.length === 0
      ? []
      : await conversations.recent(conversationId, { maxMessages: maxCompared });
  const known = new Set([...recent.map(({ id }) => id), ...(target.own ?? [])]);
  const unknown = reading.messages.filter(
    ({ key }) => !known.has(messageIds.user(key)) && !known.has(messageIds.room(key)),
  );
  const fitting = fitChars(unknown, bounds.maxChars);
  const read = await readParts(dependencies, target, fitting);
  const messages = fitting.map((message, index) => toStored(message, read.parts[index] ?? []));
  const { failure } = reading;
  const permission =
    failure?.code === "platform-forbidden" ? `${failure.detail["permission"] ?? ""}` : undefined;
  const isTold = permission !== undefined && wasTold(room, permission, target.key);
  const change: RoomState = {
    ...(isTold || permission === undefined ? {} : { told: { permission, turnKey: target.key } }),
    ...readUpTo(reading, target),
  };
  return {
    messages,
    notices: [
      ...(failure === undefined || isTold ? [] : [roomFailureNotice(failure, reading.messages.length)]),
      ...(reading.hasOlder || fitting.length < unknown.length
        ? [translate("room.cut", { count: fitting.length })]
        : []),
      ...(read.unread.length === 0 ? [] : [roomFilesNotice(read.unread)]),
    ],
    calls: read.calls,
    state: Object.keys(change).length > 0 ? change : undefined,
  };
}

const nothing: ReadRoom = { messages: [], notices: [], calls: [], state: undefined };

async function readInTime(
  clock: Clock,
  { platform, address, before, since, signal }: RoomTarget,
  { maxMessages }: RoomBounds,
  after: string | undefined,
): Promise<RoomResult> {
  const tooLate = () => new ParleyError("platform-unreachable", "the room could not be read in time");
  const late = new AbortController();
  const cancel = clock.after(readForMs, () => late.abort(tooLate()));
  try {
    const query = { after, before, since, maxMessages, signal: AbortSignal.any([signal, late.signal]) };
    const reading = untilAborted(platform.readRoom(address, query), signal);
    const read = await inTime(reading, readForMs + graceMs, { clock });
    return read ?? { messages: [], hasOlder: false, failure: tooLate() };
  } finally {
    cancel();
  }
}

function wasTold({ told }: RoomState, permission: string, turnKey: string): boolean {
  return told?.permission === permission && told.turnKey !== turnKey;
}

/** How far the room counts as read. What was not read now is read with the next question. */
function readUpTo({ messages, failure }: RoomReading, { before, beforeAt, until }: RoomTarget): RoomState {
  if (failure === undefined && before !== undefined && beforeAt !== undefined)
    return { readUpTo: before, readAt: beforeAt };
  const last = messages.at(-1);
  if (failure === undefined && until !== undefined)
    return { ...(last === undefined ? {} : { readUpTo: last.key }), readAt: until };
  return failure?.code === "platform-forbidden" || last === undefined
    ? {}
    : { readUpTo: last.key, readAt: last.sentAt };
}

/**
 * Keeps when something was said to others, so that a turn reads the thread only where there is something to
 * read, and nothing from before.
 */
export function createHeardAside(conversations: Pick<Conversations, "saveSettings">) {
  return ({ conversationId, sentAt, hasWords = false, isShared = false }: Aside): Promise<void> =>
    conversations.saveSettings(conversationId, ({ aside, room }) => {
      const readAt = room?.readAt ?? 0;
      if (sentAt <= readAt) return undefined;
      const before = aside === undefined || aside.to <= readAt ? undefined : aside;
      const words = hasWords ? widened(before?.words, sentAt) : before?.words;
      const now: AsideTimes = {
        ...widened(before, sentAt),
        ...(words === undefined ? {} : { words }),
        ...(isShared || before?.isShared === true ? { isShared: true } : {}),
      };
      return isDeepStrictEqual(now, aside) ? undefined : { aside: now };
    });
}

function widened(span: AsideTimes["words"], at: number): { from: number; to: number } {
  return { from: Math.min(span?.from ?? at, at), to: Math.max(span?.to ?? at, at) };
}

/**
 * Since when people talked to others in the bot's thread, in Unix milliseconds. `undefined`: all of it was
 * read.
 */
export function unreadSince({ aside, room }: ConversationSettings): number | undefined {
  const readAt = room?.readAt ?? 0;
  return aside === undefined || aside.to <= readAt ? undefined : Math.max(aside.from, readAt);
}

/** The newest messages whose texts fit. A single message that is too long is cut. */
function fitChars(messages: readonly RoomMessage[], maxChars: number): RoomMessage[] {
  const fitting: RoomMessage[] = [];
  let room = maxChars;
  for (const message of messages.toReversed()) {
    if (room <= 0) break;
    fitting.unshift({ ...message, text: cutText(message.text, room) });
    room -= message.text.length;
  }
  return fitting;
}

function toStored(message: RoomMessage, files: readonly MessagePart[]): StoredMessage {
  const text: MessagePart[] = message.text === "" ? [] : [{ kind: "text", text: message.text }];
  const parts = [...text, ...files];
  return {
    id: messageIds.room(message.key),
    role: "user",
    turnKey: message.key,
    author: message.author,
    parts,
    createdAt: message.sentAt,
    estimatedTokens: estimatePartsTokens(parts),
    room: { isApp: message.isApp },
  };
}

interface ReadParts {
  /** The parts of each message. */
  readonly parts: readonly (readonly MessagePart[])[];
  /** Names of files that were not read. */
  readonly unread: readonly string[];
  readonly calls: readonly ReceiptCall[];
}

/** Reads the newest files. A file that fails is named, but the person still gets an answer. */
async function readParts(
  dependencies: TurnDependencies,
  target: RoomTarget,
  messages: readonly RoomMessage[],
): Promise<ReadParts> {
  const calls: ReceiptCall[] = [];
  const unread: string[] = [];
  const signal = AbortSignal.any([target.signal, AbortSignal.timeout(filesForMs)]);
  const left = messages.flatMap(({ attachments }) => attachments).slice(0, -maxFiles);
  let chars = dependencies.room.maxChars;

  async function readOne(attachment: Attachment): Promise<readonly MessagePart[]> {
    if (left.includes(attachment))
      return [unreadPart(attachment, translate("file.room-newest", { max: `${maxFiles}` }))];
    try {
      const read = await readFiles(dependencies, { ...target, signal }, [attachment]);
      calls.push(...read.calls);
      return read.parts;
    } catch (error) {
      target.signal.throwIfAborted();
      if (isParleyError(error, "store-unavailable") || isParleyError(error, "stopping")) throw error;
      return [unreadPart(attachment, signal.aborted ? translate("file.late") : toReason(error))];
    }
  }

  const parts = await Promise.all(
    messages.map(async ({ attachments }) => (await Promise.all(attachments.map(readOne))).flat()),
  );
  const cut = parts.map((some) =>
    some.map((part) => {
      if (part.kind === "unread") unread.push(part.name);
      if (part.kind !== "file") return part;
      const text = cutText(part.text, Math.max(0, chars));
      chars -= part.text.length;
      return { ...part, text };
    }),
  );
  return { parts: cut, unread, calls };
}

function unreadPart({ name }: Attachment, reason: string): MessagePart {
  return { kind: "unread", name, reason };
}
