import type { StoredMessage } from "../core/storage.ts";
import type { Slots } from "./slots.ts";

/** What one pass over a conversation found. */
export interface ErasureScan {
  readonly selected: readonly SelectedMessage[];
  /** Number of all messages. */
  readonly messages: number;
  /** Whether a user message is left. */
  readonly othersWrote: boolean;
  /** Hashes of the blobs that the remaining messages show. */
  readonly remainingBlobs: ReadonlySet<string>;
  /** Hashes of the blobs that only selected messages show. */
  readonly hashes: readonly string[];
  readonly isFirstSelected: boolean;
  /** The position after the last message. */
  readonly end: number;
}

/** A message that is to be erased. */
export interface SelectedMessage {
  readonly position: number;
  readonly message: StoredMessage;
  /** Id of the last message before it that remains. */
  readonly previousId: string | undefined;
}

/**
 * Reads a conversation once and selects messages of it.
 * @throws ParleyError `store-corrupt` when a message is damaged: whose it is cannot be known
 */
export async function scanConversation(
  slots: Slots,
  conversationId: string,
  isSelected: (message: StoredMessage) => boolean,
): Promise<ErasureScan> {
  const selected: SelectedMessage[] = [];
  const remainingBlobs = new Set<string>();
  let previousId: string | undefined;
  let othersWrote = false;
  let messages = 0;
  let firstId: string | undefined;
  let end = 0;
  for await (const { position, message, damage } of slots.all(conversationId)) {
    if (damage !== undefined) throw damage;
    end = position + 1;
    if (message === undefined) continue;
    messages++;
    firstId ??= message.id;
    if (isSelected(message)) selected.push({ position, message, previousId });
    else {
      othersWrote ||= message.role === "user";
      for (const hash of hashesOf(message)) remainingBlobs.add(hash);
      previousId = message.id;
    }
  }
  const hashes = new Set(selected.flatMap(({ message }) => hashesOf(message)));
  return {
    selected,
    messages,
    othersWrote,
    remainingBlobs,
    hashes: [...hashes].filter((hash) => !remainingBlobs.has(hash)),
    isFirstSelected: selected[0] !== undefined && selected[0].message.id === firstId,
    end,
  };
}

/** The hashes of the blobs that a message shows. */
export function hashesOf(message: StoredMessage): string[] {
  return message.parts.flatMap((part) => ("blob" in part && part.blob !== undefined ? [part.blob.hash] : []));
}
