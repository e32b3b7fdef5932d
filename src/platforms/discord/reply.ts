import type { RawFile } from "discord.js";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Json } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import type { ReplyFile } from "../../core/platform.ts";
import type { EditTarget, MessageContent } from "../delivery/edit-target.ts";
import { keyOfMessage, type DiscordAddress, type InteractionAddress } from "./address.ts";
import type { DiscordApi } from "./api.ts";
import {
  lengthOf,
  maxPieceChars,
  privateFlags,
  toDiscordContent,
  toSentence,
  type DiscordContent,
} from "./content.ts";
import { codes, discordCode, isTokenGone } from "./errors.ts";
import { fitFiles } from "./files.ts";
import type { FreshTokens } from "./fresh-tokens.ts";
import type { Threads } from "./threads.ts";

/** A guest has five follow-ups; some are kept for files. */
const guestMessages = 3;
const memberMessages = 8;

/** One message a reply has posted. `isOwn`: it stands in the channel as an ordinary message. */
interface MessageRef {
  readonly channelId: string;
  readonly messageId: string;
  readonly isOwn: boolean;
}

/** The key that the message of a saved reference has when it is removed. */
export function keyOfRef(ref: Json): string {
  return keyOfMessage((ref as unknown as MessageRef).messageId);
}

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
 * A reply on Discord: as ordinary messages in a channel or thread, or as the messages of an interaction for as
 * long as its token lives, and as ordinary messages from then on.
 */
