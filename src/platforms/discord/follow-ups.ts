import type { APIMessage, RawFile } from "discord.js";
import { isParleyError } from "../../core/errors.ts";
import type { InteractionAddress } from "./address.ts";
import type { DiscordApi, PostOptions } from "./api.ts";
import type { DiscordContent } from "./content.ts";

/** Messages that are searched for a lost follow-up. */
const maxRead = 50;

/** How a follow-up is posted. */
export interface FollowUpHow extends PostOptions {
  readonly files: readonly RawFile[];
  /** The same for each attempt at one message. */
  readonly attemptKey: string;
}

/** Posts the follow-ups of one interaction. */
export interface FollowUps {
  /** The bot's message; where the response to an earlier attempt was lost, the one that this attempt posted. */
  post(body: DiscordContent, how: FollowUpHow): Promise<APIMessage>;
  /** Notes a message of the interaction that was not posted here. */
  note(messageId: string): void;
}

/**
 * Follow-ups have no nonce: an attempt whose response was lost may have posted its message. Before the next attempt it is
 * searched for, where the bot can read the channel.
 */
export function createFollowUps(options: {
  readonly api: Pick<DiscordApi, "followUp" | "listMessages">;
  readonly channelId: string;
  readonly interaction: InteractionAddress;
  /** An earlier process may have posted some and not saved them. */
  readonly isResumed: boolean;
}): FollowUps {
  const { api, channelId, interaction, isResumed } = options;
  const known = new Set<string>();
  /** Attempts whose outcome is not known. */
  const uncertain = new Set<string>();

  async function findLost(body: DiscordContent, files: readonly RawFile[]): Promise<APIMessage | undefined> {
    // Only its caller sees the messages, or the bot is not a member.
    if (interaction.isPrivate || interaction.isGuest) return undefined;
    const messages = await api.listMessages(channelId, { after: interaction.id, limit: maxRead });
    return messages.find(
      (message) =>
        message.interaction_metadata?.id === interaction.id &&
        !known.has(message.id) &&
        message.attachments.length === files.length &&
        message.attachments.every(({ filename, size }, index) => isOf(files[index], filename, size)) &&
        (files.length > 0 || message.content === body.content.trim()),
    );
  }

  return {
    async post(body, { files, attemptKey, ...how }) {
      // Texts have their places in the saved address.
      const mayBePosted = uncertain.has(attemptKey) || (isResumed && files.length > 0);
      const found = mayBePosted ? await findLost(body, files) : undefined;
      try {
        const message = found ?? (await api.followUp(interaction, body, { ...how, files }));
        known.add(message.id);
        uncertain.delete(attemptKey);
        return message;
      } catch (error) {
        const isLost = isParleyError(error, "platform-unreachable") && error.retryAfterMs === undefined;
        if (isLost) uncertain.add(attemptKey);
        throw error;
      }
    },
    note: (messageId) => void known.add(messageId),
  };
}

function isOf(file: RawFile | undefined, filename: string, size: number): boolean {
  return file?.name === filename && (file.data as Uint8Array).length === size;
}
