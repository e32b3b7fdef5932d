import { ParleyError } from "../../../../src/assistant/errors.ts";
import type { IncomingEvent, Log, Receiver } from "../../../../src/assistant/types.ts";

export interface FakeReceiver extends Receiver {
  /** What was accepted, each key once. */
  readonly events: IncomingEvent[];
  readonly known: Set<string>;
  readonly retried: string[];
  readonly cancelled: string[];
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
