import type { FixedWords } from "../../core/events.ts";
import type { MessagePart, StoredMessage } from "../../core/storage.ts";
import { estimatePartsTokens } from "./stored-messages.ts";

/** Longest words of one recording that fit into a form of every platform, in characters. */
export const maxFixableChars = 3000;

/** A recording in a stored message. */
type VoicePart = Extract<MessagePart, { kind: "voice" }>;

interface NumberedVoice {
  readonly part: VoicePart;
  readonly position: number;
}

/** Whether a part is a recording whose words fit into a form. */
export function isFixable(part: MessagePart): part is VoicePart {
  return part.kind === "voice" && part.text.length <= maxFixableChars;
}

/** The recordings of a message, in order, each with its position among those of its name. */
export function voicesIn({ parts }: Pick<StoredMessage, "parts">): NumberedVoice[] {
  const voices = parts.filter((part) => part.kind === "voice");
  return voices.map((part, index) => ({
    part,
    position: voices.slice(0, index).filter(({ name }) => name === part.name).length,
  }));
}

/** The message with corrected words in the place of those heard; the same object where nothing changes. */
export function withFixedWords(message: StoredMessage, fixed: readonly FixedWords[] = []): StoredMessage {
  const voices = voicesIn(message);
  const parts = message.parts.map((part) => {
    if (part.kind !== "voice") return part;
    const at = voices.find((voice) => voice.part === part)?.position;
    const words = fixed.findLast(({ name, position }) => name === part.name && position === at);
    return words === undefined || words.text === part.text ? part : { ...part, text: words.text };
  });
  if (parts.every((part, index) => part === message.parts[index])) return message;
  return { ...message, parts, estimatedTokens: estimatePartsTokens(parts) };
}
