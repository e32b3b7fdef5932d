import { placeBy } from "./placing.ts";
import type { Actor } from "../../src/core/access.ts";
import type { IncomingEvent } from "../../src/core/events.ts";
import type { PressResult } from "../../src/core/press.ts";
import type { ConversationHistory, EditedMessage, PlaceSettings, Receiver } from "../../src/core/receiver.ts";
import { emptyOverview } from "./empty-overview.ts";
import { type FakeForms, noForms, pressForm } from "./no-forms.ts";

/** A receiver in place of the assistant: it records every call and answers as a test sets it. */
export interface RecordingReceiver extends Receiver, ConversationHistory {
  /** The accepted events, each key once. */
  readonly events: IncomingEvent[];
  /** Keys of events that an earlier process has accepted. */
  readonly acceptedBefore: Set<string>;
  /** What `placeSettings` returns. */
  place: PlaceSettings;
  /** Whether more than one person has written in each known conversation. */
  isShared: boolean;
  /** The conversations in which something was said to others, once for each message. */
  readonly asides: string[];
  forms: FakeForms;
  /** The keys of every call to `receive`, duplicates and refused events included. */
  readonly offeredKeys: string[];
  /** `receive` rejects with it. */
  refusal: Error | undefined;
  /** `knows` and `conversations` reject with it. */
  outage: Error | undefined;
  /** `receive` waits for it. */
  gate: Promise<void> | undefined;
  /** `knows` returns true for these conversations. */
  readonly known: Set<string>;
  readonly retried: string[];
  /** Presses of `retry` and `confirm` result in this, or throw it. */
  rerunResult: PressResult | Error;
  readonly confirmed: { readonly key: string; readonly authorId: string }[];
  /** The people who used a button, in order. */
  readonly actors: Actor[];
  /** `<kind> <key>` and who used the button. */
  readonly acted: { readonly action: string; readonly by: Actor }[];
  /** Presses of other buttons result in this, or throw it. */
  actResult: PressResult | Error;
  suggestions: readonly string[];
  /** `changed` was called for an edit with these. */
  readonly edits: EditedMessage[];
  /** How often `changed` was called for an edit, also while it rejects. */
  editCalls: number;
  editResult: Awaited<ReturnType<Receiver["changed"]>>;
  /** How often `changed` was called for deleted messages. */
  deletionCalls: number;
  readonly deletedMessages: { readonly conversationId: string; readonly key: string }[];
  readonly deletedConversations: string[];
  readonly deletedPlaces: string[];
}

/** Creates a {@link RecordingReceiver}. */
export function createRecordingReceiver(): RecordingReceiver {
  const receiver: RecordingReceiver = {
    events: [],
    acceptedBefore: new Set(),
    place: { answerTo: "addressed", answerIn: "thread" },
    isShared: false,
    asides: [],
    forms: noForms,
    offeredKeys: [],
    refusal: undefined,
    outage: undefined,
    gate: undefined,
    known: new Set(),
    retried: [],
    rerunResult: { kind: "done" },
    confirmed: [],
    actors: [],
    acted: [],
    actResult: { kind: "told", markdown: "- Model: `story/chat`" },
    suggestions: [],
    edits: [],
    editCalls: 0,
    editResult: "changed",
    deletionCalls: 0,
    deletedMessages: [],
    deletedConversations: [],
    deletedPlaces: [],
    async receive(event) {
      if (event.kind === "aside") {
        receiver.asides.push(event.conversationId);
        return "accepted";
      }
      receiver.offeredKeys.push(event.key);
      await receiver.gate;
      if (receiver.refusal !== undefined) throw receiver.refusal;
      if (receiver.acceptedBefore.has(event.key) || receiver.events.some(({ key }) => key === event.key))
        return "duplicate";
      receiver.events.push(event);
      return "accepted";
    },
    async knows(conversationId) {
      if (receiver.outage !== undefined) throw receiver.outage;
      return receiver.known.has(conversationId);
    },
    async placeMessage(facts) {
      if (receiver.outage !== undefined) throw receiver.outage;
      return await placeBy(facts, receiver);
    },
    async conversationOf(key) {
      if (receiver.outage !== undefined) throw receiver.outage;
      return receiver.events.find((event) => event.key === key)?.conversationId;
    },
    formOffers: (_, conversationId) => receiver.forms.offers(conversationId),
    async press(press, by) {
      const { kind, key } = press;
      if (kind === "settings") return await pressForm(receiver.forms, press);
      const isRerun = kind === "retry" || kind === "confirm";
      if (isRerun) receiver.actors.push(by);
      if (kind === "retry") receiver.retried.push(key);
      else if (kind === "confirm") receiver.confirmed.push({ key, authorId: by.author.id });
      else receiver.acted.push({ action: `${kind} ${key}`, by });
      const result = isRerun ? receiver.rerunResult : receiver.actResult;
      if (result instanceof Error) throw result;
      return result;
    },
    async changed(what) {
      switch (what.kind) {
        case "edit":
          receiver.editCalls += 1;
          if (receiver.outage !== undefined) throw receiver.outage;
          receiver.edits.push(what);
          return receiver.events.some(({ key }) => key === what.key) ? receiver.editResult : "unknown";
        case "delete-messages":
          receiver.deletionCalls += 1;
          for (const [conversationId, keys] of [
            [what.conversationId, what.keys] as const,
            ...(what.others ?? []),
          ])
            receiver.deletedMessages.push(...keys.map((key) => ({ conversationId, key })));
          break;
        case "delete-conversation":
          receiver.deletedConversations.push(what.conversationId);
          break;
        case "delete-place":
          receiver.deletedPlaces.push(what.place);
          break;
        case "delete-people":
          receiver.deletedPlaces.push(what.idPrefix);
      }
      return "changed";
    },
    placeSettings: async () => receiver.place,
    label: () => Promise.resolve(true),
    restored: undefined,
    overview: () => Promise.resolve(emptyOverview),
    suggestModels: (query) => receiver.suggestions.filter((id) => id.includes(query)),
    history: async () => [],
    question: () => Promise.resolve(undefined),
    openQuestions: async () => [],
    ends: async () => new Map(),
    async conversations(prefix, { without } = {}) {
      if (receiver.outage !== undefined) throw receiver.outage;
      const known = [...receiver.known].map((conversationId) => ({ conversationId, sentAt: 0, within: [] }));
      return [...receiver.events, ...known]
        .filter(({ conversationId: id }) => id.startsWith(prefix))
        .filter(({ conversationId: id }) => without === undefined || !id.startsWith(without))
        .map(({ conversationId, sentAt, within = [] }) => ({
          conversationId,
          title: "",
          updatedAt: sentAt,
          within,
        }));
    },
    branch: () => Promise.resolve("gone"),
    export: async () => ({ title: "", files: [] }),
    search: () => Promise.resolve({ found: [] }),
    readBlob: async () => undefined,
  };
  return receiver;
}
