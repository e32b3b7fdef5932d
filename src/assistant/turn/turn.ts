import type { Access } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import type { HelpSettings } from "../../core/command-services.ts";
import { isParleyError, type ParleyError } from "../../core/errors.ts";
import type { IncomingMessage } from "../../core/events.ts";
import type { Gateway } from "../../core/gateway.ts";
import type { OpenRedo, StoppedAnswer } from "../../core/inbox.ts";
import type { Platform, Reply } from "../../core/platform.ts";
import type { SpendingLedger } from "../../core/spending.ts";
import type { Archive, ConversationQueue, Conversations } from "../../core/storage.ts";
import type { Log, Meter } from "../../core/telemetry.ts";
import type { Release } from "../../support/fair-semaphore.ts";
import type { Budgets } from "../access/budgets.ts";
import type { WithheldHistory } from "../access/access.ts";
import type { createTokenFactors } from "./context-window.ts";
import type { createModelTolerance, LayeredModelChoice } from "./model-choice.ts";

/** What turns and commands are run with. */
export interface TurnDependencies {
  /** Each call waits until it is admitted for the person of the turn. */
  readonly gateway: Gateway;
  /** `Author.id` of the person whose turn it is. */
  readonly personId: string;
  /** Set where the person may not see what was said before. */
  readonly withheld: Pick<WithheldHistory, "hasAny"> | undefined;
  /** Resolves when so many bytes of files may be loaded; `release` them when they are no longer in memory. */
  readonly admitBytes: (bytes: number, signal: AbortSignal) => Promise<Release>;
  readonly access: Access;
  readonly ledger: SpendingLedger;
  readonly help: HelpSettings;
  readonly budgets: Pick<Budgets, "inForce">;
  /** The name of a person or channel that an id stands for, on whichever platform. `undefined`: not known. */
  readonly nameOf: (id: string) => Promise<string | undefined>;
  readonly conversations: Conversations;
  readonly archive: Archive;
  readonly queue: ConversationQueue;
  readonly models: LayeredModelChoice;
  readonly factors: ReturnType<typeof createTokenFactors>;
  readonly tolerance: ReturnType<typeof createModelTolerance>;
  readonly meter: Meter;
  readonly log: Log;
  readonly chat: ChatSettings;
  /** How much is read of a thread in which people talk with each other. */
  readonly room: RoomBounds;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly clock: Clock;
}

/** How much of a room is read for one turn. */
export interface RoomBounds {
  /** Newest messages. 0: rooms are not read. */
  readonly maxMessages: number;
  /** Of their texts together, and of the text files in them together. */
  readonly maxChars: number;
}

/** How the chat model is asked. */
export interface ChatSettings {
  /** Longest answer, in tokens. */
  readonly maxTokens: number;
  /** 0 to 2. */
  readonly temperature: number;
  readonly systemPrompt: string;
}

/** One turn: the messages to answer, where, and in which attempt. */
export interface Turn {
  /** Key of its first event. */
  readonly key: string;
  /** 1 for the first run; each retry or restart counts one more. */
  readonly attempt: number;
  readonly platform: Platform;
  readonly conversationId: string;
  readonly messages: readonly IncomingMessage[];
  readonly reply: Reply;
  /** Markdown before the answer: the question, where people do not see it otherwise. Empty: none. */
  readonly lead: string;
  /** The model asked for in these messages. */
  readonly model: string | undefined;
  /** The name of the command that asks. Default: messages do. */
  readonly command?: string;
  readonly signal: AbortSignal;
  /** Why it must not be answered: the reply ends with these words. */
  readonly refusal?: ParleyError | undefined;
  /** It was answered before: its answer is replaced. */
  readonly redo: OpenRedo | undefined;
  /** Keys of the platform's messages that show the reply so far. */
  readonly shownMessageKeys: () => readonly string[];
  /** Called once, before the answer grows. */
  readonly offerSoFar: (soFar: AnswerSoFar) => void;
}

/**
 * Returns the answer so far as the turn stores it when a person stops it now; `why`: the notice that says so.
 * `undefined`: people see no words of it yet, or the whole is stored.
 */
export type AnswerSoFar = (why: string) => StoppedAnswer | undefined;

/** How a turn ended. `failed` and `interrupted` have been shown to the person. */
export type TurnOutcome = "complete" | "interrupted" | "failed" | "cancelled";

/** Throws `stopping` where another process or the next start resumes the turn. A cancellation does not throw. */
export function throwIfAbandoned(signal: AbortSignal): void {
  if (signal.aborted && isParleyError(signal.reason, "stopping")) throw signal.reason;
}
