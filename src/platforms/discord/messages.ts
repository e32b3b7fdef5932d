import type { APIMessage, GatewayMessageCreateDispatchData } from "discord.js";
import { ParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { IncomingMessage } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Receiver } from "../../core/platform.ts";
import {
  conversationIdOf,
  isDirectType,
  isThreadable,
  isThreadType,
  keyOfMessage,
  placesAround,
  toReplyAddress,
  type DiscordAddress,
} from "./address.ts";
import type { DiscordApi } from "./api.ts";
import { toSentence } from "./content.ts";
import { mentionsBot, quote, readMessage, toAuthor, type Names } from "./incoming.ts";
import type { Places } from "./channel-cache.ts";

/** Ordinary messages and replies; everything else is the platform talking about itself. */
const spoken: ReadonlySet<number> = new Set([0, 19]);

export interface MessageOptions {
  readonly api: DiscordApi;
  readonly receiver: Receiver;
  readonly places: Places;
  readonly names: (guildId: string | undefined) => Names;
  readonly log: Log;
}

/** Takes in MESSAGE_CREATE events, those of one channel one after another. */
export interface MessageIntake {
  take(message: GatewayMessageCreateDispatchData): void;
  /** Resolves when what was taken in a channel so far is with the receiver. */
  caughtUp(channelId: string): Promise<void>;
  /** Resolves when everything taken so far is with the receiver. */
  idle(): Promise<void>;
}

export function createMessageIntake(options: MessageOptions): MessageIntake {
  const { api, receiver, places, log } = options;
  const lines = new Map<string, Promise<void>>();

  async function handle(message: GatewayMessageCreateDispatchData): Promise<void> {
    const names = options.names(message.guild_id);
    try {
      const turn = await toTurn(message, names);
      if (turn === undefined) return;
      await receiver.receive(turn);
      places.open(turn.conversationId);
    } catch (error) {
      log.error({ message: message.id, err: error }, "a message could not be taken in");
      if (error instanceof ParleyError && error.code === "stopping") return;
      if (!(await isSurelyForBot(message, names))) return;
      // Discord does not deliver it again: the person must know that nothing will come. Of several instances that
      // say so, the nonce has one be heard.
      await api.createMessage(message.channel_id, {
        ...toSentence(toNotice(error)),
        message_reference: { message_id: message.id, fail_if_not_exists: false },
        nonce: message.id,
        enforce_nonce: true,
      });
    }
  }

  /** Whether it is for the bot, as far as can be told without the store. */
  async function isSurelyForBot(message: GatewayMessageCreateDispatchData, names: Names): Promise<boolean> {
    if (!isSpokenByPerson(message)) return false;
    if (mentionsBot(message, names) || places.isOpen(conversationIdOf(message.channel_id))) return true;
    return isDirectType(await places.typeOf(message));
  }

  /** The turn a message asks for; `undefined`: it is not for the bot. */
  async function toTurn(
    message: GatewayMessageCreateDispatchData,
    names: Names,
  ): Promise<IncomingMessage | undefined> {
    if (!isSpokenByPerson(message)) return undefined;
    const channelType = await places.typeOf(message);
    const isCalled = isDirectType(channelType) || mentionsBot(message, names);
    const address = { channelId: message.channel_id, channelType, eventId: message.id };
    if (isDirectType(channelType) || isThreadType(channelType)) {
      const conversationId = conversationIdOf(message.channel_id);
      if (!isCalled && !(await isOurs(message.channel_id, conversationId))) return undefined;
      const isKnown = await receiver.knows(conversationId);
      const parent =
        isKnown || !isThreadType(channelType) ? undefined : await places.parentOf(message.channel_id);
      return {
        ...toMessage(message, names, conversationId, address, isKnown),
        ...placesAround(message.guild_id, [message.channel_id, parent]),
      };
    }
    if (!isCalled) return undefined;
    return toChannelTurn(message, names, address);
  }

  async function isOurs(channelId: string, conversationId: string): Promise<boolean> {
    if (places.isOpen(conversationId) || (await receiver.knows(conversationId))) return true;
    return (await places.ownerOf(channelId)) === options.names(undefined).botId;
  }

  /** A call in a channel opens a thread; a reply to an answer that could not be put into one goes on with it. */
  async function toChannelTurn(
    message: GatewayMessageCreateDispatchData,
    names: Names,
    address: DiscordAddress,
  ): Promise<IncomingMessage> {
    const replied = message.referenced_message;
    const begunBy = replied?.author.id === names.botId ? replied.message_reference?.message_id : undefined;
    if (begunBy !== undefined) {
      const conversationId = conversationIdOf(begunBy);
      if (places.isOpen(conversationId) || (await receiver.knows(conversationId)))
        return toMessage(message, names, conversationId, { ...address, replyTo: message.id }, true);
    }
    const { text } = readMessage(message, names);
    return toMessage(
      message,
      names,
      conversationIdOf(message.id),
      {
        ...address,
        replyTo: message.id,
        ...(isThreadable(address.channelType) ? { thread: { title: text } } : {}),
      },
      false,
    );
  }

  function toMessage(
    message: GatewayMessageCreateDispatchData,
    names: Names,
    conversationId: string,
    address: DiscordAddress,
    isKnown: boolean,
  ): IncomingMessage {
    const { text, attachments } = readMessage(message, names);
    // What it replies to is part of the question, unless the conversation holds it already.
    const replied = isKnown ? undefined : (message.referenced_message ?? undefined);
    const quoted = replied === undefined ? undefined : readReplied(replied, names);
    const whole = [quoted?.text ?? "", text].filter((part) => part !== "").join("\n\n");
    const files = [...attachments, ...(quoted?.attachments ?? [])];
    return {
      kind: "message",
      key: keyOfMessage(message.id),
      platform: "discord",
      conversationId,
      author: toAuthor(message.author, message.member),
      sentAt: Date.parse(message.timestamp),
      address: toReplyAddress(address),
      ...placesAround(message.guild_id, [message.channel_id]),
      text: whole === "" && files.length === 0 ? `@${names.botName}` : whole,
      attachments: files,
    };
  }

  return {
    take(message) {
      const line = message.channel_id;
      const before = lines.get(line) ?? Promise.resolve();
      const mine = before
        .then(() => handle(message))
        .catch((error: unknown) =>
          log.error({ message: message.id, err: error }, "a message was not handled"),
        )
        .finally(() => {
          if (lines.get(line) === mine) lines.delete(line);
        });
      lines.set(line, mine);
    },
    caughtUp: (channelId) => lines.get(channelId) ?? Promise.resolve(),
    async idle() {
      while (lines.size > 0) await Promise.all(lines.values());
    },
  };
}

function isSpokenByPerson({ author, type, webhook_id: webhookId }: APIMessage): boolean {
  return author.bot !== true && author.system !== true && webhookId === undefined && spoken.has(type);
}

function readReplied(replied: APIMessage, names: Names) {
  const { text, attachments } = readMessage(replied, names);
  return { text: quote(`${toAuthor(replied.author).name} wrote`, text), attachments };
}
