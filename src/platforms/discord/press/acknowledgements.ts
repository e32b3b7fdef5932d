import { InteractionResponseType, type APIMessage, type RawFile, type APIInteraction } from "discord.js";
import { toNotice } from "../../../core/error-messages.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { Log } from "../../../core/telemetry.ts";
import type { InteractionAddress } from "../address.ts";
import type { DiscordApi, PostOptions, InteractionToken } from "../transport/api.ts";
import { type DiscordContent, toPrivateSentence } from "../reply/content.ts";
import { errorCodes, discordCode } from "../errors.ts";

/** Acknowledges interactions. While a shard changes hands two hear each, and Discord takes one response. */
export interface Acknowledgements {
  /**
   * Sends a response. Returns whether Discord took it, which it does not where it came second or too late.
   * Contract: must not throw.
   * @param body the response, as Discord's API has it
   */
  send(interaction: Pick<APIInteraction, "id" | "token">, body: unknown): Promise<boolean>;
  /** Tells only the person something. Returns as {@link send}. */
  tell(interaction: Pick<APIInteraction, "id" | "token">, text: string): Promise<boolean>;
  /** Tells only the person why the interaction is refused. */
  refuse(interaction: Pick<APIInteraction, "id" | "token">, error: unknown): Promise<void>;
}

export function createAcknowledgements(options: {
  readonly api: Pick<DiscordApi, "respond">;
  readonly log: Log;
}): Acknowledgements {
  const { api, log } = options;

  async function send(interaction: Pick<APIInteraction, "id" | "token">, body: unknown): Promise<boolean> {
    try {
      await api.respond(interaction.id, interaction.token, body);
      return true;
    } catch (error) {
      if (discordCode(error) !== errorCodes.alreadyAcknowledged)
        log.warn({ interaction: interaction.id, err: error }, "interaction not acknowledged");
      return false;
    }
  }

  const tell: Acknowledgements["tell"] = (interaction, text) =>
    send(interaction, {
      type: InteractionResponseType.ChannelMessageWithSource,
      data: toPrivateSentence(text),
    });

  return {
    send,
    tell,
    async refuse(interaction, error) {
      await tell(interaction, toNotice(error));
    },
  };
}

/** Returns what authorizes requests about an interaction's messages. */
export function tokenOf({
  application_id: applicationId,
  token,
}: Pick<APIInteraction, "application_id" | "token">): InteractionToken {
  return { applicationId, token };
}

/** How a follow-up is posted. */
interface FollowUpHow extends PostOptions {
  readonly files: readonly RawFile[];
  /** This is the same for each attempt at one message. */
  readonly attemptKey: string;
}

/** Posts the follow-ups of one interaction. */
export interface FollowUps {
  /** Returns the bot's message, which is an earlier attempt's where only the response was lost. */
  post(body: DiscordContent, how: FollowUpHow): Promise<APIMessage>;
  /** Notes a message of the interaction that was posted elsewhere. */
  note(messageId: string): void;
}

/**
 * Creates the {@link FollowUps} of one interaction. Follow-ups have no nonce, so an attempt whose response
 * was lost may have posted its message. Where the bot can read the channel, the message is searched for
 * before the next attempt.
 */
export function createFollowUps(options: {
  readonly api: Pick<DiscordApi, "followUp" | "editFollowUp" | "listMessages">;
  readonly channelId: string;
  readonly interaction: InteractionAddress;
  /** Whether an earlier process may have posted some follow-ups without saving them. */
  readonly isResumed: boolean;
}): FollowUps {
  const { api, channelId, interaction, isResumed } = options;
  const known = new Set<string>();
  /** The attempts whose outcome is not known. */
  const uncertain = new Set<string>();
  /** Whether an earlier process may have posted messages with text that are not in the saved address. */
  let mayHoldUnsaved = isResumed;

  /** Finds the first message that is not known, has these files, and `isOurs`. */
  async function findLost(
    files: readonly RawFile[],
    isOurs: (message: APIMessage) => boolean = () => true,
  ): Promise<APIMessage | undefined> {
    // Only its caller sees a private message.
    if (interaction.isPrivate) return undefined;
    const messages = await readMessages(api, channelId, interaction.id);
    return messages.findLast(
      (message) =>
        message.interaction_metadata?.id === interaction.id &&
        !known.has(message.id) &&
        message.attachments.length === files.length &&
        message.attachments.every(({ filename, size }, index) => isOf(files[index], filename, size)) &&
        isOurs(message),
    );
  }

  /** Returns the message of an earlier attempt, once it shows what is to be posted. */
  async function takeLost(
    body: DiscordContent,
    { files, attemptKey, ...how }: FollowUpHow,
  ): Promise<APIMessage | undefined> {
    if (files.length > 0) return isResumed || uncertain.has(attemptKey) ? findLost(files) : undefined;
    if (mayHoldUnsaved) {
      const unsaved = await findLost(files);
      // It may show another text, which an earlier process did not end.
      if (unsaved !== undefined) return api.editFollowUp(interaction, unsaved.id, body, how);
      mayHoldUnsaved = false;
    }
    if (!uncertain.has(attemptKey)) return undefined;
    return findLost(files, ({ content }) => content === body.content.trim());
  }

  return {
    async post(body, how) {
      const { attemptKey } = how;
      const found = await takeLost(body, how);
      try {
        const message = found ?? (await api.followUp(interaction, body, how));
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

/** How many messages of a channel are read. */
const maxMessages = 50;
const unreadable: ReadonlySet<number> = new Set([
  errorCodes.unknownChannel,
  errorCodes.missingAccess,
  errorCodes.missingPermissions,
]);

/** Reads the first 50 messages after an id, latest first. Returns none where the bot cannot read them. */
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

function isOf(file: RawFile | undefined, filename: string, size: number): boolean {
  return file?.name === filename && (file.data as Uint8Array).length === size;
}