export function createDiscordTarget(options: TargetOptions): EditTarget {
  const { api, address, log } = options;
  const saved = (address.messages ?? []) as readonly unknown[] as readonly MessageRef[];
  let posted = saved.length;
  let firstId = saved[0]?.messageId;
  /** Where ordinary messages go: known from the start, or once the thread is open. */
  let place: Place | undefined = placeFromSaved(address, saved);
  const overflowOf = new Map<string, MessageRef>();
  /** What messages are known to show: only what looks different is sent. */
  const shownAs = new Map<string, string>();

  /** The interaction, while its token is good for another message. */
  function liveInteraction(): InteractionAddress | undefined {
    const { interaction } = address;
    return interaction !== undefined && options.now() < interaction.expiresAt ? interaction : undefined;
  }

  async function findPlace(): Promise<Place> {
    place ??= await openPlace(options);
    return place;
  }

  async function postMessage(content: DiscordContent, files: RawFile[], nonce?: string): Promise<MessageRef> {
    const interaction = liveInteraction();
    if (interaction !== undefined) {
      try {
        return await postToInteraction(interaction, content, files);
      } catch (error) {
        if (!isTokenGone(error) && discordCode(error) !== codes.tooManyFollowUps) throw error;
        log.info({ interaction: interaction.id }, "the interaction has run out; going on in the channel");
      }
    }
    return await postToChannel(content, files, nonce);
  }

  /**
   * A command that can only be mended by the one who gave it (a wrong option, an unknown model) and has shown
   * nothing yet: the placeholder that everyone sees goes, and the person alone is told.
   */
  async function failPrivately(
    { state, retryKey }: MessageContent,
    shown: DiscordContent,
  ): Promise<MessageRef | undefined> {
    const interaction = liveInteraction();
    if (state !== "failed" || retryKey !== undefined || posted > 0) return undefined;
    if (interaction === undefined || interaction.isPrivate) return undefined;
    try {
      await api.deleteFollowUp(interaction, "@original");
    } catch (error) {
      log.info({ err: error }, "a placeholder could not be taken away; the failure is shown to everyone");
      return undefined;
    }
    const message = await api.followUp(interaction, { ...shown, flags: privateFlags });
    return { channelId: address.channelId, messageId: message.id, isOwn: false };
  }

  async function postToInteraction(
    interaction: InteractionAddress,
    content: DiscordContent,
    files: RawFile[],
  ): Promise<MessageRef> {
    const isFirst = posted === 0 && files.length === 0;
    const body = withAltTexts(content, files);
    const message = isFirst
      ? await api.editFollowUp(interaction, "@original", body)
      : await api.followUp(
          interaction,
          interaction.isPrivate ? { ...body, flags: privateFlags } : body,
          files,
        );
    return { channelId: address.channelId, messageId: message.id, isOwn: false };
  }

  async function postToChannel(
    content: DiscordContent,
    files: RawFile[],
    nonce?: string,
  ): Promise<MessageRef> {
    const { channelId, replyTo, isOptional } = await findPlace();
    const body = {
      ...withAltTexts(content, files),
      nonce: nonce ?? randomNonce(),
      enforce_nonce: true,
      ...(replyTo === undefined || posted > 0
        ? {}
        : { message_reference: { message_id: replyTo, fail_if_not_exists: false } }),
    };
    try {
      const message = await api.createMessage(channelId, body, files);
      const ref = { channelId, messageId: message.id, isOwn: true };
      // The same nonce was used before a crash: Discord answers that message, which shows older text.
      if (files.length === 0 && message.content !== content.content.trim()) await editOwn(ref, content);
      return ref;
    } catch (error) {
      if (isOptional !== true || !isParleyError(error, "platform-forbidden")) throw error;
      log.warn(
        { channel: channelId, err: error },
        "the bot may not write in threads; answering in the channel",
      );
      place = inChannel(address, "Send Messages in Threads");
      return postToChannel(content, files, nonce);
    }
  }

  async function editOwn(ref: MessageRef, content: DiscordContent): Promise<void> {
    await api.editMessage(ref.channelId, ref.messageId, content);
  }

  /** @throws ParleyError `platform-rejected` where a message cannot be reached any more and is to be posted anew */
  async function editAnywhere(ref: MessageRef, content: DiscordContent): Promise<void> {
    const token = options.freshTokens.of(ref.messageId) ?? liveInteraction();
    if (!ref.isOwn && token !== undefined) {
      try {
        await api.editFollowUp(token, ref.messageId, content);
        return;
      } catch (error) {
        if (!isTokenGone(error)) throw error;
      }
    }
    const { interaction } = address;
    if (!ref.isOwn && (interaction?.isPrivate === true || interaction?.isGuest === true)) {
      throw new ParleyError("platform-rejected", "the interaction's token has run out");
    }
    await editOwn(ref, content);
  }

  async function showOverflow(ref: MessageRef, overflow: string | undefined): Promise<void> {
    if (overflow === undefined) return;
    const shown = overflowOf.get(ref.messageId);
    if (shown === undefined) overflowOf.set(ref.messageId, await postMessage(toSentence(overflow), []));
    else await editAnywhere(shown, toSentence(overflow));
  }

  return {
    maxLength: maxPieceChars,
    lengthOf,
    maxMessages: address.interaction?.isGuest === true ? guestMessages : memberMessages,
    minEditIntervalMs: 1100,

    async post(content) {
      if (liveInteraction() === undefined) await findPlace();
      const { overflow, ...shown } = render(content, posted === 0);
      const nonce = address.eventId === undefined ? undefined : `${address.eventId}.${posted}`;
      const ref = (await failPrivately(content, shown)) ?? (await postMessage(shown, [], nonce));
      firstId ??= ref.messageId;
      shownAs.set(ref.messageId, JSON.stringify(shown));
      posted += 1;
      await showOverflow(ref, overflow);
      return ref as unknown as Json;
    },

    async edit(given, content) {
      const ref = given as unknown as MessageRef;
      const { overflow, ...shown } = render(content, ref.messageId === firstId);
      const look = JSON.stringify(shown);
      try {
        if (shownAs.get(ref.messageId) !== look) {
          shownAs.delete(ref.messageId);
          await editAnywhere(ref, shown);
          shownAs.set(ref.messageId, look);
        }
      } catch (error) {
        if (discordCode(error) !== codes.unknownMessage) throw error;
        // Someone has deleted it: they do not want to see it.
        log.info({ channel: ref.channelId }, "a message of a reply was deleted; its text is not shown again");
        return;
      }
      await showOverflow(ref, overflow);
    },

    async upload(files: readonly ReplyFile[]) {
      for (const batch of await fitFiles(files, maxFileBytes(address))) {
        await postMessage({ ...toSentence(""), content: "" }, batch);
        posted += 1;
      }
    },
  };

  /** What is to be said about the place stands below the first message, once it does not change any more. */
  function render(content: MessageContent, isFirst: boolean) {
    const isSettled = content.state === "finished" || content.state === "failed";
    return toDiscordContent(content, isFirst && isSettled ? (place?.notices ?? []) : []);
  }
}

interface Place {
  readonly channelId: string;
  readonly replyTo?: string;
  /** A thread that the bot opened itself; where it may not write there, the channel will do. */
  readonly isOptional?: boolean;
  /** What people should know about the place itself. */
  readonly notices?: readonly string[];
}

function placeFromSaved(address: DiscordAddress, saved: readonly MessageRef[]): Place | undefined {
  const own = saved.findLast((ref) => ref.isOwn);
  if (own !== undefined) return { channelId: own.channelId };
  return undefined;
}

async function openPlace({ api, address, threads, log }: TargetOptions): Promise<Place> {
  const { channelId, replyTo, thread, interaction } = address;
  if (interaction?.isPrivate === true || interaction?.isGuest === true) {
    // An ordinary message in the channel would show everyone what one person asked for.
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
    log.warn({ channel: channelId, err: error }, "no thread could be opened; answering in the channel");
    return inChannel(address, error.detail["permission"]);
  }
}

/** The channel in place of a thread: the answer replies to the question, and a reply to it goes on. */
function inChannel({ channelId, replyTo }: DiscordAddress, permission: string | number | undefined): Place {
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
