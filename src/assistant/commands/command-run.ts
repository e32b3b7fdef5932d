import type { CommandServices } from "../../core/command-services.ts";
import type { CommandCall, IncomingEvent } from "../../core/events.ts";
import type { Inbox } from "../../core/inbox.ts";
import { messageIds } from "../../core/message-ids.ts";
import type { AnswerDraft } from "../../core/result.ts";
import type { MessagePart, StoredCall, StoredMessage } from "../../core/storage.ts";
import { estimatePartsTokens } from "../turn/stored-messages.ts";
import type { ReceiptDraft, Run, TurnDependencies } from "../turn/turn.ts";

/** One run of a command. */
export interface CommandRun extends Run {
  readonly call: CommandCall;
  /** The call as its person has typed it. */
  readonly written: string;
  readonly receive: (event: IncomingEvent) => Promise<"accepted" | "duplicate">;
  readonly inbox: Pick<Inbox, "open" | "read">;
  readonly place: Pick<
    CommandServices,
    "describeSettings" | "changeSetting" | "explainSettings" | "ruleHere"
  >;
}

/** The question as the caller's message. Models see it only if `inContext`. `call` can be repeated. */
export function toCallQuestion(
  { call: { key, author, sentAt } }: Pick<CommandRun, "call">,
  parts: readonly MessagePart[],
  { inContext = true, call }: { readonly inContext?: boolean; readonly call?: StoredCall } = {},
): StoredMessage {
  return {
    id: messageIds.user(key),
    role: "user",
    turnKey: key,
    author,
    parts,
    ...(call === undefined ? {} : { call }),
    createdAt: sentAt,
    estimatedTokens: estimatePartsTokens(parts),
    ...(inContext ? {} : { inContext }),
  };
}

/** Stores the question. */
export async function askAs(
  run: CommandRun,
  ...given: Parameters<typeof toCallQuestion> extends [unknown, ...infer Rest] ? Rest : never
): Promise<void> {
  await run.ask([toCallQuestion(run, ...given)], { within: run.call.within });
}

/** What is stored as a command's answer. */
export function toCallAnswer(
  { now }: Pick<TurnDependencies, "now">,
  { call }: Pick<CommandRun, "call">,
  given: AnswerDraft,
  draft?: ReceiptDraft,
): AnswerDraft {
  const receipt = draft?.toReceipt();
  return {
    createdAt: now(),
    estimatedTokens: estimatePartsTokens(given.parts),
    command: call.name,
    ...(receipt === undefined ? {} : { receipt }),
    ...given,
  };
}
