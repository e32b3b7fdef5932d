import type { RawFile } from "discord.js";
import type { CancelTimer, Clock } from "../../../core/clock.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { ReplyFile } from "../../../core/platform.ts";
import type { Log } from "../../../core/telemetry.ts";
import type { Urgency, DeliveryScheduler } from "../../delivery/delivery-scheduler.ts";
import {
  type WorkSign,
  parseShownFiles,
  type EditTarget,
  type MessageContent,
} from "../../delivery/message-plan.ts";
import { createFollowUps, type FollowUps, type FreshTokens } from "../press/acknowledgements.ts";
import {
  isThreadType,
  maxFileBytesAt,
  type DiscordAddress,
  type InteractionAddress,
  fromRef,
  toRef,
  type MessageRef,
} from "../address.ts";
import type { DiscordApi, SendOptions } from "../transport/api.ts";
import {
  lengthOf,
  lengthOfSource,
  maxContentChars,
  maxPieceChars,
  privateFlags,
  toDiscordContent,
  toSentence,
  type DiscordContent,
} from "./content.ts";
import { isOldMessage, lanes } from "../transport/delivery.ts";
import { createDestinationFinder, type OwnPosts } from "./destination.ts";
import { errorCodes, discordCode, isTokenGone, withPermission } from "../errors.ts";
import { withAltTexts, createUploads, randomNonce } from "../intake/files.ts";
import type { Threads } from "./threads.ts";
import { inTime } from "../../../support/clock.ts";

/** Where the bot is not a member, it has five follow-ups. Two are reserved for files. */
const maxGuestMessages = 3;
const maxMessages = 8;

/** How a message is posted. */
interface PostHow {
  readonly files?: RawFile[];
  /** Two posts with the same nonce are one message. The default is a random one. */
  readonly nonce?: string;
  readonly isPlaceholder?: boolean;
  readonly signal: AbortSignal;
  readonly urgency: Urgency;
}

/** A posted message. `isShown` says whether it shows the content that was given. */
interface PostedMessage {
  readonly ref: MessageRef;
  readonly isShown: boolean;
}

/** How long a message with unexpected text is left alone, so that a process can learn of a lost lease. */
const ownershipMs = 1000;

/** The options of {@link createDiscordTarget}. */
interface TargetOptions {
  readonly api: DiscordApi;
  readonly address: DiscordAddress;
  /** Whether an earlier process may have posted messages of this reply. */
  readonly isResumed: boolean;
  readonly threads: Threads;
  readonly scheduler: DeliveryScheduler;
  readonly freshTokens: FreshTokens;
  readonly ownPosts: OwnPosts;
  /** Tells which of these messages show other turns. @throws ParleyError `store-unavailable` */
  readonly shownByOthers: (messageIds: readonly string[]) => Promise<readonly string[]>;
  /** Returns the channel that contains a thread. */
  readonly parentOf: (threadId: string) => Promise<string | undefined>;
  /** Returns the bot's user id. */
  readonly botId: () => string;
  readonly log: Log;
  /** Discord's time, in Unix milliseconds. */
  readonly now: () => number;
  readonly clock: Clock;
}

/**
 * Posts and edits a reply's messages on Discord. They are messages of the interaction while its token is
 * valid, otherwise ordinary messages in a channel or thread.
 */
