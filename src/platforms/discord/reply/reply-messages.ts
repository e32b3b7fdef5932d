import type { RawFile } from "discord.js";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import { parseShownFiles, type CallHow } from "../../delivery/message-plan.ts";
import {
  fromRef,
  isThreadType,
  snowflakeTime,
  type DiscordAddress,
  type InteractionAddress,
  type MessageRef,
} from "../address.ts";
import { discordCode, errorCodes, isTokenGone, withPermission } from "../errors.ts";
import { randomNonce, withAltTexts } from "../intake/files.ts";
import { createFollowUps, type FollowUps } from "../press/acknowledgements.ts";
import { lanes, type SendOptions } from "../transport/delivery.ts";
import { privateFlags, type DiscordContent } from "./content.ts";
import type { createDestinationFinder, ReplyOptions } from "./destination.ts";

/** How a message is posted. */
export interface PostHow extends CallHow {
  readonly files?: RawFile[];
  /** Two posts with the same nonce are one message. The default is a random one. */
  readonly nonce?: string;
  readonly isPlaceholder?: boolean;
  /** Whether it shows a failure that only the caller of the command can fix. Default false. */
  readonly isOfCaller?: boolean;
}

/** A posted message. `isShown` says whether it shows the content that was given. */
interface PostedMessage {
  readonly ref: MessageRef;
  readonly isShown: boolean;
}

/** The messages of one reply on Discord: of an interaction while its token is valid, else of the bot. */
interface ReplyMessages {
  /** Posts the next message of the reply, or the next of its files. The content may name the destination. */
  post(render: () => DiscordContent, how: PostHow): Promise<PostedMessage>;
  /** @throws ParleyError `platform-rejected` where it is too late to edit: the caller posts a new one */
  edit(ref: MessageRef, content: DiscordContent, how: SendOptions): Promise<void>;
  remove(ref: MessageRef): Promise<void>;
  /** Returns the number of posts for the reply, files and removed messages included. */
  count(): number;
  /** Returns the id of the first message that shows text. */
  firstId(): string | undefined;
  /** Returns the interaction while its token is valid. */
  liveInteraction(): InteractionAddress | undefined;
  /** Ends the reply's share of the room for previews. */
  close(): void;
}

/**
 * A token is unknown until its interaction is acknowledged, which Discord allows for three seconds. The
 * process that this one has taken the reply over from may still do so, and would leave "thinking…" for ever.
 */
const acknowledgedWithinMs = 3500;

/** How long a message with unexpected text is left alone, so that a process can learn of a lost lease. */
const ownershipMs = 1000;

