import type { Asker } from "../core/access.ts";
import type { Inbox } from "../core/inbox.ts";
import { messageIds } from "../core/message-ids.ts";
import type { ConversationHistory, OpenQuestion } from "../core/receiver.ts";
import type { Archive, ConversationLists, ConversationQueue, Conversations } from "../core/storage.ts";
import { createBranch } from "./actions/branch.ts";
import { toShownMessages } from "./turn/stored-messages.ts";

interface HistoryOptions {
  readonly conversations: Conversations;
  readonly lists: ConversationLists;
  readonly archive: Pick<Archive, "exportConversation">;
  readonly inbox: Inbox;
  readonly restored?: ConversationHistory["restored"];
  readonly queue: ConversationQueue;
  /** @throws ParleyError `access-denied` */
  readonly expectAllowed: (by: Asker) => Promise<void>;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
}

/** The default limit for a list of conversations. */
const maxListed = 200;
const maxNameChars = 100;

/** The history as people see it, with only the last attempt of each turn. @see {@link ConversationHistory} */
export function createConversationHistory(options: HistoryOptions): ConversationHistory {
  const { conversations, lists, archive, inbox, restored, expectAllowed } = options;
  const exists = async (id: string): Promise<boolean> => (await conversations.existing([id])).length > 0;
  return {
    restored,
    // A conversation whose first message was just accepted has no messages until its turn stores them.
    knows: async (conversationId) =>
      (await exists(conversationId)) || (await inbox.openIn(conversationId)).length > 0,
    async conversationOf(key) {
      const [record] = await inbox.read([key]);
      return record === undefined || record.state === "erased" ? undefined : record.event.conversationId;
    },
    async history(conversationId, { maxMessages }) {
      return toShownMessages(await conversations.recent(conversationId, { maxMessages }));
    },
    question: (conversationId, key) => conversations.find(conversationId, messageIds.user(key)),
    async openQuestions(conversationId) {
      const open = await inbox.openIn(conversationId);
      const joinedKeys = open.flatMap(
        ({ event, turn }) => turn?.keys.filter((key) => key !== event.key) ?? [],
      );
      const joined = joinedKeys.length === 0 ? [] : await inbox.read(joinedKeys);
      return open.flatMap((record): OpenQuestion[] => {
        const { event, turn } = record;
        if (turn === undefined) return [{ event, hasBegun: false }];
        const asked = turn.keys.flatMap((key) =>
          [record, ...joined].filter((one) => one.event.key === key && one.state !== "erased"),
        );
        return asked.map((one) => ({ event: one.event, hasBegun: true }));
      });
    },
    async ends(keys) {
      const records = keys.length === 0 ? [] : await inbox.read(keys);
      return new Map(
        records.flatMap(({ event, state, turn }) =>
          turn !== undefined && (state === "over" || (state === "ending" && turn.end?.isStored === true))
            ? [[event.key, { attempt: turn.attempt, end: turn.end }] as const]
            : [],
        ),
      );
    },
    conversations: (prefix, query) => lists.list(prefix, { max: maxListed, ...query }),
    export: (conversationId) => archive.exportConversation(conversationId),
    search: (prefix, search) => lists.search(prefix, search),
    readBlob: (conversationId, hash) => conversations.getBlob(conversationId, hash),
    branch: createBranch(options),
    async label(conversationId, { name, isPinned }, by) {
      await expectAllowed(by);
      if (!(await exists(conversationId))) return false;
      await conversations.saveSettings(conversationId, {
        ...(name === undefined ? {} : { name: toName(name) }),
        ...(isPinned === undefined ? {} : { isPinned: isPinned || undefined }),
      });
      return true;
    },
  };
}

/** Puts the name on one line. It is `undefined` if nothing is left. */
function toName(text: string): string | undefined {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line === "" ? undefined : Array.from(line).slice(0, maxNameChars).join("");
}
