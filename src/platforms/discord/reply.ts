import type { RawFile } from "discord.js";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Json } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import type { ReplyFile } from "../../core/platform.ts";
import { sleep } from "../../support/sleep.ts";
import type { EditTarget, MessageContent } from "../delivery/edit-target.ts";
import { toEventKey, type DiscordAddress, type InteractionAddress } from "./address.ts";
import type { DiscordApi } from "./api.ts";
import {
  lengthOf,
  maxPieceChars,
  privateFlags,
  toDiscordContent,
  toSentence,
  type DiscordContent,
} from "./content.ts";
import { errorCodes, discordCode, isTokenGone } from "./errors.ts";
import { fitFiles } from "./files.ts";
import type { FreshTokens } from "./fresh-tokens.ts";
import type { Threads } from "./threads.ts";

/** Where the bot is not a member it has five follow-ups; two are reserved for files. */
const maxGuestMessages = 3;
const maxMessages = 8;

/** One posted message of a reply, as saved in its address. `isOwn`: an ordinary message, not an interaction's. */
interface MessageRef {
  readonly channelId: string;
  readonly messageId: string;
  readonly isOwn: boolean;
}

/** How a message is posted. */
interface PostHow {
  readonly files?: RawFile[];
  /** Two posts with the same one are one message. Default: a random one. */
  readonly nonce?: string;
  readonly isPlaceholder?: boolean;
  readonly signal: AbortSignal;
}

/** `isShown`: it shows the content that was given. */
interface PostedMessage {
  readonly ref: MessageRef;
  readonly isShown: boolean;
}

/** How long a message with unexpected text is left alone: a process that has lost its lease learns that meanwhile. */
const ownershipMs = 1000;

/** The event key of a posted message, by its saved reference. */
export function toRefKey(ref: Json): string {
  return toEventKey((ref as unknown as MessageRef).messageId);
}

