import type { Access } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import type { HelpSettings } from "../../core/command-services.ts";
import { isParleyError } from "../../core/errors.ts";
import type { IncomingMessage } from "../../core/events.ts";
import type { Gateway, ModelOperation, Usage } from "../../core/gateway.ts";
import type { Again } from "../../core/inbox.ts";
import type { Platform } from "../../core/platform.ts";
import type { Reply } from "../../core/reply.ts";
import type { SpendingLedger } from "../../core/spending.ts";
import type {
  Archive,
  ConversationQueue,
  Conversations,
  ConversationSettings,
  MessagePart,
  NotedWithMessage,
  StoredMessage,
} from "../../core/storage.ts";
import type { Log, Meter } from "../../core/telemetry.ts";
import type { Release } from "../../support/queues.ts";
import type { MeteredGateway } from "../access/admission.ts";
import type { Budgets } from "../access/budgets.ts";
import type { WithheldHistory } from "../access/access.ts";
import type { createTokenFactors } from "./context-window.ts";
import type { SumUp } from "./sum-up.ts";
import type { LayeredModelChoice } from "./model-choice.ts";
import type { createRefusalMemory } from "./refusals.ts";
import type { Receipt, ReceiptCall, ReceiptContext } from "../../core/receipt.ts";
import { isFixable } from "./stored-messages.ts";
import type { CollectedAnswer } from "./stream-answer.ts";

/** What turns and commands need to run. */
export interface TurnDependencies {
  /** Each call waits until it is admitted for the person of the turn. */
  readonly gateway: MeteredGateway;
  /** The same for calls that nobody asked for. It refuses one that might leave nothing for the answer. */
  readonly gatewayBeside: Pick<Gateway, "chat">;
  /** The `Author.id` of the person whose turn it is. */
  readonly personId: string;
  /** Set if the person may not see what was said before. */
  readonly withheld: Pick<WithheldHistory, "hasAny"> | undefined;
  /** Resolves when so many bytes of files may be loaded. Release them when they leave the memory. */
  readonly admitBytes: (bytes: number, signal: AbortSignal) => Promise<Release>;
  /** Resolves when the person may read much of what is stored, one at a time. */
  readonly admitReading: (signal: AbortSignal) => Promise<Release>;
  readonly access: Access;
  readonly ledger: SpendingLedger;
  readonly help: HelpSettings;
  readonly budgets: Pick<Budgets, "inForce">;
  /** The name of a person or channel on any platform by its id, if it is known. */
  readonly nameOf: (id: string) => Promise<string | undefined>;
  readonly conversations: Conversations;
  readonly archive: Archive;
  readonly queue: ConversationQueue;
  readonly models: LayeredModelChoice;
  readonly factors: ReturnType<typeof createTokenFactors>;
  readonly refusals: ReturnType<typeof createRefusalMemory>;
  /** Sums up what no longer fits a model. Without it that is only left out. */
  readonly sumUp: SumUp | undefined;
  readonly meter: Meter;
  readonly log: Log;
  readonly chat: ChatSettings;
  /** How much is read of a thread in which people talk with each other. */
  readonly room: RoomBounds;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
  readonly clock: Clock;
}

/** How much of a room is read for one turn. */
export interface RoomBounds {
  /** How many of the newest messages are read. 0 means that rooms are not read. */
  readonly maxMessages: number;
  /** The limit for their texts together, and for the text files in them together. */
  readonly maxChars: number;
}

/** How the chat model is asked. */
export interface ChatSettings {
  /** The longest answer in tokens. */
  readonly maxTokens: number;
  /** A value from 0 to 2. */
  readonly temperature: number;
  readonly systemPrompt: string;
}

/** One attempt at a turn, in this process. */
export interface Run {
  /** The key of the turn. */
  readonly key: string;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  /** Why it runs again. */
  readonly again: Again | undefined;
  readonly platform: Platform;
  /** The conversation that stores it. */
  readonly conversationId: string;
  /** The settings of that conversation when the attempt began. */
  readonly settings: ConversationSettings;
  readonly reply: Reply;
  /** Aborts with `cancelled` where people end it, and with `stopping` where it is left to another attempt. */
  readonly signal: AbortSignal;
  /** The questions that were stored when it began, by the keys of their events. */
  readonly questions: ReadonlyMap<string, StoredMessage>;
  /** Keys of the platform's messages that show the reply so far. */
  readonly shownMessageKeys: () => readonly string[];
  /**
   * Stores what is asked, with what was said in the room before. The words leave the inbox with that.
   * @throws ParleyError `stopping` where the turn was changed, `store-unavailable`
   */
  readonly ask: (messages: readonly StoredMessage[], noted?: NotedWithMessage) => Promise<void>;
}

/** A run that asks a chat model. */
export interface Turn extends Run {
  readonly messages: readonly IncomingMessage[];
  /** Markdown before the answer: the question, if people do not see it otherwise, or an empty text. */
  readonly lead: string;
  /** The model that these messages ask for. */
  readonly model: string | undefined;
  /** The name of the command that asks. Default: messages do. */
  readonly command?: string;
}