export function createReplyMessages(
  options: ReplyOptions & {
    /** Finds where ordinary messages are posted. */
    readonly destinations: ReturnType<typeof createDestinationFinder>;
    /** Is awaited before each ordinary post. */
    readonly beforePost: () => Promise<void>;
  },
): ReplyMessages {
  const { api, address, destinations, threads, clock, log } = options;
  const saved = (address.messages ?? []).map(fromRef);
  let posted = address.posts ?? saved.length;
  let firstId = saved[0]?.messageId;
  /** These end its share of the room for previews. */
  const joined: (() => void)[] = [];
  const interactions = createInteractionPosts(options);

  async function postMessage(
    render: () => DiscordContent,
    how: PostHow,
    { mayWait = true } = {},
  ): Promise<PostedMessage> {
    const interaction = interactions.live();
    if (interaction !== undefined) {
      try {
        return await interactions.post(interaction, render(), how, posted === 0);
      } catch (error) {
        if (!isTokenGone(error)) throw error;
        const waitMs = snowflakeTime(interaction.id) + acknowledgedWithinMs - options.now();
        if (mayWait && waitMs > 0 && waitMs <= acknowledgedWithinMs) {
          await clock.sleep(waitMs, how.signal);
          return await postMessage(render, how, { mayWait: false });
        }
        log.info({ interaction: interaction.id }, "interaction token expired: posting in the channel");
      }
    }
    return await postToChannel(render, how);
  }

  async function postToChannel(render: () => DiscordContent, how: PostHow): Promise<PostedMessage> {
    const { files = [], nonce = randomNonce(), signal, urgency, leaves } = how;
    const { channelId, replyTo, isChain = address.isChain } = await destinations.find();
    const content = render();
    const body = {
      ...withAltTexts(content, files),
      nonce,
      enforce_nonce: true,
      ...(replyTo === undefined || (firstId !== undefined && isChain !== true)
        ? {}
        : { message_reference: { message_id: replyTo, fail_if_not_exists: false } }),
    };
    // Typing that arrives after the message would be shown below it.
    await options.beforePost();
    try {
      const message = await api.createMessage(channelId, body, { files, signal, urgency, leaves });
      // Nonces count in all channels.
      const ref = { channelId: message.channel_id, messageId: message.id, isOwn: true };
      if (joined.length === 0)
        joined.push(api.limits.join(lanes.global), api.limits.join(lanes.edits(ref.channelId)));
      if (files.length > 0 || message.content === content.content.trim()) return { ref, isShown: true };
      return { ref, isShown: await replaceText(ref, content, how) };
    } catch (refusal) {
      const error = withPermission(
        refusal,
        files.length > 0 ? "Attach Files" : postingIn(address, channelId),
      );
      // Who may not attach files in the thread may not in its channel either.
      const isFirst = posted === 0 && files.length === 0;
      if (!isFirst || !isParleyError(error, "platform-forbidden") || !destinations.leaveThread(error))
        throw error;
      return postToChannel(render, how);
    }
  }

  /**
   * Replaces the text of a message whose nonce was used before, by a process that crashed or by one that has
   * resumed the reply. Discord returns that message. A placeholder never replaces its text, and other content
   * does so only when this process still owns the reply.
   */
  async function replaceText(
    ref: MessageRef,
    content: DiscordContent,
    { isPlaceholder = false, signal, urgency, leaves }: PostHow,
  ): Promise<boolean> {
    if (isPlaceholder) return false;
    await clock.sleep(ownershipMs, signal);
    await editOwn(ref, content, { signal, urgency, leaves });
    return true;
  }

  async function editOwn(ref: MessageRef, content: DiscordContent, how: SendOptions): Promise<void> {
    const edit = () => api.editMessage(ref.channelId, ref.messageId, content, how);
    try {
      await edit();
    } catch (error) {
      // A new message would unarchive the thread by itself, but an edit does not.
      if (discordCode(error) !== errorCodes.threadArchived) throw error;
      await threads.unarchive(ref.channelId);
      await edit();
    }
  }

  async function editMessage(ref: MessageRef, content: DiscordContent, how: SendOptions): Promise<void> {
    const token = interactions.live();
    if (!ref.isOwn && token !== undefined) {
      try {
        await api.editFollowUp(token, idOf(ref), content, how);
        return;
      } catch (error) {
        if (!isTokenGone(error)) throw error;
      }
    }
    if (!ref.isOwn && address.interaction?.isPrivate === true) {
      throw new ParleyError("platform-rejected", "interaction token expired");
    }
    await editOwn(ref, content, how);
  }

  async function removeMessage(ref: MessageRef): Promise<void> {
    const token = interactions.live();
    if (!ref.isOwn && token !== undefined) return await api.deleteFollowUp(token, idOf(ref));
    await api.deleteMessage(ref.channelId, ref.messageId);
  }

  return {
    async post(render, how) {
      const message =
        (posted === 0 ? await interactions.failPrivately(render(), how) : undefined) ??
        (await postMessage(render, how));
      if (how.files === undefined) firstId ??= message.ref.messageId;
      posted += 1;
      return message;
    },
    edit: editMessage,
    remove: removeMessage,
    count: () => posted,
    firstId: () => firstId,
    liveInteraction: interactions.live,
    close() {
      for (const leave of joined.splice(0)) leave();
    },
  };
}

