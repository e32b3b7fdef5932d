import { placeBy } from "./placing.ts";
import { ParleyError } from "../../src/core/errors.ts";
import type { Actor } from "../../src/core/access.ts";
import type { IncomingEvent } from "../../src/core/events.ts";
import type { PressResult } from "../../src/core/press.ts";
import type { ConversationHistory, EditedMessage, PlaceSettings, Receiver } from "../../src/core/receiver.ts";
import { emptyOverview } from "./empty-overview.ts";
import { type FakeForms, noForms, pressForm } from "./no-forms.ts";

/** A receiver for tests of one platform: it records what it is called with and runs nothing. */
export interface SlackReceiver extends Receiver, ConversationHistory {
  /** The accepted events, each key once. */
  readonly events: IncomingEvent[];
  /** The keys of those for whom earlier ones may still come. */
  readonly early: string[];
  /** `placeSettings` returns this. */
  place: PlaceSettings;
  /** Whether more than one person has written in each known conversation. */
  isShared: boolean;
  /** The conversations in which something was said to others, once for each message. */
  readonly asides: string[];
  forms: FakeForms;
  /** `knows` returns true for these ids of conversations. */
  readonly known: Set<string>;
  /** The ids of stored conversations. A deleted one leaves the list. */
  readonly stored: Set<string>;
  /** When they were used last. */
  storedAt: number;
  readonly retried: string[];
  readonly cancelled: string[];
  /** Each entry is `<key> by <author>`. */
  readonly confirmed: string[];
  /** Each entry is `<kind> <key> by <author>`. */
  readonly acted: string[];
  /** Presses of other buttons result in this, or throw it. */
  actResult: PressResult | Error;
  /** Deleted places, conversations, and messages as `<conversation>: <keys>`. */
  readonly deletions: string[];
  /** `changed` was called for an edit with these. */
  readonly edits: EditedMessage[];
  editOutcome: Awaited<ReturnType<Receiver["changed"]>>;
  /** This many of the next events reject with `store-unavailable`. */
  failures: number;
  /** Whether the store is away, so that questions how a place is answered reject too. */
  isStoreAway: boolean;
  /** Whether every event rejects with `busy`. */
  isBusy: boolean;
  /** Presses of `retry` and `confirm` result in this, or throw it. */
  rerunResult: PressResult | Error;
  /** The people who used a button, in order. */
  readonly actors: Actor[];
}

/** At most this many conversations are returned, as a store with a limit does. */
const maxListed = 2;

/** Creates an empty {@link SlackReceiver}. */
export function createSlackReceiver(): SlackReceiver {
  const keys = new Set<string>();
  const outage = () => new ParleyError("store-unavailable", "the test made the store unavailable");
  const receiver: SlackReceiver = {
    events: [],
    early: [],
    place: { answerTo: "addressed", answerIn: "thread" },
    isShared: false,
    asides: [],
    forms: noForms,
    known: new Set(),
    stored: new Set(),
    storedAt: 0,
    retried: [],
    cancelled: [],
    confirmed: [],
    acted: [],
    actResult: { kind: "told", markdown: "- Model: `test/chat-model`" },
    deletions: [],
    edits: [],
    editOutcome: "changed",
    failures: 0,
    isStoreAway: false,
    isBusy: false,
    rerunResult: { kind: "done" },
    actors: [],
    receive(event, { mayBeEarly = false } = {}) {
      if (event.kind === "aside") {
        receiver.asides.push(event.conversationId);
        return Promise.resolve("accepted");
      }
      if (keys.has(event.key)) return Promise.resolve("duplicate");
      if (receiver.isBusy) {
        // A refusal is for good.
        keys.add(event.key);
        return Promise.reject(new ParleyError("busy", "the test is busy", { detail: { waiting: 50 } }));
      }
      if (receiver.isStoreAway) return Promise.reject(outage());
      if (receiver.failures > 0) {
        receiver.failures -= 1;
        return Promise.reject(outage());
      }
      keys.add(event.key);
      receiver.events.push(event);
      if (mayBeEarly) receiver.early.push(event.key);
      return Promise.resolve("accepted");
    },
    knows: (conversationId) => Promise.resolve(receiver.known.has(conversationId)),
    async placeMessage(facts) {
      if (receiver.isStoreAway) throw outage();
      return await placeBy(facts, receiver);
    },
    formOffers: (_, conversationId) => receiver.forms.offers(conversationId),
    async press(press, by) {
      const { kind, key } = press;
      if (kind === "settings") return await pressForm(receiver.forms, press);
      const isRerun = kind === "retry" || kind === "confirm";
      if (isRerun || kind === "stop") receiver.actors.push(by);
      if (kind === "retry") receiver.retried.push(key);
      else if (kind === "confirm") receiver.confirmed.push(`${key} by ${by.author.id}`);
      else if (kind === "stop") receiver.cancelled.push(key);
      else receiver.acted.push(`${kind} ${key} by ${by.author.id}`);
      const result = isRerun ? receiver.rerunResult : receiver.actResult;
      if (result instanceof Error) throw result;
      return result;
    },
    async conversationOf(key) {
      return receiver.events.find((event) => event.key === key)?.conversationId;
    },
    async changed(what) {
      switch (what.kind) {
        case "edit":
          if (receiver.failures > 0) {
            receiver.failures -= 1;
            throw outage();
          }
          receiver.edits.push(what);
          if (receiver.editOutcome === "changed") await what.read({ text: "", attachments: [] });
          return receiver.editOutcome;
        case "delete-messages":
          receiver.deletions.push(`${what.conversationId}: ${what.keys.join(" ")}`);
          break;
        case "delete-conversation":
          receiver.stored.delete(what.conversationId);
          receiver.deletions.push(what.conversationId);
          break;
        case "delete-place":
          receiver.deletions.push(what.place);
          break;
        case "delete-people":
          receiver.deletions.push(`people ${what.idPrefix}`);
      }
      return "changed";
    },
    async placeSettings() {
      if (receiver.isStoreAway) throw outage();
      return receiver.place;
    },
    label: () => Promise.resolve(true),
    restored: undefined,
    overview: () => Promise.resolve(emptyOverview),
    suggestModels: () => [],
    history: () => Promise.resolve([]),
    question: () => Promise.resolve(undefined),
    openQuestions: () => Promise.resolve([]),
    ends: () => Promise.resolve(new Map()),
    conversations(prefix) {
      const ids = [...receiver.stored].filter((id) => id.startsWith(prefix)).slice(0, maxListed);
      return Promise.resolve(
        ids.map((conversationId) => ({ conversationId, title: "", updatedAt: receiver.storedAt })),
      );
    },
    branch: () => Promise.resolve("gone"),
    export: () => Promise.resolve({ title: "", files: [] }),
    search: () => Promise.resolve({ found: [] }),
    readBlob: () => Promise.resolve(undefined),
  };
  return receiver;
}
