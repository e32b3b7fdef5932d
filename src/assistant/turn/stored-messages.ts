import type { FixedWords } from "../../core/events.ts";
import type { ReplyEnding } from "../../core/platform.ts";
import { actionsOf } from "../../core/press.ts";
import type { RoomState } from "../../core/room.ts";
import {
  boundVersions,
  toVersions,
  type MessagePart,
  type StoredMessage,
  type Conversations,
  type NotedWithMessage,
} from "../../core/storage.ts";
import { moveTimes } from "./transcript.ts";
import type { Turn, TurnDependencies } from "./turn.ts";

/** The estimated tokens of a picture, in the upper middle of what vision models charge. */
export const tokensPerImage = 1000;

const encoder = new TextEncoder();

/** A rough token count, `ceil(utf8 bytes / 4)`. Exact tokenizers are slow on hostile input. */
export function estimateTokens(text: string): number {
  return Math.ceil(encoder.encode(text).byteLength / 4);
}

/** A rough token count of a whole message. */
export function estimatePartsTokens(parts: readonly MessagePart[]): number {
  return parts.reduce((sum, part) => sum + estimatePartTokens(part), 0);
}

function estimatePartTokens(part: MessagePart): number {
  switch (part.kind) {
    case "text":
    case "voice":
    case "file":
      return estimateTokens(part.text) + 4;
    case "image":
      return tokensPerImage + estimateTokens(part.altText ?? "");
    case "image-link":
      return tokensPerImage;
    case "unread":
      return 16;
  }
}

/** Ids of a turn's messages, made from the event's key so that a message is not stored twice. */
export const messageIds = {
  user: (key: string): string => `${key}/user`,
  /** What was read in a room has an id of its own, so that an edit can make a question of it later. */
  room: (key: string): string => `${key}/said`,
  assistant: (key: string, attempt: number): string => `${key}/assistant/${attempt}`,
  /** The complete answer has the same id in every attempt, so that a turn has only one. */
  complete: (key: string): string => `${key}/answer`,
};

/**
 * Keeps only the last attempt of each turn, at the position of the first. The log holds earlier attempts, and
 * a paused process may add its own after another has resumed the turn. An attempt that failed before its
 * question could be stored still comes after the question.
 */
export function withoutRetriedAttempts(messages: readonly StoredMessage[]): StoredMessage[] {
  const kept: (StoredMessage | undefined)[] = [];
  const indexOfTurn = new Map<string, number>();
  /** Turns with an attempt that was stored before its question. */
  const early = new Set<string>();
  const keepLast = (message: StoredMessage | undefined, turnKey: string): void => {
    indexOfTurn.set(turnKey, kept.length);
    kept.push(message);
  };
  for (const message of messages) {
    const { attempt, turnKey } = message;
    const index = indexOfTurn.get(turnKey);
    if (attempt === undefined) {
      kept.push(message);
      if (index === undefined || message.role !== "user") continue;
      early.add(turnKey);
      keepLast(kept[index], turnKey);
      kept[index] = undefined;
    } else if (index === undefined) keepLast(message, turnKey);
    else if (attempt > (kept[index]?.attempt ?? 0)) {
      if (early.delete(turnKey)) {
        kept[index] = undefined;
        keepLast(message, turnKey);
      } else kept[index] = message;
    }
  }
  return kept.filter((message) => message !== undefined);
}

/** The log as people see it: the last attempt of each turn, with the text of earlier ones as versions. */
export function toShownMessages(messages: readonly StoredMessage[]): StoredMessage[] {
  const attempts = Map.groupBy(
    messages.filter(({ attempt }) => attempt !== undefined),
    ({ turnKey }) => turnKey,
  );
  return withoutRetriedAttempts(messages).map((message) => {
    const earlier = (attempts.get(message.turnKey) ?? []).filter(
      ({ attempt = 0 }) => attempt < (message.attempt ?? 0),
    );
    if (earlier.length === 0) return message;
    const own = message.versions ?? [];
    const texts = [...earlier, ...own, message].map(({ parts }) => textOf(parts));
    // Text that a later attempt continued or kept is already part of that attempt.
    const others = earlier.filter(
      ({ parts }, index) => hasImage(parts) || !texts[index + 1]?.startsWith(texts[index] ?? ""),
    );
    const versions = boundVersions([...others.flatMap(toVersions), ...own]);
    return versions.length === 0 ? message : { ...message, versions };
  });
}

function hasImage(parts: readonly MessagePart[]): boolean {
  return parts.some(({ kind }) => kind === "image");
}

/** The plain text of a message, for titles and quotes. */
export function textOf(parts: readonly MessagePart[]): string {
  return parts
    .flatMap((part) => (part.kind === "text" || part.kind === "voice" ? [part.text] : []))
    .join("\n")
    .trim();
}

/** Whether people have shown pictures. Pictures that models drew are described in words anyway. */
export function hasPictures(history: readonly StoredMessage[]): boolean {
  return history.some(
    ({ role, parts }) =>
      role === "user" && parts.some(({ kind }) => kind === "image" || kind === "image-link"),
  );
}

/** What was said since `/reset`, or everything if the reset is older than these messages. */
export function afterReset(
  log: readonly StoredMessage[],
  resetAfter: string | undefined,
): readonly StoredMessage[] {
  return log.slice(log.findIndex((message) => message.id === resetAfter) + 1);
}