/** Returns the id of a message by which its interaction knows it. */
function idOf({ isOriginal = false, messageId }: MessageRef): string {
  return isOriginal ? "@original" : messageId;
}

/** Returns the permission that posting in a channel of this reply needs. */
function postingIn(address: DiscordAddress, channelId: string): string {
  const isThread = isThreadType(address.channelType)
    ? channelId === address.channelId
    : channelId !== address.channelId;
  return isThread ? "Send Messages in Threads" : "Send Messages";
}

/** Posts a reply's messages as those of its interaction. */
function createInteractionPosts({
  api,
  address,
  isResumed,
  now,
  log,
}: Pick<ReplyOptions, "api" | "address" | "isResumed" | "now" | "log">) {
  const { channelId } = address;
  let followUps: FollowUps | undefined;

  /** Returns the interaction while its token is valid. */
  function live(): InteractionAddress | undefined {
    const { interaction } = address;
    return interaction !== undefined && now() < interaction.expiresAt ? interaction : undefined;
  }

  function openFollowUps(interaction: InteractionAddress): FollowUps {
    const opened = createFollowUps({ api, channelId, interaction, isResumed });
    const files = parseShownFiles(address.files)?.refs.map(fromRef) ?? [];
    for (const { messageId } of [...(address.messages ?? []).map(fromRef), ...files]) opened.note(messageId);
    return opened;
  }

  /** Deletes "thinking…". Resolves to whether it is gone. @throws ParleyError `platform-unreachable` */
  async function removePlaceholder(interaction: InteractionAddress): Promise<boolean> {
    try {
      await api.deleteFollowUp(interaction, "@original");
      return true;
    } catch (error) {
      if (isParleyError(error, "platform-unreachable")) throw error;
      // An earlier attempt has deleted it, whose follow-up or whose response was lost.
      if (discordCode(error) === errorCodes.unknownMessage) return true;
      log.info({ err: error }, "placeholder not deleted");
      return false;
    }
  }

  return {
    live,
    /** The first message of the reply takes the place of "thinking…". */
    async post(
      interaction: InteractionAddress,
      content: DiscordContent,
      { files = [], nonce = randomNonce(), signal, urgency, leaves }: PostHow,
      isFirstOfReply: boolean,
    ): Promise<PostedMessage> {
      const isOnPlaceholder = isFirstOfReply && interaction.hasPublicPlaceholder !== true;
      if (isFirstOfReply && !isOnPlaceholder) await removePlaceholder(interaction);
      const isFirst = isOnPlaceholder && files.length === 0;
      const body = withAltTexts(content, files);
      followUps ??= openFollowUps(interaction);
      const message = isFirst
        ? await api.editFollowUp(interaction, "@original", body, { signal, urgency, leaves })
        : await followUps.post(interaction.isPrivate ? { ...body, flags: privateFlags } : body, {
            files,
            attemptKey: nonce,
            signal,
            urgency,
            leaves,
          });
      followUps.note(message.id);
      const ref = { channelId, messageId: message.id, isOwn: false };
      return { ref: { ...ref, ...(isFirst ? { isOriginal: true } : {}) }, isShown: true };
    },
    /**
     * Shows a failure that only the caller can fix (a wrong option, an unknown model) to the caller alone,
     * where nothing but the public placeholder was shown. Returns `undefined` where it must be shown
     * publicly.
     */
    async failPrivately(
      content: DiscordContent,
      { isOfCaller = false, signal, urgency }: PostHow,
    ): Promise<PostedMessage | undefined> {
      const interaction = live();
      if (!isOfCaller || interaction === undefined || interaction.isPrivate) return undefined;
      if (!(await removePlaceholder(interaction))) return undefined;
      const message = await api.followUp(
        interaction,
        { ...content, flags: privateFlags },
        { signal, urgency },
      );
      return { ref: { channelId, messageId: message.id, isOwn: false }, isShown: true };
    },
  };
}
