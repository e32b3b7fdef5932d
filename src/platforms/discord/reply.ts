import type { RawFile } from "discord.js";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { ReplyFile } from "../../core/platform.ts";
import { sleep } from "../../support/sleep.ts";
import type { Urgency } from "../delivery/delivery-lane.ts";
import type { DeliveryScheduler } from "../delivery/delivery-scheduler.ts";
import type { EditTarget, MessageContent, WorkSign } from "../delivery/edit-target.ts";
import type { DiscordAddress, InteractionAddress } from "./address.ts";
import type { DiscordApi, SendOptions } from "./api.ts";
import {
  lengthOf,
  maxPieceChars,
  privateFlags,
  toDiscordContent,
  toSentence,
  type DiscordContent,
} from "./content.ts";
import { lanes } from "./delivery.ts";
import { createDestinationFinder } from "./destination.ts";
import { errorCodes, discordCode, isTokenGone } from "./errors.ts";
import { fitFiles } from "./files.ts";
import type { FreshTokens } from "./fresh-tokens.ts";
import { fromRef, toRef, type MessageRef } from "./message-ref.ts";
import type { OwnPosts } from "./own-posts.ts";
import type { Threads } from "./threads.ts";
import { createTypingSign } from "./typing-sign.ts";

/** Where the bot is not a member it has five follow-ups; two are reserved for files. */
const maxGuestMessages = 3;
const maxMessages = 8;

/** How a message is posted. */
interface PostHow {
  readonly files?: RawFile[];
  /** Two posts with the same one are one message. Default: a random one. */
  readonly nonce?: string;
  readonly isPlaceholder?: boolean;
  readonly signal: AbortSignal;
  readonly urgency: Urgency;
}

/** `isShown`: it shows the content that was given. */
interface PostedMessage {
  readonly ref: MessageRef;
  readonly isShown: boolean;
}

/** How long a message with unexpected text is left alone: a process that has lost its lease learns that meanwhile. */
const ownershipMs = 1000;