/** Options of {@link createDiscordTarget}. */
export interface TargetOptions {
  readonly api: DiscordApi;
  readonly address: DiscordAddress;
  readonly threads: Threads;
  readonly freshTokens: FreshTokens;
  readonly log: Log;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/**
 * Posts and edits a reply's messages on Discord: as messages of the interaction while its token is valid, otherwise as
 * ordinary messages in a channel or thread.
 */
export function createDiscordTarget(options: TargetOptions): EditTarget {
  const { api, address, log } = options;
  const saved = (address.messages ?? []) as readonly unknown[] as readonly MessageRef[];
  let posted = saved.length;
  let firstId = saved[0]?.messageId;
  /** Where ordinary messages are posted; known once the thread is open. */
  let destination: Destination | undefined = savedDestination(saved, address);
  const overflowOf = new Map<string, MessageRef>();
  /** The known content of messages, as JSON: an edit that changes nothing is not sent. */
  const shownAs = new Map<string, string>();

  /** The interaction, while its token is valid. */
  function liveInteraction(): InteractionAddress | undefined {
    const { interaction } = address;
    return interaction !== undefined && options.now() < interaction.expiresAt ? interaction : undefined;
  }

  async function findDestination(): Promise<Destination> {
    destination ??= await openDestination(options);
    return destination;
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
    signal: AbortSignal,
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
    const message = await api.followUp(interaction, { ...shown, flags: privateFlags }, { signal });
    return { ref: { channelId: address.channelId, messageId: message.id, isOwn: false }, isShown: true };
  }

  async function postToInteraction(
    interaction: InteractionAddress,
    content: DiscordContent,
    { files = [], signal }: PostHow,
  ): Promise<PostedMessage> {
    const isFirst = posted === 0 && files.length === 0;
    const body = withAltTexts(content, files);
    const message = isFirst
      ? await api.editFollowUp(interaction, "@original", body, signal)
      : await api.followUp(interaction, interaction.isPrivate ? { ...body, flags: privateFlags } : body, {
          files,
          signal,
        });
    return { ref: { channelId: address.channelId, messageId: message.id, isOwn: false }, isShown: true };
  }

  async function postToChannel(content: DiscordContent, how: PostHow): Promise<PostedMessage> {
    const { files = [], nonce = randomNonce(), signal } = how;
    const { channelId, replyTo, isOptional } = await findDestination();
    const body = {
      ...withAltTexts(content, files),
      nonce,
      enforce_nonce: true,
      ...(replyTo === undefined || (posted > 0 && address.isChain !== true)
        ? {}
        : { message_reference: { message_id: replyTo, fail_if_not_exists: false } }),
    };
    try {
      const message = await api.createMessage(channelId, body, { files, signal });
      const ref = { channelId, messageId: message.id, isOwn: true };
      if (files.length > 0 || message.content === content.content.trim()) return { ref, isShown: true };
      return { ref, isShown: await replaceText(ref, content, how) };
    } catch (error) {
      if (isOptional !== true || !isParleyError(error, "platform-forbidden")) throw error;
      log.warn(
        { channel: channelId, err: error },
        "no permission to post in the thread: posting in the channel",
      );
      destination = toChannelDestination(address, "Send Messages in Threads");
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
    { isPlaceholder = false, signal }: PostHow,
  ): Promise<boolean> {
    if (isPlaceholder) return false;
    await sleep(ownershipMs, signal);
    await editOwn(ref, content, signal);
    return true;
  }

  async function editOwn(ref: MessageRef, content: DiscordContent, signal: AbortSignal): Promise<void> {
    await api.editMessage(ref.channelId, ref.messageId, content, signal);
  }

  /** @throws ParleyError `platform-rejected`: the message cannot be edited any more; the caller posts a new one */
  async function editMessage(ref: MessageRef, content: DiscordContent, signal: AbortSignal): Promise<void> {
    const token = options.freshTokens.of(ref.messageId) ?? liveInteraction();
    if (!ref.isOwn && token !== undefined) {
      try {
        await api.editFollowUp(token, ref.messageId, content, signal);
        return;
      } catch (error) {
        if (!isTokenGone(error)) throw error;
      }
    }
    const { interaction } = address;
    if (!ref.isOwn && (interaction?.isPrivate === true || interaction?.isGuest === true)) {
      throw new ParleyError("platform-rejected", "interaction token expired");
    }
    await editOwn(ref, content, signal);
  }

  async function showOverflow(
    ref: MessageRef,
    overflow: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (overflow === undefined) return;
    const shown = overflowOf.get(ref.messageId);
    if (shown === undefined)
      overflowOf.set(ref.messageId, (await postMessage(toSentence(overflow), { signal })).ref);
    else await editMessage(shown, toSentence(overflow), signal);
  }

  return {
    maxLength: maxPieceChars,
    lengthOf,
    maxMessages: address.interaction?.isGuest === true ? maxGuestMessages : maxMessages,
    minEditIntervalMs: 1100,

    async post(content, signal) {
      if (liveInteraction() === undefined) await findDestination();
      const { overflow, ...shown } = render(content, posted === 0);
      const how: PostHow = {
        ...(address.eventId === undefined ? {} : { nonce: `${address.eventId}.${posted}` }),
        isPlaceholder: content.state === "waiting",
        signal,
      };
      const { ref, isShown } =
        (await failPrivately(content, shown, signal)) ?? (await postMessage(shown, how));
      firstId ??= ref.messageId;
      if (isShown) shownAs.set(ref.messageId, JSON.stringify(shown));
      posted += 1;
      await showOverflow(ref, overflow, signal);
      return ref as unknown as Json;
    },

    async edit(given, content, signal) {
      const ref = given as unknown as MessageRef;
      const { overflow, ...shown } = render(content, ref.messageId === firstId);
      const wanted = JSON.stringify(shown);
      try {
        if (shownAs.get(ref.messageId) !== wanted) {
          shownAs.delete(ref.messageId);
          await editMessage(ref, shown, signal);
          shownAs.set(ref.messageId, wanted);
        }
      } catch (error) {
        if (discordCode(error) !== errorCodes.unknownMessage) throw error;
        // Somebody deleted it on purpose: it is not posted again.
        log.info({ channel: ref.channelId }, "message of a reply was deleted: its text is not shown again");
        return given;
      }
      await showOverflow(ref, overflow, signal);
      return given;
    },

    async upload(files: readonly ReplyFile[], signal) {
      for (const batch of await fitFiles(files, maxFileBytes(address))) {
        await postMessage({ ...toSentence(""), content: "" }, { files: batch, signal });
        posted += 1;
      }
    },
  };

  /** Notices about the destination are below the first message once it is final. */
  function render(content: MessageContent, isFirst: boolean) {
    const isFinal = content.state === "finished" || content.state === "failed";
    return toDiscordContent(content, isFirst && isFinal ? (destination?.notices ?? []) : []);
  }
}

/** Where ordinary messages of a reply are posted. */
interface Destination {
  readonly channelId: string;
  readonly replyTo?: string;
  /** A thread that the bot opened: without permission to post in it, the channel is used. */
  readonly isOptional?: boolean;
  /** Shown to people: why it is not posted elsewhere. */
  readonly notices?: readonly string[];
}

/** Where earlier messages of the reply were posted. */
function savedDestination(
  saved: readonly MessageRef[],
  { channelId, replyTo, isChain }: DiscordAddress,
): Destination | undefined {
  const own = saved.findLast((ref) => ref.isOwn);
  if (own === undefined) return undefined;
  const isInChain = isChain === true && own.channelId === channelId && replyTo !== undefined;
  return { channelId: own.channelId, ...(isInChain ? { replyTo } : {}) };
}

async function openDestination({ api, address, threads, log }: TargetOptions): Promise<Destination> {
  const { channelId, replyTo, thread, interaction } = address;
  if (interaction?.isPrivate === true || interaction?.isGuest === true) {
    // An ordinary message in the channel would be seen by everyone.
    const direct = await api.openDirectChannel(interaction.userId);
    return { channelId: direct.id };
  }
  if (thread === undefined || replyTo === undefined)
    return { channelId, ...(replyTo === undefined ? {} : { replyTo }) };
  try {
    return { channelId: await threads.fromMessage(channelId, replyTo, thread.title), isOptional: true };
  } catch (error) {
    if (!isParleyError(error, "platform-forbidden") && !isParleyError(error, "platform-rejected"))
      throw error;
    log.warn({ channel: channelId, err: error }, "thread not opened: posting in the channel");
    return toChannelDestination(address, error.detail["permission"]);
  }
}

/** The channel instead of a thread: the answer replies to the question; a reply to the answer continues. */
function toChannelDestination(
  { channelId, replyTo }: DiscordAddress,
  permission: string | number | undefined,
): Destination {
  const why = permission === undefined ? "" : ` (missing: ${permission})`;
  return {
    channelId,
    ...(replyTo === undefined ? {} : { replyTo }),
    notices: [`No thread could be used here${why}. Reply to this message to go on.`],
  };
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
