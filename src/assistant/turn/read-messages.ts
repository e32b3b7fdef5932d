import { unreadNotice } from "../../core/error-messages.ts";
import type { IncomingMessage } from "../../core/events.ts";
import type { ReceiptCall } from "../../core/receipt.ts";
import type { MessagePart, StoredMessage } from "../../core/storage.ts";
import { readFiles } from "./attachment-reader.ts";
import { quote } from "./quote.ts";
import { estimatePartsTokens, messageIds } from "./stored-messages.ts";
import type { Turn, TurnDependencies } from "./turn.ts";

/** The messages of a turn, with their files read. */
export interface ReadMessages {
  /** As they are stored once `whenStored` resolves. */
  readonly stored: readonly StoredMessage[];
  /** The model may be asked before; nothing of its answer may be shown. Rejects with `store-unavailable`. */
  readonly whenStored: Promise<void>;
  /** The parts of all of them, in order. */
  readonly parts: readonly MessagePart[];
  readonly notices: readonly string[];
  /** The transcriptions made now. */
  readonly calls: readonly ReceiptCall[];
}

/**
 * Reads the files of a turn's messages and stores the messages. What an earlier attempt stored is taken from there.
 * @throws ParleyError `store-unavailable`, `gateway-…` (a voice note that could not be transcribed)
 */
export async function readMessages(dependencies: TurnDependencies, turn: Turn): Promise<ReadMessages> {
  const { conversations } = dependencies;
  const stored: StoredMessage[] = [];
  const writes: Promise<unknown>[] = [];
  const notices: string[] = [];
  const calls: ReceiptCall[] = [];
  for (const message of turn.messages) {
    const id = messageIds.user(message.key);
    const known = turn.attempt > 1 ? await conversations.find(turn.conversationId, id) : undefined;
    if (known !== undefined) {
      stored.push(known);
      continue;
    }
    const read = await readMessage(dependencies, turn, message);
    // Not waited for: the log keeps the order of the calls.
    writes.push(conversations.append(turn.conversationId, read.message));
    // A later message may fail to be read first; then nobody waits.
    void Promise.allSettled(writes);
    stored.push(read.message);
    notices.push(...read.notices);
    calls.push(...read.calls);
  }
  const parts = stored.flatMap((message) => message.parts);
  for (const part of parts) if (part.kind === "unread") notices.push(unreadNotice(part.name, part.reason));
  const whenStored = Promise.all(writes).then(() => undefined);
  void Promise.allSettled([whenStored]);
  return { stored, whenStored, parts, notices, calls };
}

async function readMessage(
  dependencies: TurnDependencies,
  turn: Turn,
  message: IncomingMessage,
): Promise<Pick<ReadMessages, "notices" | "calls"> & { readonly message: StoredMessage }> {
  const read = await readFiles(dependencies, turn, message.attachments);
  const text: MessagePart[] = message.text === "" ? [] : [{ kind: "text", text: message.text }];
  const parts = [...text, ...read.parts];
  return {
    message: {
      id: messageIds.user(message.key),
      role: "user",
      turnKey: message.key,
      author: message.author,
      parts,
      createdAt: message.sentAt,
      estimatedTokens: estimatePartsTokens(parts),
    },
    notices: read.notices,
    calls: read.calls,
  };
}

/** Whether there is anything to answer: not only files that could not be read. */
export function isAnswerable(parts: readonly MessagePart[]): boolean {
  return parts.some((part) => part.kind !== "unread");
}

/** Transcripts as block quotes, shown before the answer so that people see what was misheard. */
export function quoteTranscripts(parts: readonly MessagePart[]): string {
  return parts.flatMap((part) => (part.kind === "voice" ? [quote(`🎙️ ${part.text}`)] : [])).join("\n\n");
}
