import type { InboxRecord } from "../core/inbox.ts";
import { messageIds } from "../core/message-ids.ts";
import { boundVersions, toVersions, type ConversationSettings, type StoredMessage } from "../core/storage.ts";
import type { WriteCondition } from "./backend.ts";
import { type Change, type KeyValueStore, type Observed } from "./key-value.ts";
import type { WritePlan } from "./log-plan.ts";
import { planWithoutSummary } from "./rolling-summary.ts";
import { type Slot, toMessage } from "./slots.ts";
import { entryAt, type Tombstone } from "./keys.ts";

/** A title is made of so many of the first messages. */
const maxTitled = 6;

/** An answer without its earlier versions. */
export function withoutVersions({ versions: _versions, ...rest }: StoredMessage): StoredMessage {
  return rest;
}

/** Plans changes of the messages that are in the log. */
export function createQuestions(store: KeyValueStore) {
  /** Finds a message, with the conditions that nobody has changed it since. */
  async function findOne(conversationId: string, id: string) {
    const idAt = await store.observe<number>(entryAt.messageId(conversationId, id));
    const position = idAt.value;
    if (position === undefined || position < 0) return { conditions: [idAt.unchanged] };
    const at = entryAt.slot(conversationId, position);
    const slot: Observed<Slot> = await store.observe<Slot>(at);
    const message = toMessage(slot.value);
    return {
      conditions: [idAt.unchanged, slot.unchanged],
      ...(message?.id === id ? { message, position } : {}),
    };
  }

  /** Whether a title may have been made of the message at a position. */
  async function isTitled(conversationId: string, position: number): Promise<boolean> {
    if (position === 0) return true;
    if (position >= maxTitled) return false;
    const keys = Array.from({ length: position }, (_, at) => entryAt.slot(conversationId, at).key);
    const before = await store.getMany<Slot>("slot", keys);
    return before.every((slot) => {
      const message = toMessage(slot);
      return message === undefined || message.room !== undefined;
    });
  }

  /**
   * Erases a title that was made from the first of these messages, and moves a reset that names an erased
   * one.
   * @param erased the positions of erased messages by id
   */
  async function planSettings(
    conversationId: string,
    first: number,
    erased: ReadonlyMap<string, number>,
  ): Promise<WritePlan> {
    const at = entryAt.settings(conversationId);
    const { value, unchanged } = await store.observe<ConversationSettings>(at);
    if (value === undefined) return { conditions: [], changes: [] };
    const { title, resetAfter, ...rest } = value;
    const isTitleGone = title !== undefined && (await isTitled(conversationId, first));
    const isResetMoved = resetAfter !== undefined && erased.has(resetAfter);
    if (!isTitleGone && !isResetMoved) return { conditions: [], changes: [] };
    const after = isResetMoved ? await findBefore(conversationId, erased.get(resetAfter)!) : resetAfter;
    const settings: ConversationSettings = {
      ...rest,
      ...(isTitleGone || title === undefined ? {} : { title }),
      ...(after === undefined ? {} : { resetAfter: after }),
    };
    return { conditions: [unchanged], changes: [{ kind: "set", at, value: settings, ttlMs: "kept" }] };
  }

  /** The id of the last message before a position that is left. */
  async function findBefore(conversationId: string, position: number): Promise<string | undefined> {
    for (let at = position - 1; at >= 0; at--) {
      const { space, key } = entryAt.slot(conversationId, at);
      const message = toMessage(await store.get<Slot>(space, key));
      if (message !== undefined) return message.id;
    }
    return undefined;
  }

  return {
    /** The questions of these events that are in the log, by key. */
    async find(
      conversationId: string,
      keys: readonly string[],
    ): Promise<{
      readonly messages: ReadonlyMap<string, StoredMessage>;
      readonly conditions: readonly WriteCondition[];
    }> {
      const messages = new Map<string, StoredMessage>();
      const conditions: WriteCondition[] = [];
      for (const key of keys) {
        const found = await findOne(conversationId, messageIds.user(key));
        conditions.push(...found.conditions);
        if (found.message !== undefined) messages.set(key, found.message);
      }
      return { messages, conditions };
    },

    /** The answer to a question whose earlier versions may quote it, if it has any. */
    async findOutdated(
      conversationId: string,
      turn: InboxRecord | undefined,
      key: string,
    ): Promise<StoredMessage | undefined> {
      const { message } = await findOne(conversationId, messageIds.answer(turn?.event.key ?? key));
      return message?.versions === undefined ? undefined : message;
    },

    /**
     * Replaces or erases questions, with the summary and the title that were made of them. The earlier
     * versions of an answer to an erased question go with it, because they may quote it.
     */
    async plan(
      conversationId: string,
      questions: ReadonlyMap<string, StoredMessage | "erased">,
      turnKey?: string,
    ): Promise<WritePlan> {
      const conditions: WriteCondition[] = [];
      const changes: Change[] = [];
      const positions: number[] = [];
      const erased = new Map<string, number>();
      for (const [key, question] of questions) {
        const { message, position } = await findOne(conversationId, messageIds.user(key));
        if (message === undefined || position === undefined) continue;
        positions.push(position);
        const value: Slot =
          question === "erased" ? ({ forgotten: true, id: message.id } satisfies Tombstone) : question;
        changes.push({ kind: "set", at: entryAt.slot(conversationId, position), value, ttlMs: "kept" });
        if (question === "erased") {
          erased.set(message.id, position);
          const answer = await findOne(conversationId, messageIds.answer(turnKey ?? key));
          if (answer.message?.versions !== undefined && answer.position !== undefined) {
            conditions.push(...answer.conditions);
            const at = entryAt.slot(conversationId, answer.position);
            changes.push({ kind: "set", at, value: withoutVersions(answer.message), ttlMs: "kept" });
          }
        }
      }
      const [first] = positions;
      if (first === undefined) return { conditions, changes };
      const summary = await planWithoutSummary(store, conversationId, positions);
      const settings = await planSettings(conversationId, Math.min(...positions), erased);
      return {
        conditions: [...conditions, ...summary.conditions, ...settings.conditions],
        changes: [...changes, ...summary.changes, ...settings.changes],
      };
    },

    /** Notes which messages of a platform show an answer, if it is stored. */
    async planShownAs(conversationId: string, id: string, shownAs: readonly string[]): Promise<WritePlan> {
      const { message, position, conditions } = await findOne(conversationId, id);
      if (message === undefined || position === undefined) return { conditions: [], changes: [] };
      if ((message.shownAs ?? []).join(" ") === shownAs.join(" ")) return { conditions: [], changes: [] };
      const at = entryAt.slot(conversationId, position);
      const value: Slot = { ...message, shownAs: [...shownAs] };
      return { conditions, changes: [{ kind: "set", at, value, ttlMs: "kept" }] };
    },

    /** The answer with the versions that it has in place of `before`. */
    replacing(
      answer: StoredMessage,
      before: StoredMessage,
      earlier: "erased" | "version" | "continued",
    ): StoredMessage {
      if (earlier === "erased") return answer;
      const isAnother = earlier === "version" && before.attempt !== answer.attempt;
      const versions = boundVersions([...(before.versions ?? []), ...(isAnother ? toVersions(before) : [])]);
      return versions.length === 0 ? answer : { ...answer, versions };
    },
  };
}