/** Marks a thread that people had before the bot came. It changes nothing for a known conversation. */
export async function markPeoplesThread(conversations: Conversations, conversationId: string): Promise<void> {
  const { room } = await conversations.settings(conversationId);
  // Conversations that were stored without the mark stay as they are.
  if (room !== undefined || (await conversations.exists(conversationId))) return;
  await conversations.saveSettings(conversationId, { room: { isPeoples: true } });
}

/** Changes what is known of a room and keeps the rest. Only the conversation's turns do so, one by one. */
export async function changeRoomState(
  conversations: Pick<Conversations, "settings" | "saveSettings">,
  conversationId: string,
  change: RoomState,
): Promise<void> {
  const { room } = await conversations.settings(conversationId);
  await conversations.saveSettings(conversationId, { room: { ...room, ...change } }, "soon");
}

/**
 * Stores an answer. In a turn that runs again it replaces the earlier answer. That becomes a version if
 * people can look at versions, and is erased otherwise. After an edit the earlier answer is always erased
 * with its versions and files, because it may quote the old words. `duplicate` means that another attempt's
 * answer is stored, or that it was erased.
 */
export async function keepAnswer(
  { conversations, archive }: Pick<TurnDependencies, "conversations" | "archive">,
  { conversationId, redo, reply }: Pick<Turn, "conversationId" | "redo" | "reply">,
  message: StoredMessage,
  /** It is the first message of the conversation where the turn failed before its question was stored. */
  noted: NotedWithMessage = {},
): Promise<"stored" | "duplicate"> {
  if (redo === undefined) {
    if ((await conversations.append(conversationId, message, noted)) === "appended") return "stored";
    const known = await conversations.find(conversationId, message.id);
    // A rerun that failed left its failure with the earlier answer.
    if (known?.failure === undefined || message.failure !== undefined) return "duplicate";
  }
  const before = await conversations.find(conversationId, message.id);
  const isKept = reply.showsVersions === true && redo?.kind !== "edit";
  const earlier = !isKept ? "erased" : redo?.kind === "continue" ? "continued" : "version";
  if ((await conversations.replace(conversationId, message, earlier)) === "refused") return "duplicate";
  if ([before, ...(before?.versions ?? [])].some((one) => one?.parts.some(({ kind }) => kind === "image")))
    await archive.removeMessages(conversationId, { ids: [], withLooseFiles: true });
  return "stored";
}

/**
 * The message of an answer or of a command's result. What `given` has counts for more. Only a complete one
 * has the id of the turn's answer, unless `given` says so.
 */
export function toAnswerMessage(
  { key, attempt, command, shownMessageKeys }: Pick<Turn, "key" | "attempt" | "command" | "shownMessageKeys">,
  createdAt: number,
  given: Pick<StoredMessage, "parts"> & Partial<StoredMessage>,
): StoredMessage {
  const shownAs = shownMessageKeys();
  const { outcome = "complete" } = given;
  return {
    id: outcome === "complete" ? messageIds.complete(key) : messageIds.assistant(key, attempt),
    role: "assistant",
    turnKey: key,
    attempt,
    createdAt,
    estimatedTokens: estimatePartsTokens(given.parts),
    outcome,
    ...(command === undefined ? {} : { command }),
    ...(shownAs.length === 0 ? {} : { shownAs }),
    ...given,
  };
}

/** Returns what is shown below the text of a stored answer. */
export function toEnding(
  conversationId: string,
  stored: StoredMessage,
  notices: readonly string[],
): ReplyEnding {
  const { sources } = stored;
  const actions = actionsOf(conversationId, stored);
  return { notices, actions, ...(sources === undefined ? {} : { sources }) };
}

/** Longest words of one recording that fit into a form of every platform, in characters. */
export const maxFixableChars = 3000;

type VoicePart = Extract<MessagePart, { kind: "voice" }>;

interface NumberedVoice {
  readonly part: VoicePart;
  readonly position: number;
}

/** Whether a part is a recording whose words fit into a form. */
export function isFixable(part: MessagePart): part is VoicePart {
  return part.kind === "voice" && part.text.length <= maxFixableChars;
}

/** The recordings of a message in order. `position` counts those with the same name. */
export function voicesIn({ parts }: Pick<StoredMessage, "parts">): NumberedVoice[] {
  const voices = parts.filter((part) => part.kind === "voice");
  return voices.map((part, index) => ({
    part,
    position: voices.slice(0, index).filter(({ name }) => name === part.name).length,
  }));
}

/** The message with corrected words. It returns the same object if nothing changes. */
export function withFixedWords(message: StoredMessage, fixed: readonly FixedWords[] = []): StoredMessage {
  const voices = voicesIn(message);
  const parts = message.parts.map((part) => {
    if (part.kind !== "voice") return part;
    const at = voices.find((voice) => voice.part === part)?.position;
    const words = fixed.findLast(({ name, position }) => name === part.name && position === at);
    if (words === undefined || words.text === part.text) return part;
    const { times, ...rest } = part;
    const moved = moveTimes(times ?? [], part.text, words.text);
    return { ...rest, text: words.text, ...(moved.length === 0 ? {} : { times: moved }) };
  });
  if (parts.every((part, index) => part === message.parts[index])) return message;
  return { ...message, parts, estimatedTokens: estimatePartsTokens(parts) };
}
