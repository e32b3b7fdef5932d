import type { MessagePart, StoredMessage } from "../../core/storage.ts";

/** Estimated tokens of a picture: the upper middle of what vision models charge. */
export const tokensPerImage = 1000;

const encoder = new TextEncoder();

/** Rough tokens of a text: `ceil(utf8 bytes / 4)`. Exact tokenizers are slow on hostile input and wrong for other models. */
export function estimateTokens(text: string): number {
  return Math.ceil(encoder.encode(text).byteLength / 4);
}

/** Rough tokens of a whole message. */
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

/** Ids of a turn's messages, made from the event's key so that storing one twice is detected. */
export const messageIds = {
  user: (key: string): string => `${key}/user`,
  assistant: (key: string, attempt: number): string => `${key}/assistant/${attempt}`,
  /** The complete answer has the same id in every attempt, so that a turn has one. */
  complete: (key: string): string => `${key}/answer`,
};

/**
 * Keeps only the last attempt of each turn: earlier attempts stay in the log, and a process that was paused may add its own
 * after another has resumed the turn. The last attempt takes the position of the first. Where an attempt failed before its question could
 * be stored, it comes after the question all the same.
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

/** The plain text of a message, for titles and quotes. */
export function textOf(parts: readonly MessagePart[]): string {
  return parts
    .flatMap((part) => (part.kind === "text" || part.kind === "voice" ? [part.text] : []))
    .join("\n")
    .trim();
}

/** Whether people have shown pictures. Those that models drew are described in words as well. */
export function hasPictures(history: readonly StoredMessage[]): boolean {
  return history.some(
    ({ role, parts }) =>
      role === "user" && parts.some(({ kind }) => kind === "image" || kind === "image-link"),
  );
}

/** What was said since `/reset`; all of it where the reset lies before the messages at hand. */
export function afterReset(
  log: readonly StoredMessage[],
  resetAfter: string | undefined,
): readonly StoredMessage[] {
  return log.slice(log.findIndex((message) => message.id === resetAfter) + 1);
}
