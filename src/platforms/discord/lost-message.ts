import type { APIMessage } from "discord.js";
import type { DiscordAddress } from "./address.ts";
import type { DiscordApi } from "./api.ts";
import { discordCode, errorCodes } from "./errors.ts";
import type { MessageRef } from "./message-ref.ts";

/** Messages that are read of a channel. */
const maxMessages = 50;
const unreadable: ReadonlySet<number> = new Set([
  errorCodes.unknownChannel,
  errorCodes.missingAccess,
  errorCodes.missingPermissions,
]);

/**
 * The first message of a reply, where an earlier run posted it and ended before it was saved. Nonces find it too, but
 * only for a few minutes. In the channel it replies to the question; in a thread or direct messages, where turns run
 * one after another, it is the bot's first message since the run began.
 * @param isOther whether a message is not the bot's, or one of another reply of this process
 * @param shownByOthers which of these messages show other turns, of whichever process
 */
export async function findLostMessage(
  api: Pick<DiscordApi, "listMessages">,
  { channelId, replyTo, thread, postedAfter, messages = [], interaction }: DiscordAddress,
  {
    isOther,
    shownByOthers,
  }: {
    readonly isOther: (message: APIMessage) => boolean;
    readonly shownByOthers: (messageIds: readonly string[]) => Promise<readonly string[]>;
  },
): Promise<MessageRef | undefined> {
  if (postedAfter === undefined || messages.length > 0 || interaction !== undefined) return undefined;

  async function find(where: string, isOurs: (message: APIMessage) => boolean) {
    const read = await readMessages(api, where, postedAfter ?? "0");
    const candidates = read.filter((message) => !isOther(message) && isOurs(message)).map(({ id }) => id);
    const others = candidates.length === 0 ? [] : await shownByOthers(candidates);
    const found = candidates.findLast((id) => !others.includes(id));
    return found === undefined ? undefined : { channelId: where, messageId: found, isOwn: true };
  }

  if (replyTo === undefined) return find(channelId, isPlain);
  return (
    (await find(channelId, (message) => message.message_reference?.message_id === replyTo)) ??
    // The thread of a message has its id.
    (thread === undefined ? undefined : await find(replyTo, isPlain))
  );
}

async function readMessages(
  api: Pick<DiscordApi, "listMessages">,
  channelId: string,
  after: string,
): Promise<APIMessage[]> {
  try {
    return await api.listMessages(channelId, { after, limit: maxMessages });
  } catch (error) {
    if (unreadable.has(discordCode(error) ?? 0)) return [];
    throw error;
  }
}

/** Neither a refusal, which is a reply, nor a command's message, nor one with files. */
function isPlain(message: APIMessage): boolean {
  return (
    message.message_reference === undefined &&
    message.webhook_id === undefined &&
    message.attachments.length === 0
  );
}
