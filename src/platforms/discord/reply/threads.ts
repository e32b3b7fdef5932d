import { MessageFlags } from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { Log } from "../../../core/telemetry.ts";
import type { OpenedThread } from "../../../core/platform.ts";
import {
  toConversationId,
  isDirectType,
  isThreadable,
  holdsPosts,
  isThreadType,
  threadTypeIn,
  toReplyAddress,
  type DiscordAddress,
} from "../address.ts";
import type { DiscordApi } from "../transport/api.ts";
import type { SendOptions } from "../transport/delivery.ts";
import type { Directory } from "../transport/directory.ts";
import { cut, toSentence } from "./content.ts";
import { errorCodes, discordCode, withPermission } from "../errors.ts";
import { translate } from "../../../words/translate.ts";
import { createRecent } from "../../../support/recent.ts";

const maxTitleChars = 100;
/** How long a command waits for its thread. */
const maxWaitMs = 10_000;
/** How many threads opened without a message are remembered. */
const maxEntries = 500;

/** Opens threads. A second call for the same address returns the same thread. */
export interface Threads {
  /**
   * Opens the thread of a message, or finds it. Returns its id, which is the message's.
   * @throws ParleyError `platform-forbidden` with `detail.permission`, or `platform-rejected` where no thread
   *   is possible
   */
  fromMessage(channelId: string, messageId: string, title: string, options?: SendOptions): Promise<string>;
  /** Opens the thread of an address. @throws ParleyError as {@link fromMessage} */
  open(address: DiscordAddress, title: string): Promise<OpenedThread>;
  /** Makes an archived thread active. @throws ParleyError `platform-forbidden` where it is locked, too */
  unarchive(threadId: string): Promise<void>;
}

export function createThreads(
  api: DiscordApi,
  channels: Pick<Directory, "archiveMinutesOf">,
  log: Log,
  clock: Clock,
): Threads {
  const opened = createRecent<string>(maxEntries);

  async function fromMessage(
    channelId: string,
    messageId: string,
    title: string,
    options: SendOptions = { deadline: clock.monotonic() + maxWaitMs },
  ): Promise<string> {
    try {
      const archiveMinutes = await channels.archiveMinutesOf(channelId);
      const thread = { name: toThreadName(title), archiveMinutes };
      return (await api.startThread(channelId, messageId, thread, options)).id;
    } catch (error) {
      if (discordCode(error) === errorCodes.threadExists) return messageId;
      throw toPermissionError(error);
    }
  }

  /** Opens a thread that belongs to no message. It is remembered by the event that it was opened for. */
  async function withoutMessage(address: DiscordAddress, title: string): Promise<string> {
    const key = address.interaction?.id ?? address.eventId;
    const known = key === undefined ? undefined : opened.get(key);
    if (known !== undefined) return known;
    try {
      const archiveMinutes = await channels.archiveMinutesOf(address.channelId);
      const thread = { name: toThreadName(title), archiveMinutes, type: threadTypeIn(address.channelType) };
      const { id } = await api.startThread(address.channelId, undefined, thread, {
        deadline: clock.monotonic() + maxWaitMs,
      });
      if (key !== undefined) opened.set(key, id);
      return id;
    } catch (error) {
      throw toPermissionError(error);
    }
  }

  /** Opens the thread of a command's public response. */
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

  /** Adds the caller, who sees a thread in the list of channels only then. Nobody waits for this. */
  function addCaller(threadId: string, { interaction }: DiscordAddress): void {
    if (interaction === undefined) return;
    api
      .addToThread(threadId, interaction.userId)
      .catch((error: unknown) =>
        log.warn({ channel: threadId, err: error }, "caller not added to the thread"),
      );
  }

  return {
    async unarchive(threadId) {
      try {
        await api.unarchiveThread(threadId);
      } catch (error) {
        if (!isParleyError(error, "platform-forbidden")) throw error;
        throw new ParleyError("platform-forbidden", "the thread is archived and locked");
      }
    },
    fromMessage,
    async open(address, title) {
      const { channelId, channelType } = address;
      if (isDirectType(channelType) || isThreadType(channelType)) {
        return {
          conversationId: toConversationId(channelId),
          address: toReplyAddress({ channelId, channelType, ...firstEventOf(address) }),
          ...(isThreadType(channelType) ? { isPeoples: true } : {}),
        };
      }
      if (!isThreadable(channelType)) {
        throw new ParleyError("platform-forbidden", "this type of channel has no threads", {
          detail: {
            permission: holdsPosts(channelType)
              ? translate("discord.lacks-post")
              : translate("discord.lacks-threads"),
          },
        });
      }
      const id =
        address.replyTo === undefined
          ? await fromInteraction(address, title)
          : await fromMessage(channelId, address.replyTo, title);
      addCaller(id, address);
      return {
        conversationId: toConversationId(id),
        address: toReplyAddress({
          channelId: id,
          channelType: threadTypeIn(channelType),
          ...firstEventOf(address),
        }),
      };
    },
  };
}

/** Returns an id for the first message that a command has opened: its reply has nonces of its own. */
function firstEventOf({ interaction }: DiscordAddress): Pick<DiscordAddress, "eventId"> {
  return interaction === undefined ? {} : { eventId: `${interaction.id}f` };
}

/** Adds the missing permission. Discord returns the same code for all of them. */
function toPermissionError(error: unknown): unknown {
  const code = discordCode(error);
  if (code === errorCodes.tooManyThreads)
    return new ParleyError("platform-forbidden", "the server has as many active threads as Discord allows", {
      detail: {
        permission: translate("discord.lacks-room"),
        discordCode: code,
      },
    });
  return withPermission(error, "Create Public Threads");
}

/** Returns a title as Discord takes it: one line of 1 to 100 characters. */
export function toThreadName(title: string): string {
  const line = title.replaceAll(/\s+/g, " ").trim();
  if (line === "") return translate("discord.conversation");
  return line.length <= maxTitleChars ? line : `${cut(line, maxTitleChars - 1).trimEnd()}…`;
}
