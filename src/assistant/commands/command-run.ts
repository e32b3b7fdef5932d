import type { CommandServices } from "../../core/command-services.ts";
import type { CommandCall } from "../../core/events.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { MessagePart, StoredCall, StoredMessage } from "../../core/storage.ts";
import type { ReceiptDraft, Turn, TurnDependencies, TurnOutcome } from "../turn/turn.ts";
import {
  keepAnswer,
  estimatePartsTokens,
  messageIds,
  toAnswerMessage,
  noteLastPicture,
} from "../turn/stored-messages.ts";

/** One run of a command, with its call, its place in the store and its reply. */
export interface CommandRun extends Pick<
  Turn,
  "attempt" | "platform" | "reply" | "signal" | "redo" | "shownMessageKeys" | "offerSoFar"
> {
  readonly call: CommandCall;
  /** The call as its person has typed it. */
  readonly written: string;
  /** Where it is stored: the conversation of the call, or a separate one for the call. */
  readonly conversationId: string;
  readonly receive: Receiver["receive"];
  readonly inbox: Pick<Inbox, "listOpen" | "lookUp">;
  readonly settings: Pick<
    CommandServices,
    "describeSettings" | "changeSetting" | "explainSettings" | "ruleHere"
  >;
  /** Called with the outcome by a service that has shown its own failure. */
  ended(outcome: TurnOutcome): void;
}

/** Stores the question as the caller's message. Models see it only if `inContext`. `call` can be repeated. */
export async function storeQuestion(
  dependencies: TurnDependencies,
  run: CommandRun,
  parts: readonly MessagePart[],
  { inContext = true, call }: { readonly inContext?: boolean; readonly call?: StoredCall } = {},
): Promise<void> {
  const message: StoredMessage = {
    id: messageIds.user(run.call.key),
    role: "user",
    turnKey: run.call.key,
    author: run.call.author,
    parts,
    ...(call === undefined ? {} : { call }),
    createdAt: run.call.sentAt,
    estimatedTokens: estimatePartsTokens(parts),
    ...(inContext ? {} : { inContext }),
  };
  await dependencies.conversations.append(run.conversationId, message, { within: run.call.within });
}

/** What a command stores as its result. */
type Result = Pick<StoredMessage, "parts"> & Partial<StoredMessage>;

/** Makes the assistant's message from a command's result. */
export function toResult(
  dependencies: Pick<TurnDependencies, "now">,
  run: CommandRun,
  result: Result,
  draft?: ReceiptDraft,
): StoredMessage {
  const receipt = draft?.toReceipt();
  const { key, name: command } = run.call;
  return toAnswerMessage({ ...run, key, command }, dependencies.now(), {
    ...(receipt === undefined ? {} : { receipt }),
    ...result,
  });
}

/** Stores the command's result as the assistant's message and resolves to it. */
export async function storeResult(
  dependencies: TurnDependencies,
  run: CommandRun,
  result: Result,
  draft?: ReceiptDraft,
): Promise<StoredMessage> {
  const message = toResult(dependencies, run, result, draft);
  await keepAnswer(dependencies, run, message, { within: run.call.within });
  await noteLastPicture(dependencies.conversations, run.conversationId, message);
  return message;
}
