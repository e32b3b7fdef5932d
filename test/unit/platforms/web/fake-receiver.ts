import { ParleyError } from "../../../../src/core/errors.ts";
import type {
  ConversationLabels,
  FoundConversation,
  ConversationSummary,
  StoredBlob,
  StoredMessage,
  ConversationExport,
} from "../../../../src/core/storage.ts";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import type {
  BranchRequest,
  ConversationHistory,
  EditedMessage,
  Receiver,
} from "../../../../src/core/receiver.ts";
import { emptyOverview } from "../../../support/empty-overview.ts";
import { type FakeForms, noForms, pressForm } from "../../../support/no-forms.ts";

/** A receiver that records its calls and returns what a test puts in. */
export interface FakeReceiver extends Receiver, ConversationHistory {
  readonly events: IncomingEvent[];
  forms: FakeForms;
  readonly retried: string[];
  readonly confirmed: string[];
  /** The presses, as `<kind> <key> by <author>`. */
  readonly acted: string[];
  /** The conversations that were deleted. */
  readonly gone: string[];
  readonly cancelled: string[];
  readonly labels: Map<string, ConversationLabels>;
  readonly edits: EditedMessage[];
  readonly stored: Map<string, StoredMessage[]>;
  readonly blobs: Map<string, StoredBlob>;
  readonly branches: BranchRequest[];
  readonly exports: Map<string, ConversationExport>;
  readonly searches: { readonly prefix: string; readonly text: string }[];
  /** The result of `search`. */
  found: readonly FoundConversation[];
  summaries: readonly ConversationSummary[];
  /** While it is true, everything that needs the store throws `store-unavailable`. */
  isBroken: boolean;
  /** The error that `receive` throws. */
  refusal: ParleyError | undefined;
}

export function createFakeReceiver(): FakeReceiver {
  const check = (receiver: FakeReceiver) => {
    if (receiver.isBroken) throw new ParleyError("store-unavailable", "the test broke the store");
  };
  return {
    events: [],
    forms: noForms,
    retried: [],
    confirmed: [],
    acted: [],
    gone: [],
    cancelled: [],
    edits: [],
    stored: new Map(),
    blobs: new Map(),
    branches: [],
    exports: new Map(),
    searches: [],
    found: [],
    summaries: [],
    isBroken: false,
    refusal: undefined,
    async receive(event) {
      check(this);
      if (event.kind === "aside") return "accepted";
      if (this.refusal !== undefined) throw this.refusal;
      if (this.events.some((other) => other.key === event.key)) return "duplicate";
      this.events.push(event);
      return "accepted";
    },
    placeMessage: () => Promise.resolve({ kind: "ignore" }),
    async knows(conversationId) {
      return this.stored.has(conversationId);
    },
    formOffers(_, conversationId) {
      return this.forms.offers(conversationId);
    },
    async press(press, by) {
      const { kind, key } = press;
      switch (kind) {
        case "settings":
          return await pressForm(this.forms, press);
        case "retry":
          this.retried.push(key);
          return { kind: "done" };
        case "confirm":
          this.confirmed.push(`${key} by ${by.author.id}`);
          return { kind: "done" };
        case "stop":
          this.cancelled.push(key);
          return { kind: "done" };
        default:
          check(this);
          this.acted.push(`${kind} ${key} by ${by.author.id}`);
          return key.includes("gone")
            ? { kind: "gone" }
            : { kind: "told", markdown: "- Model: `sandbox/chat`" };
      }
    },
    conversationOf: async () => undefined,
    async changed(what) {
      if (what.kind === "delete-conversation") {
        check(this);
        this.gone.push(what.conversationId);
      }
      if (what.kind !== "edit") return "changed";
      check(this);
      this.edits.push(what);
      return this.events.some(({ key }) => key === what.key) ? "changed" : "unknown";
    },
    placeSettings: async () => ({ answerTo: "addressed", answerIn: "thread" }),
    labels: new Map(),
    async label(conversationId, labels) {
      check(this);
      if (!this.stored.has(conversationId)) return false;
      this.labels.set(conversationId, labels);
      return true;
    },
    restored: undefined,
    overview: () => Promise.resolve(emptyOverview),
    suggestModels: (query) => ["sandbox/chat", "sandbox/image"].filter((model) => model.includes(query)),
    async history(conversationId, { maxMessages }) {
      check(this);
      return (this.stored.get(conversationId) ?? []).slice(-maxMessages);
    },
    async question(conversationId, key) {
      check(this);
      return this.stored
        .get(conversationId)
        ?.find(({ id, turnKey }) => id.endsWith("/user") && turnKey === key);
    },
    openQuestions: () => Promise.resolve([]),
    ends: () => Promise.resolve(new Map()),
    async conversations(prefix, { max = 200, isWanted = () => true } = {}) {
      check(this);
      return this.summaries
        .filter(({ conversationId }) => conversationId.startsWith(prefix) && isWanted(conversationId))
        .slice(0, max);
    },
    async branch(request) {
      check(this);
      this.branches.push(request);
      return this.stored.has(request.from) ? "branched" : "gone";
    },
    async export(conversationId) {
      check(this);
      return this.exports.get(conversationId) ?? { title: "Conversation", files: [] };
    },
    async search(prefix, search) {
      check(this);
      this.searches.push({ prefix, text: search.text });
      return {
        found: this.found.filter(({ conversationId }) => search.isWanted?.(conversationId) !== false),
      };
    },
    async readBlob(conversationId, hash) {
      check(this);
      return this.blobs.get(`${conversationId} ${hash}`);
    },
  };
}

/** Makes a stored message. Its id is `<turn key>/user` or `<turn key>/assistant/<attempt>`. */
export function storedMessage(
  id: string,
  role: "user" | "assistant",
  text: string,
  more: Omit<Partial<StoredMessage>, "turnKey"> = {},
): StoredMessage {
  return {
    id,
    role,
    turnKey: id.replace(/\/(user|assistant\/\d+)$/, ""),
    ...(role === "assistant" ? { attempt: Number(id.split("/").at(-1)) } : {}),
    parts: text === "" ? [] : [{ kind: "text", text }],
    createdAt: Date.now(),
    estimatedTokens: 1,
    ...(role === "assistant" ? { outcome: "complete" as const } : {}),
    ...more,
  };
}
