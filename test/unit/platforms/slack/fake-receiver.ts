import { ParleyError } from "../../../../src/core/errors.ts";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import type { Log } from "../../../../src/core/telemetry.ts";
import type { ConversationHistory, Receiver } from "../../../../src/core/platform.ts";

export interface FakeReceiver extends Receiver, ConversationHistory {
  /** What was accepted, each key once. */
  readonly events: IncomingEvent[];
  readonly known: Set<string>;
  readonly retried: string[];
  readonly cancelled: string[];
  readonly confirmed: string[];
  confirmOutcome: "accepted" | "refused" | "gone";
  /** What people removed: a conversation, or messages of one. */
  readonly removals: string[];
  /** So many of the next events cannot be stored. */
  failures: number;
  retryOutcome: "accepted" | "gone";
}

/** Takes events in and does nothing with them. */
export function createFakeReceiver(): FakeReceiver {
  const keys = new Set<string>();
  const receiver: FakeReceiver = {
    events: [],
    known: new Set(),
    retried: [],
    cancelled: [],
    confirmed: [],
    confirmOutcome: "accepted",
    removals: [],
    failures: 0,
    retryOutcome: "accepted",
    receive(event) {
      if (receiver.failures > 0) {
        receiver.failures -= 1;
        return Promise.reject(new ParleyError("store-unavailable", "the test took the store away"));
      }
      if (keys.has(event.key)) return Promise.resolve("duplicate");
      keys.add(event.key);
      receiver.events.push(event);
      return Promise.resolve("accepted");
    },
    knows: (conversationId) => Promise.resolve(receiver.known.has(conversationId)),
    retry(key) {
      receiver.retried.push(key);
      return Promise.resolve(receiver.retryOutcome);
    },
    confirm(key, authorId) {
      receiver.confirmed.push(`${key} by ${authorId}`);
      return Promise.resolve(receiver.confirmOutcome);
    },
    messagesDeleted(conversationId, keys) {
      receiver.removals.push(`${conversationId}: ${keys.join(" ")}`);
      return Promise.resolve();
    },
    conversationDeleted(conversationId) {
      receiver.removals.push(conversationId);
      return Promise.resolve();
    },
    placeDeleted: () => Promise.resolve(),
    cancel(conversationId) {
      receiver.cancelled.push(conversationId);
      return true;
    },
    suggestModels: () => [],
    history: () => Promise.resolve([]),
    conversations: () => Promise.resolve([]),
    readBlob: () => Promise.resolve(undefined),
  };
  return receiver;
}

export function createSilentLog(): Log {
  const log: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
  return log;
}
