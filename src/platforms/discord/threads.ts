import { MessageFlags } from "discord.js";
import { LRUCache } from "lru-cache";
import { ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { OpenedThread } from "../../core/platform.ts";
import {
  toConversationId,
  isDirectType,
  isThreadable,
  isThreadType,
  toReplyAddress,
  type DiscordAddress,
} from "./address.ts";
import type { DiscordApi, SendOptions } from "./api.ts";
import { cut, toSentence } from "./content.ts";
import { errorCodes, discordCode } from "./errors.ts";

const maxTitleChars = 100;
const publicThread = 11;
/** How long a command waits for its thread. */
const maxWaitMs = 10_000;
/** Threads opened without a message that are remembered. */
const maxEntries = 500;

/** Opens threads. A second call for the same address returns the same thread. */
export interface Threads {
  /**
   * Opens the thread of a message, or finds it. Returns its id, which is the message's.
   * @throws ParleyError `platform-forbidden` with `detail.permission`; `platform-rejected`: no thread is possible
   */
  fromMessage(channelId: string, messageId: string, title: string, options?: SendOptions): Promise<string>;
  /** Opens the thread of an address. @throws ParleyError as {@link fromMessage} */
  open(address: DiscordAddress, title: string): Promise<OpenedThread>;
}

/** @see {@link Threads} */
export function createThreads(api: DiscordApi, log: Log): Threads {
  const opened = new LRUCache<string, string>({ max: maxEntries });

  async function fromMessage(
    channelId: string,
    messageId: string,
    title: string,
    options: SendOptions = { deadline: performance.now() + maxWaitMs },
  ): Promise<string> {
    try {
      return (await api.startThread(channelId, messageId, toThreadName(title), options)).id;
    } catch (error) {
      if (discordCode(error) === errorCodes.threadExists) return messageId;
      throw toPermissionError(error);
    }
  }

  /** A thread that belongs to no message; remembered by the event that it was opened for. */
  async function withoutMessage(address: DiscordAddress, title: string): Promise<string> {
    const key = address.interaction?.id ?? address.eventId;
    const known = key === undefined ? undefined : opened.get(key);
    if (known !== undefined) return known;
    try {
      const { id } = await api.startThread(address.channelId, undefined, toThreadName(title), {
        deadline: performance.now() + maxWaitMs,
      });
      if (key !== undefined) opened.set(key, id);
      return id;
    } catch (error) {
      throw toPermissionError(error);
    }
  }

  /** The thread of a command's public response. */
  async function fromInteraction(address: DiscordAddress, title: string): Promise<string> {
    const { interaction } = address;
    if (interaction === undefined || interaction.isPrivate) return withoutMessage(address, title);
    try {
      const original = await api.getFollowUp(interaction, "@original");
      if (((original.flags ?? 0) & MessageFlags.Loading) !== 0)
        await api.editFollowUp(interaction, "@original", toSentence(toThreadName(title)));
      return await fromMessage(address.channelId, original.id, title);
    } catch (error) {
      if (error instanceof ParleyError && error.code === "platform-forbidden") throw error;
      log.info({ err: error }, "command's message not available: opening the thread without it");
      return withoutMessage(address, title);
    }
  }

  return {
    fromMessage,
    async open(address, title) {
      const { channelId, channelType } = address;
      if (address.interaction?.isGuest === true) {
        throw new ParleyError("platform-forbidden", "the bot is not a member of this server", {
          detail: { permission: "to be added to this server" },
        });
      }
      if (isDirectType(channelType) || isThreadType(channelType)) {
        return {
          conversationId: toConversationId(channelId),
          address: toReplyAddress({ channelId, channelType }),
        };
      }
      if (!isThreadable(channelType)) {
        throw new ParleyError("platform-forbidden", "this type of channel has no threads", {
          detail: { permission: "threads, which this type of channel does not have" },
        });
      }
      const id =
        address.replyTo === undefined
          ? await fromInteraction(address, title)
          : await fromMessage(channelId, address.replyTo, title);
      return {
        conversationId: toConversationId(id),
        address: toReplyAddress({ channelId: id, channelType: publicThread }),
      };
    },
  };
}

/** Adds the missing permission: Discord returns the same code for all of them. */
function toPermissionError(error: unknown): unknown {
  const code = discordCode(error);
  if (code !== errorCodes.missingPermissions && code !== errorCodes.missingAccess) return error;
  const permission = code === errorCodes.missingAccess ? "View Channel" : "Create Public Threads";
  return new ParleyError("platform-forbidden", `no thread can be opened: ${permission} is missing`, {
    detail: { permission, discordCode: code },
  });
}

/** A title as Discord takes it: one line of 1 to 100 characters. */
export function toThreadName(title: string): string {
  const line = title.replaceAll(/\s+/g, " ").trim();
  if (line === "") return "Conversation";
  return line.length <= maxTitleChars ? line : `${cut(line, maxTitleChars - 1).trimEnd()}…`;
}