export function createDiscordTarget(options: TargetOptions): EditTarget {
  const { api, address, threads, scheduler, clock, log } = options;
  const saved = (address.messages ?? []).map(fromRef);
  let posted = address.posts ?? saved.length;
  let firstId = saved[0]?.messageId;
  let isClosed = false;
  /** Finds where ordinary messages are posted. */
  const destinations = createDestinationFinder(options);
  /** A command has a sign of its own. */
  const typing =
    liveInteraction() === undefined
      ? createTypingSign({ api, channelId: async () => (await destinations.find()).channelId, clock, log })
      : undefined;
  let lastShownAt = Number.NEGATIVE_INFINITY;
  /** These end its share of the room for previews. */
  const leaves: (() => void)[] = [];
  let followUps: FollowUps | undefined;
  const uploads = createUploads(address.eventId);
  const overflowOf = new Map<string, MessageRef>();
  /** The known content of messages, as JSON. An edit that changes nothing is not sent. */
  const shownAs = new Map<string, string>();

  /** Returns the interaction while its token is valid. */
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
   * Shows a failure that only the caller can fix (a wrong option, an unknown model) to the caller alone,
   * where nothing but the public placeholder was shown. Returns `undefined` where it must be shown publicly.
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

  function openFollowUps(interaction: InteractionAddress): FollowUps {
    const { channelId } = address;
    const opened = createFollowUps({ api, channelId, interaction, isResumed: options.isResumed });
    const files = parseShownFiles(address.files)?.refs.map(fromRef) ?? [];
    for (const { messageId } of [...saved, ...files]) opened.note(messageId);
    return opened;
  }

  async function postToInteraction(
    interaction: InteractionAddress,
    content: DiscordContent,
    { files = [], nonce = randomNonce(), signal, urgency }: PostHow,
  ): Promise<PostedMessage> {
    const isFirst = posted === 0 && files.length === 0;
    const body = withAltTexts(content, files);
    followUps ??= openFollowUps(interaction);
    const message = isFirst
      ? await api.editFollowUp(interaction, "@original", body, { signal, urgency })
      : await followUps.post(interaction.isPrivate ? { ...body, flags: privateFlags } : body, {
          files,
          attemptKey: nonce,
          signal,
          urgency,
        });
    followUps.note(message.id);
    const ref = { channelId: address.channelId, messageId: message.id, isOwn: false };
    return { ref: { ...ref, ...(isFirst ? { isOriginal: true } : {}) }, isShown: true };
  }

  async function postToChannel(content: DiscordContent, how: PostHow): Promise<PostedMessage> {
    const { files = [], nonce = randomNonce(), signal, urgency } = how;
    const { channelId, replyTo, isChain = address.isChain, found, reservation } = await destinations.find();
    if (found !== undefined && posted === 0 && files.length === 0)
      return { ref: found, isShown: await replaceText(found, content, how) };
    const body = {
      ...withAltTexts(content, files),
      nonce,
      enforce_nonce: true,
      ...(replyTo === undefined || (firstId !== undefined && isChain !== true)
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
    } catch (refusal) {
      const error = withPermission(refusal, files.length > 0 ? "Attach Files" : postingIn(channelId));
      // Who may not attach files in the thread may not in its channel either.
      if (files.length > 0 && discordCode(error) === errorCodes.missingPermissions) throw error;
      if (!isParleyError(error, "platform-forbidden") || !(await leaveThread(channelId, error))) throw error;
      return postToChannel(content, how);
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
    { isPlaceholder = false, signal, urgency }: PostHow,
  ): Promise<boolean> {
    if (isPlaceholder) return false;
    await clock.sleep(ownershipMs, signal);
    await editOwn(ref, content, { signal, urgency });
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

  /** Returns the permission that posting in a channel of this reply needs. */
  function postingIn(channelId: string): string {
    const isThread = isThreadType(address.channelType)
      ? channelId === address.channelId
      : channelId !== address.channelId;
    return isThread ? "Send Messages in Threads" : "Send Messages";
  }

  /** Tries to continue the reply in the channel that contains the thread. Returns whether it could. */
  async function leaveThread(threadId: string, error: unknown): Promise<boolean> {
    const before = destinations.known()?.channelId;
    if (!(await destinations.leaveThread(threadId, error))) return false;
    // The next message says where the reply goes on.
    if (before === undefined || before === threadId) firstId = undefined;
    return true;
  }

  /** @throws ParleyError `platform-rejected` where it is too late to edit: the caller posts a new one */
  async function editMessage(ref: MessageRef, content: DiscordContent, how: SendOptions): Promise<void> {
    const clicked = options.freshTokens.of(ref.messageId);
    const token = clicked ?? liveInteraction();
    if (!ref.isOwn && token !== undefined) {
      // A click's response is an edit of the message that has the button.
      const isOriginal = clicked !== undefined || ref.isOriginal === true;
      try {
        await api.editFollowUp(token, isOriginal ? "@original" : ref.messageId, content, how);
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

  async function removeMessage(ref: MessageRef): Promise<void> {
    const token = options.freshTokens.of(ref.messageId) ?? liveInteraction();
    if (!ref.isOwn && token !== undefined)
      return await api.deleteFollowUp(token, ref.isOriginal === true ? "@original" : ref.messageId);
    await api.deleteMessage(ref.channelId, ref.messageId);
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
    maxBareLength: maxContentChars,
    lengthOf,
    lengthOfSource,
    maxMessages: address.interaction?.isGuest === true ? maxGuestMessages : maxMessages,
    minEditIntervalMs: 1100,

    async post(content, signal, urgency) {
      if (liveInteraction() === undefined) await destinations.find();
      const { overflow, ...shown } = render(content, firstId === undefined);
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
      lastShownAt = clock.monotonic();
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
          lastShownAt = clock.monotonic();
        }
      } catch (error) {
        if (discordCode(error) === errorCodes.threadLocked && (await leaveThread(ref.channelId, error)))
          throw new ParleyError(
            "platform-rejected",
            "the thread is locked: the answer goes on in the channel",
          );
        if (discordCode(error) !== errorCodes.unknownMessage) throw error;
        // Somebody deleted it on purpose, so it is not posted again.
        log.info({ channel: ref.channelId }, "message of a reply was deleted: its text is not shown again");
        return given;
      }
      await showOverflow(ref, overflow, { signal, urgency });
      return given;
    },

    remove: (given) => removeMessage(fromRef(given)),

    async upload(files: readonly ReplyFile[], signal) {
      return await uploads.run(files, maxFileBytesAt(address), async (batch, nonce) => {
        const how = { files: batch, nonce, signal, urgency: "final" } as const;
        const { ref } = await postMessage({ ...toSentence(""), content: "" }, how);
        posted += 1;
        return toRef(ref);
      });
    },

    ...(typing === undefined ? {} : { sign: toSign(typing) }),

    roomInMs(kind) {
      // The few edits that an old message takes are kept for its end.
      if (kind === "preview" && firstId !== undefined && isOldMessage(firstId, options.now()))
        return Infinity;
      if (liveInteraction() !== undefined) return 0;
      const where = destinations.known()?.channelId;
      const own = where === undefined ? [] : [kind === "first" ? lanes.posts(where) : lanes.edits(where)];
      const roomMs = scheduler.waitMs([...own, lanes.global], "preview");
      if (kind === "first") return roomMs;
      const intervalMs = Math.max(...[...own, lanes.global].map((lane) => scheduler.previewIntervalMs(lane)));
      return Math.max(roomMs, lastShownAt + intervalMs - clock.monotonic());
    },

    close() {
      isClosed = true;
      for (const leave of leaves.splice(0)) leave();
      destinations.close();
    },
  };

  /** Opens the thread while the model works, after it was asked. The first text does not wait for that. */
  function toSign(sign: WorkSign): WorkSign {
    return {
      ...sign,
      show() {
        setImmediate(() => {
          if (isClosed) return;
          destinations.find().catch((error: unknown) => log.debug({ err: error }, "thread not opened yet"));
        });
        sign.show();
      },
    };
  }

  /** Renders a message. Notices about the destination are below the first message once it is final. */
  function render(content: MessageContent, isFirst: boolean) {
    const isFinal = content.state === "finished" || content.state === "failed";
    return toDiscordContent(content, isFirst && isFinal ? (destinations.known()?.notices ?? []) : []);
  }
}

/** Text that comes sooner needs no sign. */
const startAfterMs = 200;
/** Discord shows typing for ten seconds. */
const repeatMs = 8000;
/** How long a post waits for a request in flight, which would otherwise show typing after it. */
const settleMs = 500;

/** Typing as a sign of work. */
interface TypingSign extends WorkSign {
  /** Stops it. Resolves when no request is in flight, after half a second at the latest. */
  stop(): Promise<void>;
}

/**
 * Shows "typing…" where the reply will be posted, until it is cleared or the bot's next message ends it.
 * @param channelId resolves to the channel; called when typing starts
 */
function createTypingSign(options: {
  readonly api: Pick<DiscordApi, "startTyping">;
  readonly channelId: () => Promise<string>;
  readonly clock: Clock;
  readonly log: Log;
}): TypingSign {
  const { api, clock, log } = options;
  const cleared = new AbortController();
  let cancelTimer: CancelTimer | undefined;
  let inFlight: Promise<void> | undefined;

  async function type(): Promise<void> {
    try {
      const channelId = await options.channelId();
      if (!cleared.signal.aborted) await api.startTyping(channelId, { signal: cleared.signal });
    } catch (error) {
      if (!cleared.signal.aborted) log.debug({ err: error }, "typing not shown");
    }
  }

  function run(): void {
    inFlight = type();
    cancelTimer = clock.after(repeatMs, run);
  }

  function clear(): void {
    cancelTimer?.();
    // A reason of our own: the default one is an exception, whose stack is the larger part of the cost.
    cleared.abort("cleared");
  }

  return {
    show() {
      if (cleared.signal.aborted) return;
      cancelTimer ??= clock.after(startAfterMs, run);
    },
    clear,
    async stop() {
      clear();
      if (inFlight === undefined) return;
      await inTime(inFlight, settleMs, { clock });
      inFlight = undefined;
    },
  };
}
