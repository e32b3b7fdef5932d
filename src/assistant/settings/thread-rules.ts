import type { AnswerRule, AnswerTo } from "../../core/addressee.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Place } from "../../core/placement.ts";
import type { PlaceSettings } from "../../core/receiver.ts";
import type { Conversations, ConversationSettings, StoredMessage } from "../../core/storage.ts";
import { lastMessagesIn } from "./conversation-writers.ts";

/** What is stored of a thread, as far as it decides which messages are answered there. */
export interface ThreadState {
  readonly answerTo: AnswerTo;
  /** `undefined`: nothing that is stored says so, and whose it is the platform knows. */
  readonly isPeoples: boolean | undefined;
  readonly settings: Pick<ConversationSettings, "aside" | "room">;
  /** Resolves to the last messages, oldest first. */
  readonly messages: () => Promise<readonly StoredMessage[]>;
}

export type ThreadRules = ReturnType<typeof createThreadRules>;

/** In so many of the last messages it is looked for more than one person. */
const maxLooked = 50;
const maxLookedChars = 100_000;

/** Reads which messages are answered where. A conversation without a mark of people's is the bot's. */
export function createThreadRules(options: {
  readonly conversations: Pick<Conversations, "existing" | "recent" | "settings">;
  readonly inbox: Pick<Inbox, "openIn">;
  readonly rules: { readonly settingsOf: (place: Place) => Promise<PlaceSettings> };
}) {
  const { conversations, rules } = options;

  async function ofThread(conversationId: string, place: Place): Promise<ThreadState> {
    const [settings, { answerTo: ofChannel }] = await Promise.all([
      conversations.settings(conversationId),
      rules.settingsOf(place),
    ]);
    const { answerTo: given, room } = settings;
    const bounds = { settings, maxMessages: maxLooked, maxChars: maxLookedChars };
    const known = () => lastMessagesIn(options, conversationId, bounds);
    const messages = async () => (await known()) ?? [];
    const state = { answerTo: ofChannel, settings, messages };
    // Who was sent away is called back by a mention, whatever the channel has.
    if (given === "mentions") return { ...state, answerTo: sentAway(ofChannel), isPeoples: true };
    if (ofChannel === "all") return { ...state, isPeoples: false };
    if (given === undefined && room?.isPeoples === true) return { ...state, isPeoples: undefined };
    const found = await known();
    if (found === undefined) return { ...state, isPeoples: undefined };
    return { ...state, isPeoples: false, messages: () => Promise.resolve(found) };
  }

  return {
    /** When a person's question was sent that another process has accepted there and not yet answered. */
    async askedAt(conversationId: string, authorId: string): Promise<number | undefined> {
      const open = await options.inbox.openIn(conversationId);
      return open.findLast(({ event }) => event.author.id === authorId)?.event.sentAt;
    },
    ofChannel: (place: Place): Promise<PlaceSettings> => rules.settingsOf(place),
    ofThread,
    /** Which messages of a thread are answered. It is `undefined` where nothing of the thread is known. */
    async ruleIn(conversationId: string, place: Place): Promise<AnswerRule | undefined> {
      const { answerTo, isPeoples } = await ofThread(conversationId, place);
      return isPeoples === undefined ? undefined : { answerTo, isPeoples };
    },
  };
}

const sentAway = (ofChannel: AnswerTo): AnswerTo => (ofChannel === "mentions" ? ofChannel : "addressed");
