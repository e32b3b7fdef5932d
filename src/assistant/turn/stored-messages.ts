import type { MessagePart, StoredMessage } from "../../core/storage.ts";

/** What a picture counts in the context window, in tokens: the upper middle of what vision models charge. */
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
    case "image-link":
      return tokensPerImage;
    case "unread":
      return 16;
  }
}

/** Ids of a turn's messages, made from the event's key so that writing one twice is noticed. */
export const messageIds = {
  user: (key: string): string => `${key}/user`,
  assistant: (key: string, attempt: number): string => `${key}/assistant/${attempt}`,
};

const attemptSuffix = /\/assistant\/(\d+)$/;

/**
 * Keeps only the last attempt of each turn: a retried turn leaves its earlier ones in the log, and a process that
 * was paused may have added its own after another has taken over. The kept one stands where the first stood.
 */
export function withoutRetriedAttempts(messages: readonly StoredMessage[]): StoredMessage[] {
  const kept: StoredMessage[] = [];
  const placeOfTurn = new Map<string, number>();
  const attemptOf = (message: StoredMessage | undefined) =>
    Number(attemptSuffix.exec(message?.id ?? "")?.[1]);
  for (const message of messages) {
    if (message.role === "assistant" && attemptSuffix.test(message.id)) {
      const turn = message.id.replace(attemptSuffix, "");
      const place = placeOfTurn.get(turn);
      if (place !== undefined) {
        if (attemptOf(message) > attemptOf(kept[place])) kept[place] = message;
        continue;
      }
      placeOfTurn.set(turn, kept.length);
    }
    kept.push(message);
  }
  return kept;
}

/** The plain text of a message, for titles and quotes. */
export function textOf(parts: readonly MessagePart[]): string {
  return parts
    .flatMap((part) => (part.kind === "text" || part.kind === "voice" ? [part.text] : []))
    .join("\n")
    .trim();
}

/** A short title out of what was said first: one line, at most 60 characters, whole words where possible. */
export function toTitle(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  const characters = Array.from(line);
  if (characters.length <= 60) return line === "" ? "New conversation" : line;
  const cut = characters.slice(0, 59).join("");
  const space = cut.lastIndexOf(" ");
  return `${space > 30 ? cut.slice(0, space) : cut}…`;
}