/** Throws `stopping` if another process or the next start resumes the turn, but not for a cancellation. */
export function throwIfAbandoned(signal: AbortSignal): void {
  if (signal.aborted && isParleyError(signal.reason, "stopping")) throw signal.reason;
}

/**
 * Whether the turn may succeed later, because store, platform or process were unavailable, or the platform
 * limits the rate.
 */
export function isOutage(error: unknown): boolean {
  return (
    isParleyError(error, "stopping") ||
    isParleyError(error, "platform-unreachable") ||
    isParleyError(error, "store-unavailable") ||
    (isParleyError(error, "platform-rejected") && error.retryAfterMs !== undefined)
  );
}

/** The gateway's defaults, which a receipt does not repeat. */
const defaults = { temperature: 1, maxTokens: 1024 } as const;

/** Whether a part of a message is a file that a person sent. */
export function isFile(part: MessagePart): part is Extract<MessagePart, { readonly name: string }> {
  return "name" in part;
}

/** A call that has ended. */
export function toReceiptCall(
  operation: ModelOperation,
  asked: string,
  { model, fallback, usage }: Pick<CollectedAnswer, "model" | "fallback" | "usage">,
): ReceiptCall {
  return { operation, asked, model, ...(fallback === undefined ? {} : { fallback }), usage };
}

/** Collects the receipt of an answer while the answer is made. */
export type ReceiptDraft = ReturnType<typeof createReceiptDraft>;

/** Creates an empty draft. It counts its times from now. */
export function createReceiptDraft() {
  const startedAt = performance.now();
  const calls: ReceiptCall[] = [];
  let details: Omit<Receipt, "calls" | "totalMs"> = {};
  const elapsedMs = (): number => Math.round(performance.now() - startedAt);

  return {
    /** Records a call of a model. It replaces an earlier call of the same operation without an answer. */
    asks(operation: ModelOperation, asked: string): void {
      const last = calls.at(-1);
      if (last?.operation === operation && last.model === undefined) calls.pop();
      calls.push({ operation, asked });
    },
    /** Records the answer of the last model that was asked. */
    answered(answer: Parameters<typeof toReceiptCall>[2]): void {
      const last = calls.pop();
      if (last !== undefined) calls.push(toReceiptCall(last.operation, last.asked, answer));
    },
    /**
     * Records what the last chat model that was asked is charged for an answer that broke off. Returns the
     * model.
     */
    left(usage: Usage | undefined): string | undefined {
      const last = calls.at(-1);
      if (last?.operation !== "chat" || last.model !== undefined) return undefined;
      if (usage !== undefined) calls[calls.length - 1] = { ...last, usage };
      return last.asked;
    },
    /** Records calls that have ended, in order. */
    add(ended: readonly ReceiptCall[]): void {
      calls.push(...ended);
    },
    /** Records what the chat model is sent. */
    sends(context: ReceiptContext, { temperature, maxTokens }: Omit<ChatSettings, "systemPrompt">): void {
      details = {
        ...details,
        context,
        ...(temperature === defaults.temperature ? {} : { temperature }),
        ...(maxTokens === defaults.maxTokens ? {} : { maxTokens }),
      };
    },
    /** Counts the files among the parts of the question's messages. */
    reads(messages: readonly Pick<StoredMessage, "id" | "parts" | "room">[]): void {
      const having = messages.filter(({ parts }) => parts.some(isFile));
      if (having.length === 0) return;
      const files = having.flatMap(({ parts }) => parts.filter(isFile));
      const unread = files.filter(({ kind }) => kind === "unread").length;
      const of = having.map(({ id }) => id);
      const own = having.filter(({ room }) => room === undefined);
      const voices = own.flatMap(({ parts }) => parts.filter(isFixable)).length;
      const spoken = voices === 0 ? {} : { voices };
      details = { ...details, files: { read: files.length - unread, unread, ...spoken, of } };
    },
    /** Returns the milliseconds until the first text, which came now or before. */
    firstText(): number {
      const firstTextMs = details.firstTextMs ?? elapsedMs();
      details = { ...details, firstTextMs };
      return firstTextMs;
    },
    /** The receipt so far, or `undefined` if no model was asked. */
    toReceipt(): Receipt | undefined {
      if (calls.length === 0) return undefined;
      return boundedReceipt({ ...details, calls, totalMs: elapsedMs() });
    },
  };
}

/** The bounds of a {@link Receipt}. Longer parts are cut. */
const max = { calls: 12, messages: 12, idChars: 500, modelChars: 200 } as const;

/** Cuts the lists and texts of a receipt to their bounds, so that it stays below 20 KB. */
export function boundedReceipt(receipt: Receipt): Receipt {
  const { files, calls, ...rest } = receipt;
  return {
    ...rest,
    // The answer's own call is the last one.
    calls: calls.slice(-max.calls).map((call) => ({
      ...call,
      asked: cut(call.asked, max.modelChars),
      ...(call.fallback === undefined ? {} : { fallback: cut(call.fallback, max.modelChars) }),
      ...(call.model === undefined ? {} : { model: cut(call.model, max.modelChars) }),
    })),
    ...(files === undefined
      ? {}
      : {
          files: {
            ...files,
            of: files.of.filter((id) => id.length <= max.idChars).slice(0, max.messages),
          },
        }),
  };
}

function cut(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
