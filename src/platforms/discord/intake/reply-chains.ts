import type { APIMessage } from "discord.js";
import type { Log } from "../../../core/telemetry.ts";
import { createRecent } from "../../../support/recent.ts";
import { toConversationId } from "../address.ts";
import { discordCode, errorCodes } from "../errors.ts";
import type { DiscordApi } from "../transport/api.ts";

/** How many questions have their conversation remembered. */
const maxEntries = 5000;
/** At most this many questions are read to find the first one of a chain that is not remembered. */
const maxReads = 30;

/**
 * Finds conversations without a thread. An answer in a channel replies to its question, and a reply to that
 * answer continues. The conversation has the id of the first question.
 */
export interface ReplyChains {
  /**
   * Returns the conversation that a reply to the bot's message `answer` continues, or `undefined` where it
   * answered no question, or none that is known.
   */
  find(answer: APIMessage): Promise<string | undefined>;
  /** Notes the conversation of a question. */
  note(questionId: string, conversationId: string): void;
  /** Returns the conversation of a question that was noted here. */
  conversationOf(questionId: string): string | undefined;
}

export function createReplyChains(options: {
  readonly api: Pick<DiscordApi, "getMessage">;
  readonly isKnown: (conversationId: string) => Promise<boolean>;
  /** Returns the conversation of a question of the last day. A chain of any length needs one look-up. */
  readonly acceptedIn: (questionId: string) => Promise<string | undefined>;
  readonly botId: () => string;
  readonly log: Log;
}): ReplyChains {
  const { api, isKnown, acceptedIn, botId, log } = options;
  const conversations = createRecent<string>(maxEntries);

  /** Returns the question that the bot answered before this one, or `undefined` for the first question. */
  async function questionBefore(channelId: string, questionId: string): Promise<string | undefined> {
    try {
      // Discord includes the message that is replied to, one level deep.
      const { referenced_message: before } = await api.getMessage(channelId, questionId);
      return before?.author.id === botId() ? before.message_reference?.message_id : undefined;
    } catch (error) {
      // A deleted question ends the chain.
      if (discordCode(error) !== errorCodes.unknownMessage)
        log.info({ channel: channelId, err: error }, "reply chain not readable");
      return undefined;
    }
  }

  return {
    async find(answer) {
      const questions: string[] = [];
      let questionId = answer.author.id === botId() ? answer.message_reference?.message_id : undefined;
      let conversationId: string | undefined;
      while (questionId !== undefined && conversationId === undefined && questions.length < maxReads) {
        questions.push(questionId);
        conversationId = conversations.get(questionId);
        if (conversationId !== undefined) break;
        conversationId = await acceptedIn(questionId);
        if (conversationId !== undefined) break;
        if (await isKnown(toConversationId(questionId))) conversationId = toConversationId(questionId);
        else questionId = await questionBefore(answer.channel_id, questionId);
      }
      if (conversationId !== undefined) for (const id of questions) conversations.set(id, conversationId);
      return conversationId;
    },
    note(questionId, conversationId) {
      conversations.set(questionId, conversationId);
    },
    conversationOf: (questionId) => conversations.get(questionId),
  };
}
