import { estimatePartsTokens, messageIds } from "../turn/stored-messages.ts";
import type { Turn, TurnOutcome, TurnRoom } from "../turn/run-turn.ts";
import type { CommandCall } from "../../core/events.ts";
import type { MessagePart, StoredMessage } from "../../core/storage.ts";
import type { Platform, Receiver, Reply } from "../../core/platform.ts";

/** One run of a command: its call, its place in the log and its reply. */
export interface CallRun {
  readonly call: CommandCall;
  readonly attempt: number;
  readonly platform: Platform;
  /** Where what is said is kept: the conversation, or the call's own. */
  readonly conversationId: string;
  readonly reply: Reply;
  readonly signal: AbortSignal;
  readonly shownMessageKeys: Turn["shownMessageKeys"];
  readonly receive: Receiver["receive"];
  /** Called with the outcome where a service has shown its own failure. */
  ended(outcome: TurnOutcome): void;
}

/** Keeps what was asked, as the caller's message. */
export async function keepQuestion(
  room: TurnRoom,
  run: CallRun,
  parts: readonly MessagePart[],
  inContext = true,
): Promise<void> {
  await room.conversations.append(run.conversationId, {
    id: messageIds.user(run.call.key),
    role: "user",
    author: run.call.author,
    parts,
    createdAt: run.call.sentAt,
    estimatedTokens: estimatePartsTokens(parts),
    ...(inContext ? {} : { inContext }),
  });
}

/** Keeps what came of the call. */
export async function keepResult(
  room: TurnRoom,
  run: CallRun,
  result: Pick<StoredMessage, "parts"> & Partial<StoredMessage>,
): Promise<void> {
  const shownAs = run.shownMessageKeys();
  await room.conversations.append(run.conversationId, {
    id: messageIds.assistant(run.call.key, run.attempt),
    role: "assistant",
    createdAt: room.now(),
    estimatedTokens: estimatePartsTokens(result.parts),
    outcome: "complete",
    ...(shownAs.length === 0 ? {} : { shownAs }),
    ...result,
  });
}
