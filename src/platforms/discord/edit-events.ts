import type { APIMessage, GatewayMessageUpdateDispatchData } from "discord.js";
import type { EditedMessage, Receiver } from "../../core/platform.ts";
import { fromReplyAddress, toConversationId, toEventKey, toReplyAddress } from "./address.ts";
import type { DiscordApi } from "./api.ts";
import { mentionsBot, toPlainText, type Names } from "./incoming.ts";
import { isFromPerson, type MessageEvents } from "./message-events.ts";
import type { OrderedChanges } from "./ordered-changes.ts";
import type { ReplyChains } from "./reply-chains.ts";

/** A mention that is edited into a message later is not a question any more, in milliseconds. */
const maxForgottenMs = 10 * 60_000;

/** A message as the gateway or a history shows it. Updates may have a part of the fields only. */
type Update = Partial<GatewayMessageUpdateDispatchData> & Pick<APIMessage, "id" | "channel_id">;
type Whole = GatewayMessageUpdateDispatchData;

/** Handles edited messages. */
export interface EditEvents {
  /**
   * A message that may have been edited: MESSAGE_UPDATE, which Discord also sends for previews, pins and threads, or a
   * message of a history. Contract: must not throw.
   */
  message(update: Update): void;
}

/**
 * Reports edits of people and other apps to the receiver. An edit by which somebody adds a forgotten mention makes the
 * message a new one. Edits while the bot is offline are not delivered: those of messages that are read then anyway are found.
 */
export function createEditEvents(options: {
  readonly api: Pick<DiscordApi, "getMessage">;
  readonly receiver: Pick<Receiver, "messageEdited">;
  readonly chains: Pick<ReplyChains, "conversationOf">;
  readonly events: Pick<MessageEvents, "contentOf">;
  readonly names: (guildId: string | undefined) => Names;
  readonly changes: OrderedChanges;
  /** Takes a message as if it had been sent now. */
  readonly takeNew: (message: Whole) => void;
}): EditEvents {
  const { api, receiver, chains, events, changes } = options;

  async function report(message: Whole, editedAt: number): Promise<void> {
    const { id, channel_id: channelId } = message;
    const names = options.names(message.guild_id);
    const conversations = [toConversationId(channelId), toConversationId(id), chains.conversationOf(id)];
    const edited: EditedMessage = {
      key: toEventKey(id),
      editedAt,
      conversationIds: [...new Set(conversations.filter((one) => one !== undefined))],
      read: async (before) => events.contentOf(message, names, before),
      toAddress(address, { text }) {
        const { thread, ...rest } = fromReplyAddress(address);
        const title = toPlainText(message, names) || text;
        return thread === undefined ? address : toReplyAddress({ ...rest, thread: { ...thread, title } });
      },
    };
    const outcome = await receiver.messageEdited(edited);
    const isFresh = editedAt - Date.parse(message.timestamp) <= maxForgottenMs;
    if (outcome === "unknown" && isFresh && isFromPerson(message) && mentionsBot(message, names))
      options.takeNew(message);
  }

  async function complete(update: Update): Promise<Whole> {
    const { content, author, mentions } = update;
    if (content !== undefined && author !== undefined && mentions !== undefined) return update as Whole;
    const { guild_id: guildId } = update;
    const message = await api.getMessage(update.channel_id, update.id);
    return guildId === undefined ? message : { ...message, guild_id: guildId };
  }

  return {
    message(update) {
      const editedAt = toTime(update.edited_timestamp);
      if (editedAt === undefined) return;
      // The bot changes its own messages all the time.
      if (update.author?.id === options.names(update.guild_id).botId) return;
      changes.pass(
        update.channel_id,
        async () => {
          const message = await complete(update);
          if (isFromPerson(message) || isFromApp(message, options.names(message.guild_id).botId))
            await report(message, editedAt);
        },
        "edit not applied: the earlier words are still stored",
      );
    },
  };
}

/** Whether a message of a history was edited by the person or the other app that wrote it. */
export function isEdited({ author, edited_timestamp: editedAt }: APIMessage, botId: string): boolean {
  return author.id !== botId && toTime(editedAt) !== undefined;
}

/** Whether another bot or a webhook posted it. */
function isFromApp({ author, webhook_id: webhookId }: APIMessage, botId: string): boolean {
  return (author.bot === true || webhookId !== undefined) && author.id !== botId;
}

function toTime(timestamp: string | null | undefined): number | undefined {
  const time = Date.parse(timestamp ?? "");
  return Number.isNaN(time) ? undefined : time;
}
