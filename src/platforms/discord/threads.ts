import { MessageFlags } from "discord.js";
import { ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { OpenedThread } from "../../core/platform.ts";
import {
  conversationIdOf,
  isDirectType,
  isThreadable,
  isThreadType,
  toReplyAddress,
  type DiscordAddress,
} from "./address.ts";
import type { DiscordApi } from "./api.ts";
import { cut, toSentence } from "./content.ts";
import { codes, discordCode } from "./errors.ts";

const maxTitleChars = 100;
const publicThread = 11;
/** How many threads opened without a message are remembered. */
const rememberedThreads = 500;

/** Opens threads; the second call for the same place answers the first one's thread. */
export interface Threads {
  /**
   * The thread of a message: its id is the message's.
   * @throws ParleyError `platform-forbidden` with `detail.permission`, `platform-rejected` where there can be none
   */
  fromMessage(channelId: string, messageId: string, title: string): Promise<string>;
  /** @throws ParleyError as {@link fromMessage} */
  open(address: DiscordAddress, title: string): Promise<OpenedThread>;
}

export function createThreads(api: DiscordApi, log: Log): Threads {
  const opened = new Map<string, string>();

  async function fromMessage(channelId: string, messageId: string, title: string): Promise<string> {
    try {
      return (await api.startThread(channelId, messageId, toThreadName(title))).id;
    } catch (error) {
      if (discordCode(error) === codes.threadExists) return messageId;
      throw toPermissionError(error);
    }
  }

  async function withoutMessage(address: DiscordAddress, title: string): Promise<string> {
    const key = address.interaction?.id ?? address.eventId;
    const known = key === undefined ? undefined : opened.get(key);
    if (known !== undefined) return known;
    try {
      const { id } = await api.startThread(address.channelId, undefined, toThreadName(title));
      if (key !== undefined) opened.set(key, id);
      const [oldest] = opened.keys();
      if (opened.size > rememberedThreads && oldest !== undefined) opened.delete(oldest);
      return id;
    } catch (error) {
      throw toPermissionError(error);
    }
  }

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
      log.info({ err: error }, "the command's message is out of reach; the thread is opened without it");
      return withoutMessage(address, title);
    }
  }

  return {
    fromMessage,
    async open(address, title) {
      const { channelId, channelType } = address;
      if (address.interaction?.isGuest === true) {
        throw new ParleyError("platform-forbidden", "the bot is no member here", {
          detail: { permission: "to be added to this server" },
        });
      }
      if (isDirectType(channelType) || isThreadType(channelType)) {
        return {
          conversationId: conversationIdOf(channelId),
          address: toReplyAddress({ channelId, channelType }),
        };
      }
      if (!isThreadable(channelType)) {
        throw new ParleyError("platform-forbidden", "no threads in this type of channel", {
          detail: { permission: "threads, which this type of channel does not have" },
        });
      }
      const id =
        address.replyTo === undefined
          ? await fromInteraction(address, title)
          : await fromMessage(channelId, address.replyTo, title);
      return {
        conversationId: conversationIdOf(id),
        address: toReplyAddress({ channelId: id, channelType: publicThread }),
      };
    },
  };
}

/** Discord answers the same code for every permission: what is missing to open a thread is known here only. */
function toPermissionError(error: unknown): unknown {
  const code = discordCode(error);
  if (code !== codes.missingPermissions && code !== codes.missingAccess) return error;
  const permission = code === codes.missingAccess ? "View Channel" : "Create Public Threads";
  return new ParleyError("platform-forbidden", `no thread can be opened: ${permission} is missing`, {
    detail: { permission, discordCode: code },
  });
}

/** One line of 1 to 100 characters. */
export function toThreadName(title: string): string {
  const line = title.replaceAll(/\s+/g, " ").trim();
  if (line === "") return "Conversation";
  return line.length <= maxTitleChars ? line : `${cut(line, maxTitleChars - 1).trimEnd()}…`;
}