/** Options of {@link createDiscordTarget}. */
export interface TargetOptions {
  readonly api: DiscordApi;
  readonly address: DiscordAddress;
  readonly threads: Threads;
  readonly scheduler: DeliveryScheduler;
  readonly freshTokens: FreshTokens;
  readonly ownPosts: OwnPosts;
  /** The bot's user id. */
  readonly botId: () => string;
  readonly log: Log;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/**
 * Posts and edits a reply's messages on Discord: as messages of the interaction while its token is valid, otherwise as
 * ordinary messages in a channel or thread.
 */
export function createDiscordTarget(options: TargetOptions): EditTarget {
  const { api, address, scheduler, log } = options;
  const saved = (address.messages ?? []).map(fromRef);
  let posted = saved.length;
  let firstId = saved[0]?.messageId;
  /** Where ordinary messages are posted. */
  const destinations = createDestinationFinder(options);
  /** A command has a sign of its own. */
  const typing =
    liveInteraction() === undefined
      ? createTypingSign({ api, channelId: async () => (await destinations.find()).channelId, log })
      : undefined;
  let lastShownAt = Number.NEGATIVE_INFINITY;
  /** Ends its part in the room for previews. */
  const leaves: (() => void)[] = [];
  const overflowOf = new Map<string, MessageRef>();
  /** The known content of messages, as JSON: an edit that changes nothing is not sent. */
  const shownAs = new Map<string, string>();

  /** The interaction, while its token is valid. */
  function liveInteraction(): InteractionAddress | undefined {
    const { interaction } = address;
    return interaction !== undefined && options.now() < interaction.expiresAt ? interaction : undefined;
  }

  async function postMessage(content: DiscordContent, how: PostHow): Promise<PostedMessage> {
    const interaction = liveInteraction();
    if (interaction !== undefined) {
      try {
        return await postToInteraction(interaction, content, how);
      } catch (error) {
        if (!isTokenGone(error) && discordCode(error) !== errorCodes.tooManyFollowUps) throw error;
        log.info({ interaction: interaction.id }, "interaction token expired: posting in the channel");
      }
    }
    return await postToChannel(content, how);
  }

  /**
   * Shows a failure that only the caller can fix (a wrong option, an unknown model) to the caller alone, where nothing
   * but the public placeholder was shown. `undefined`: it is to be shown publicly.
   */
  async function failPrivately(
    { state, retryKey }: MessageContent,
    shown: DiscordContent,
    { signal, urgency }: PostHow,
  ): Promise<PostedMessage | undefined> {
    const interaction = liveInteraction();
    if (state !== "failed" || retryKey !== undefined || posted > 0) return undefined;
    if (interaction === undefined || interaction.isPrivate) return undefined;
    try {
      await api.deleteFollowUp(interaction, "@original");
    } catch (error) {
      log.info({ err: error }, "placeholder not deleted: failure shown publicly");
      return undefined;
    }
    const message = await api.followUp(interaction, { ...shown, flags: privateFlags }, { signal, urgency });
    return { ref: { channelId: address.channelId, messageId: message.id, isOwn: false }, isShown: true };
  }

  async function postToInteraction(
    interaction: InteractionAddress,
    content: DiscordContent,
    { files = [], signal, urgency }: PostHow,
  ): Promise<PostedMessage> {
    const isFirst = posted === 0 && files.length === 0;
    const body = withAltTexts(content, files);
    const message = isFirst
      ? await api.editFollowUp(interaction, "@original", body, { signal, urgency })
      : await api.followUp(interaction, interaction.isPrivate ? { ...body, flags: privateFlags } : body, {
          files,
          signal,
          urgency,
        });
    return { ref: { channelId: address.channelId, messageId: message.id, isOwn: false }, isShown: true };
  }

  async function postToChannel(content: DiscordContent, how: PostHow): Promise<PostedMessage> {
    const { files = [], nonce = randomNonce(), signal, urgency } = how;
    const { channelId, replyTo, isOptional, found, reservation } = await destinations.find();
    if (found !== undefined && posted === 0 && files.length === 0)
      return { ref: found, isShown: await replaceText(found, content, how) };
    const body = {
      ...withAltTexts(content, files),
      nonce,
      enforce_nonce: true,
      ...(replyTo === undefined || (posted > 0 && address.isChain !== true)
        ? {}
        : { message_reference: { message_id: replyTo, fail_if_not_exists: false } }),
    };
    // Typing that arrives after the message would be shown below it.
    await typing?.stop();
    try {
      const message = await api.createMessage(channelId, body, {
        files,
        signal,
        urgency,
        reservation: posted === 0 ? reservation : undefined,
      });
      // Nonces count in all channels.
      if (message.channel_id !== channelId) destinations.moveTo(message.channel_id);
      const ref = { channelId: message.channel_id, messageId: message.id, isOwn: true };
      options.ownPosts.add(ref.channelId, ref.messageId);
      if (leaves.length === 0)
        leaves.push(scheduler.join(lanes.global), scheduler.join(lanes.edits(ref.channelId)));
      if (files.length > 0 || message.content === content.content.trim()) return { ref, isShown: true };
      return { ref, isShown: await replaceText(ref, content, how) };
    } catch (error) {
      if (isOptional !== true || !isParleyError(error, "platform-forbidden")) throw error;
      log.warn(
        { channel: channelId, err: error },
        "no permission to post in the thread: posting in the channel",
      );
      destinations.useChannel("Send Messages in Threads");
      return postToChannel(content, how);
    }
  }

  /**
   * The nonce was used before, by a process that crashed, or by one that has resumed the reply: Discord returns that
   * message. A placeholder never replaces its text, other content only when this process still owns the reply.
   */
  async function replaceText(
    ref: MessageRef,
    content: DiscordContent,
    { isPlaceholder = false, signal, urgency }: PostHow,
  ): Promise<boolean> {
    if (isPlaceholder) return false;
    await sleep(ownershipMs, signal);
    await editOwn(ref, content, { signal, urgency });
    return true;
  }

  async function editOwn(ref: MessageRef, content: DiscordContent, how: SendOptions): Promise<void> {
    await api.editMessage(ref.channelId, ref.messageId, content, how);
  }

  /** @throws ParleyError `platform-rejected`: the message cannot be edited any more; the caller posts a new one */
  async function editMessage(ref: MessageRef, content: DiscordContent, how: SendOptions): Promise<void> {
    const token = options.freshTokens.of(ref.messageId) ?? liveInteraction();
    if (!ref.isOwn && token !== undefined) {
      try {
        await api.editFollowUp(token, ref.messageId, content, how);
        return;
      } catch (error) {
        if (!isTokenGone(error)) throw error;
      }
    }
    const { interaction } = address;
    if (!ref.isOwn && (interaction?.isPrivate === true || interaction?.isGuest === true)) {
      throw new ParleyError("platform-rejected", "interaction token expired");
    }
    await editOwn(ref, content, how);
  }

  async function showOverflow(
    ref: MessageRef,
    overflow: string | undefined,
    how: Pick<PostHow, "signal" | "urgency">,
  ): Promise<void> {
    if (overflow === undefined) return;
    const shown = overflowOf.get(ref.messageId);
    if (shown === undefined)
      overflowOf.set(ref.messageId, (await postMessage(toSentence(overflow), how)).ref);
    else await editMessage(shown, toSentence(overflow), how);
  }

  return {
    maxLength: maxPieceChars,
    lengthOf,
    maxMessages: address.interaction?.isGuest === true ? maxGuestMessages : maxMessages,
    minEditIntervalMs: 1100,

    async post(content, signal, urgency) {
      if (liveInteraction() === undefined) await destinations.find();
      const { overflow, ...shown } = render(content, posted === 0);
      const how: PostHow = {
        ...(address.eventId === undefined ? {} : { nonce: `${address.eventId}.${posted}` }),
        isPlaceholder: content.state === "waiting",
        signal,
        urgency,
      };
      const { ref, isShown } = (await failPrivately(content, shown, how)) ?? (await postMessage(shown, how));
      firstId ??= ref.messageId;
      if (isShown) shownAs.set(ref.messageId, JSON.stringify(shown));
      posted += 1;
      lastShownAt = performance.now();
      await showOverflow(ref, overflow, { signal, urgency });
      return toRef(ref);
    },

    async edit(given, content, signal, urgency) {
      const ref = fromRef(given);
      const { overflow, ...shown } = render(content, ref.messageId === firstId);
      const wanted = JSON.stringify(shown);
      try {
        if (shownAs.get(ref.messageId) !== wanted) {
          shownAs.delete(ref.messageId);
          await editMessage(ref, shown, { signal, urgency });
          shownAs.set(ref.messageId, wanted);
          lastShownAt = performance.now();
        }
      } catch (error) {
        if (discordCode(error) !== errorCodes.unknownMessage) throw error;
        // Somebody deleted it on purpose: it is not posted again.
        log.info({ channel: ref.channelId }, "message of a reply was deleted: its text is not shown again");
        return given;
      }
      await showOverflow(ref, overflow, { signal, urgency });
      return given;
    },

    async upload(files: readonly ReplyFile[], signal) {
      for (const batch of await fitFiles(files, maxFileBytes(address))) {
        const how = { files: batch, signal, urgency: "files" } as const;
        await postMessage({ ...toSentence(""), content: "" }, how);
        posted += 1;
      }
    },

    ...(typing === undefined ? {} : { sign: toSign(typing) }),

    roomInMs(kind) {
      if (liveInteraction() !== undefined) return 0;
      const where = destinations.known()?.channelId;
      const own = where === undefined ? [] : [kind === "first" ? lanes.posts(where) : lanes.edits(where)];
      const roomMs = scheduler.waitMs([...own, lanes.global], kind);
      if (kind === "first") return roomMs;
      const intervalMs = Math.max(...[...own, lanes.global].map((lane) => scheduler.previewIntervalMs(lane)));
      return Math.max(roomMs, lastShownAt + intervalMs - performance.now());
    },

    close() {
      for (const leave of leaves.splice(0)) leave();
      destinations.close();
    },
  };

  /** Its thread is opened while the model works: the first text does not wait for it. */
  function toSign(sign: WorkSign): WorkSign {
    return {
      show(status) {
        destinations.find().catch((error: unknown) => log.debug({ err: error }, "thread not opened yet"));
        sign.show(status);
      },
      clear: () => sign.clear(),
    };
  }

  /** Notices about the destination are below the first message once it is final. */
  function render(content: MessageContent, isFirst: boolean) {
    const isFinal = content.state === "finished" || content.state === "failed";
    return toDiscordContent(content, isFirst && isFinal ? (destinations.known()?.notices ?? []) : []);
  }
}

const defaultFileBytes = 10 * 1024 * 1024;

function maxFileBytes(address: DiscordAddress): number {
  return address.interaction?.maxFileBytes ?? defaultFileBytes;
}

function withAltTexts<T extends DiscordContent>(content: T, files: readonly RawFile[]): T {
  if (files.length === 0) return content;
  const attachments = files.map((file, index) => ({
    id: String(index),
    filename: file.name,
    description: (file as { altText?: string }).altText ?? "",
  }));
  return { ...content, attachments };
}

function randomNonce(): string {
  return crypto.randomUUID().replaceAll("-", "").slice(0, 25);
}
