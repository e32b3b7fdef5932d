import type { APIMessage, GatewayMessageUpdateDispatchData } from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { Receiver, EditedMessage } from "../../../core/receiver.ts";
import type { Log } from "../../../core/telemetry.ts";
import { sleepUnlessAborted } from "../../../support/clock.ts";
import { createKeyedQueue } from "../../../support/queues.ts";
import {
  toChannelPlace,
  toConversationId,
  toEventKey,
  toGuildPlace,
  fromReplyAddress,
  toReplyAddress,
} from "../address.ts";
import type { DiscordApi } from "../transport/api.ts";
import type { Directory } from "../transport/directory.ts";
import { toPlainText, type Names } from "./incoming.ts";
import { isFromApp, isFromPerson, type MessageEvents } from "./message-events.ts";
import type { ReplyChains } from "./reply-chains.ts";

/** After this time, an edit makes no question of a message that was none, in milliseconds. */
const maxForgottenMs = 10 * 60_000;

/** A message as the gateway or a history shows it. Updates may have only a part of the fields. */
type Update = Partial<GatewayMessageUpdateDispatchData> & Pick<APIMessage, "id" | "channel_id">;
type Whole = GatewayMessageUpdateDispatchData;

/** Handles edited messages. */
interface EditEvents {
  /**
   * Takes a message that may have been edited. It comes from a history or from MESSAGE_UPDATE, which Discord
   * also sends for previews, pins and threads. Contract: must not throw.
   */
  message(update: Update): void;
}

/**
 * Reports edits of people and other apps to the receiver. An edit that adds a forgotten mention of the bot,
 * or takes away one of somebody else, makes the message a new one. Edits while the bot is offline are not
 * delivered. They are found only in messages that are read then anyway.
 */
export function createEditEvents(options: {
  readonly api: Pick<DiscordApi, "getMessage">;
  readonly receiver: Pick<Receiver, "changed" | "receive">;
  readonly chains: Pick<ReplyChains, "conversationOf">;
  readonly events: Pick<MessageEvents, "contentOf" | "asideOf">;
  readonly names: (guildId: string | undefined) => Names;
  readonly changes: OrderedChanges;
  /** Whether nothing of a message can be stored, because it was not for the bot. */
  readonly wasAside: (messageId: string) => boolean;
  /** Takes a message, if it is for the bot, as if it had been sent now. */
  readonly takeNew: (message: Whole) => void;
}): EditEvents {
  const { api, receiver, chains, events, changes } = options;

  async function report(message: Whole, editedAt: number): Promise<void> {
    const { id, channel_id: channelId } = message;
    const names = options.names(message.guild_id);
    const conversations = [toConversationId(channelId), toConversationId(id), chains.conversationOf(id)];
    let aside: Awaited<ReturnType<MessageEvents["asideOf"]>>;
    const edited: EditedMessage = {
      kind: "edit",
      key: toEventKey(id),
      editedAt,
      conversationIds: [...new Set(conversations.filter((one) => one !== undefined))],
      async read(before) {
        const content = events.contentOf(message, names, before);
        if (content === undefined) return undefined;
        aside = await events.asideOf(message, names, before.wasAsked === true);
        return aside === undefined ? content : { ...content, isAside: true };
      },
      toAddress(address, { text }) {
        const { thread, ...rest } = fromReplyAddress(address);
        const title = toPlainText(message, names) || text;
        return thread === undefined ? address : toReplyAddress({ ...rest, thread: { ...thread, title } });
      },
    };
    const outcome = options.wasAside(id) ? "unknown" : await receiver.changed(edited);
    if (outcome === "changed" && typeof aside === "object") await receiver.receive(aside);
    const isFresh = editedAt - Date.parse(message.timestamp) <= maxForgottenMs;
    if (outcome === "unknown" && isFresh && isFromPerson(message)) options.takeNew(message);
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

function toTime(timestamp: string | null | undefined): number | undefined {
  const time = Date.parse(timestamp ?? "");
  return Number.isNaN(time) ? undefined : time;
}

const left = "deletion not applied: the deleted content is still stored";

/** Handles the gateway's deletion events, which contain only ids. Contract: none of the handlers throws. */
interface DeletionEvents {
  /** Handles MESSAGE_DELETE and MESSAGE_DELETE_BULK. */
  messages(channelId: string, messageIds: readonly string[]): void;
  /** Handles THREAD_DELETE and CHANNEL_DELETE. There are no events for the threads of a deleted channel. */
  channel(channelId: string): void;
  /** Handles GUILD_DELETE when the server was deleted or the bot removed from it, but not an outage. */
  guild(guildId: string): void;
}

/** Passes deletions on to the receiver. Deletions while the bot is offline are never delivered. */
export function createDeletionEvents(options: {
  readonly receiver: Receiver;
  readonly channels: Directory;
  readonly chains: Pick<ReplyChains, "conversationOf">;
  readonly changes: OrderedChanges;
}): DeletionEvents {
  const { receiver, channels, chains, changes } = options;

  /** Groups the messages by other conversations: a mention in a channel begins the thread with its id. */
  function otherConversations(messageIds: readonly string[]): ReadonlyMap<string, readonly string[]> {
    const others = new Map<string, string[]>();
    for (const id of messageIds) {
      for (const conversationId of new Set([toConversationId(id), chains.conversationOf(id)])) {
        if (conversationId === undefined) continue;
        others.set(conversationId, [...(others.get(conversationId) ?? []), toEventKey(id)]);
      }
    }
    return others;
  }

  return {
    messages(channelId, messageIds) {
      const keys = messageIds.map((id) => toEventKey(id));
      const apply = () =>
        receiver.changed({
          kind: "delete-messages",
          conversationId: toConversationId(channelId),
          keys,
          others: otherConversations(messageIds),
        });
      changes.pass(channelId, apply, left);
    },
    channel(channelId) {
      channels.forget(channelId);
      const apply = async (): Promise<void> => {
        await receiver.changed({ kind: "delete-conversation", conversationId: toConversationId(channelId) });
        await receiver.changed({ kind: "delete-place", place: toChannelPlace(channelId) });
      };
      changes.pass(channelId, apply, left);
    },
    guild(guildId) {
      changes.pass(
        guildId,
        () => receiver.changed({ kind: "delete-place", place: toGuildPlace(guildId) }),
        left,
      );
    },
  };
}

const retryMs = 5000;
const maxAttempts = 24;

/** Passes on what people change afterwards: edits and deletions. */
interface OrderedChanges {
  /**
   * Runs `apply` after the earlier messages and changes of the channel or server. Discord sends each change
   * once, so `apply` is repeated for two minutes while the store is unavailable. `left` is logged where it
   * fails. Contract: must not throw.
   */
  pass(id: string, apply: () => Promise<unknown>, left: string): void;
}

export function createOrderedChanges(options: {
  /** Resolves when the receiver has all earlier messages of the channel. */
  readonly caughtUp: (channelId: string) => Promise<void>;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
}): OrderedChanges {
  const { signal, clock, log } = options;
  const queue = createKeyedQueue();

  async function run(id: string, apply: () => Promise<unknown>, left: string): Promise<void> {
    await options.caughtUp(id);
    for (let attempt = 1; ; attempt += 1) {
      try {
        await apply();
        return;
      } catch (error) {
        if (signal.aborted || attempt >= maxAttempts || !isParleyError(error, "store-unavailable")) {
          log.error({ id, err: error }, left);
          return;
        }
        await sleepUnlessAborted(retryMs, signal, clock);
      }
    }
  }

  return {
    pass(id, apply, left) {
      void queue.run(id, () => run(id, apply, left));
    },
  };
}
