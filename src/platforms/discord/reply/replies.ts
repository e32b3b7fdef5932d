import type { Clock, CancelTimer } from "../../../core/clock.ts";
import { ParleyError } from "../../../core/errors.ts";
import type { Platform } from "../../../core/platform.ts";
import type { ReplyFile } from "../../../core/reply.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inTime } from "../../../support/clock.ts";
import { createRecent } from "../../../support/recent.ts";
import { translate } from "../../../words/translate.ts";
import { createEditingReply } from "../../delivery/editing-reply.ts";
import {
  parseShownFiles,
  type EditTarget,
  type MessageContent,
  type WorkSign,
} from "../../delivery/message-plan.ts";
import {
  type DiscordAddress,
  fromReplyAddress,
  idPrefix,
  toAuthorId,
  toRefKey,
  toReplyAddress,
  maxFileBytesAt,
  fromRef,
  toRef,
} from "../address.ts";
import { discordCode, errorCodes } from "../errors.ts";
import { createUploads } from "../intake/files.ts";
import type { DiscordApi } from "../transport/api.ts";
import { isOldMessage, lanes } from "../transport/delivery.ts";
import type { Directory } from "../transport/directory.ts";
import {
  toPrivateSentence,
  toSentence,
  lengthOf,
  lengthOfAll,
  lengthOfSource,
  maxContentChars,
  maxPieceChars,
  toDiscordContent,
} from "./content.ts";
import { createDestinationFinder, type ReplyOptions } from "./destination.ts";
import { createReplyMessages, type PostHow } from "./reply-messages.ts";
import { createThreads } from "./threads.ts";
import { ChannelType } from "discord.js";

const maxReplies = 2000;

/** Opens replies on Discord, by their saved addresses. */
export function createReplies(options: {
  readonly api: DiscordApi;
  readonly directory: Directory;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly clock: Clock;
  readonly log: Log;
}): Pick<
  Platform,
  "openReply" | "openThread" | "shownMessageKeys" | "toPrivateAddress" | "tellAlone" | "channelAddress"
> {
  const { api, directory, clock, log } = options;
  /** What the last replies have shown, by their events: the store may have been away when they saved it. */
  const shown = createRecent<Pick<DiscordAddress, "messages" | "posts" | "files">>(maxReplies);
  const threads = createThreads(api, directory, log, clock);

  return {
    openReply(given, hooks) {
      const saved = fromReplyAddress(given);
      const { eventId = "" } = saved;
      const isSaved = (saved.messages ?? []).length > 0;
      const address = isSaved ? saved : { ...saved, ...shown.get(eventId) };
      const { target, posts } = createDiscordTarget({
        ...options,
        address,
        isResumed: hooks.isResumed === true,
        threads,
      });
      return createEditingReply({
        target,
        savedRefs: address.messages ?? [],
        savedFiles: parseShownFiles(address.files),
        saveRefs(refs, files) {
          const its = {
            messages: refs,
            posts: posts(),
            ...(files === undefined ? {} : { files: { ...files } }),
          };
          if (eventId !== "" && posts() > 0) shown.set(eventId, its);
          return hooks.saveAddress(toReplyAddress({ ...address, ...its }));
        },
        log: options.log,
        clock: options.clock,
        isFresh: () => hooks.isFresh?.() !== false,
        isCalm: hooks.isCalm === true,
        isEndOnly: hooks.isEndOnly === true,
        stop: hooks.stop,
        placeholder: translate("delivery.status", { status: translate("delivery.thinking") }),
        // Discord shows "thinking…" for a deferred command until the first edit.
        firstMessageIsShown: address.interaction !== undefined && (address.messages ?? []).length === 0,
      });
    },
    shownMessageKeys(given) {
      const { messages = [], files } = fromReplyAddress(given);
      return [...messages, ...(parseShownFiles(files)?.refs ?? [])].map((ref) => toRefKey(ref));
    },
    // A direct message is private already. Elsewhere only interactions have private answers.
    toPrivateAddress(given) {
      const address = fromReplyAddress(given);
      const { interaction } = address;
      if ((address.channelType as ChannelType) === ChannelType.DM) return given;
      if (interaction === undefined || options.now() >= interaction.expiresAt) return undefined;
      if (interaction.isPrivate) return given;
      return toReplyAddress({
        ...address,
        interaction: { ...interaction, isPrivate: true, hasPublicPlaceholder: true },
      });
    },
    async tellAlone(given, authorId, text) {
      const { channelId, channelType, interaction } = fromReplyAddress(given);
      if (interaction !== undefined && options.now() < interaction.expiresAt)
        return void (await api.followUp(interaction, toPrivateSentence(text)));
      if ((channelType as ChannelType) === ChannelType.DM)
        return void (await api.createMessage(channelId, toSentence(text)));
      const userId = authorId.slice(toAuthorId("").length);
      if (!(await api.tellDirectly(userId, toSentence(text))))
        throw new ParleyError("busy", "too many direct messages were opened lately");
    },
    channelAddress: (channel, name) =>
      toReplyAddress({
        channelId: channel.slice(idPrefix.length),
        channelType: ChannelType.GuildText,
        eventId: name,
      }),
    openThread: (address, { title }) => threads.open(fromReplyAddress(address), title),
  };
}

/** What is kept free for the notice why there is no thread, in characters. */
const noThreadNoticeChars = 200;

const maxMessages = 8;

/**
 * Posts and edits a reply's messages on Discord. They are messages of the interaction while its token is
 * valid, otherwise ordinary messages in a channel or thread. `posts` is the number of posts so far.
 */
function createDiscordTarget(options: ReplyOptions): {
  readonly target: EditTarget;
  readonly posts: () => number;
} {
  const { api, address, clock, log } = options;
  const { limits } = api;
  const destinations = createDestinationFinder(options);
  const messages = createReplyMessages({
    ...options,
    destinations,
    // Typing that arrives after the message would be shown below it.
    beforePost: async () => typing?.stop(),
  });
  /** A command has a sign of its own. */
  const typing =
    messages.liveInteraction() === undefined
      ? createTypingSign({ api, channelId: async () => (await destinations.find()).channelId, clock, log })
      : undefined;
  let isClosed = false;
  let lastShownAt = Number.NEGATIVE_INFINITY;
  const uploads = createUploads(address.eventId);
  /** The known content of messages, as JSON. An edit that changes nothing is not sent. */
  const shownAs = new Map<string, string>();

  const target: EditTarget = {
    maxLength: maxPieceChars,
    maxBareLength: address.thread === undefined ? maxContentChars : maxContentChars - noThreadNoticeChars,
    lengthOf,
    lengthOfSource,
    lengthOfAll,
    maxMessages,
    minEditIntervalMs: 1100,
    isBelowFiles: true,

    async post(content, call) {
      if (messages.liveInteraction() === undefined) await destinations.find();
      const isFirst = messages.firstId() === undefined;
      const how: PostHow = {
        ...(address.eventId === undefined ? {} : { nonce: `${address.eventId}.${messages.count()}` }),
        isPlaceholder: content.state === "waiting",
        isOfCaller: content.state === "failed" && content.retryKey === undefined,
        ...call,
      };
      const { ref, isShown } = await messages.post(() => render(content, isFirst), how);
      if (isShown) shownAs.set(ref.messageId, JSON.stringify(render(content, isFirst)));
      lastShownAt = clock.monotonic();
      return toRef(ref);
    },

    async edit(given, content, how) {
      const ref = fromRef(given);
      const shown = render(content, ref.messageId === messages.firstId());
      const wanted = JSON.stringify(shown);
      try {
        if (shownAs.get(ref.messageId) !== wanted) {
          shownAs.delete(ref.messageId);
          await messages.edit(ref, shown, how);
          shownAs.set(ref.messageId, wanted);
          lastShownAt = clock.monotonic();
        }
      } catch (error) {
        if (discordCode(error) !== errorCodes.unknownMessage) throw error;
        // Somebody deleted it on purpose, so it is not posted again.
        log.info({ channel: ref.channelId }, "message of a reply was deleted: its text is not shown again");
      }
      return given;
    },

    remove: (given) => messages.remove(fromRef(given)),

    async upload(files: readonly ReplyFile[], signal) {
      return await uploads.run(files, maxFileBytesAt(address), async (batch, nonce) => {
        const how = { files: batch, nonce, signal, urgency: "final" } as const;
        const { ref } = await messages.post(() => ({ ...toSentence(""), content: "" }), how);
        return toRef(ref);
      });
    },

    ...(typing === undefined ? {} : { sign: toSign(typing) }),

    roomInMs(urgency) {
      // The few edits that an old message takes are kept for its end.
      const firstId = messages.firstId();
      if (firstId !== undefined && isOldMessage(firstId, options.now()) && urgency === "growth")
        return Infinity;
      if (messages.liveInteraction() !== undefined) return 0;
      const where = destinations.known()?.channelId;
      const method = firstId === undefined ? lanes.posts : lanes.edits;
      const its = where === undefined ? [lanes.global] : [method(where), lanes.global];
      const roomMs = limits.waitMs(its, urgency);
      if (urgency === "first") return roomMs;
      const intervalMs = Math.max(...its.map((lane) => limits.intervalMs(lane)));
      return Math.max(roomMs, lastShownAt + intervalMs - clock.monotonic());
    },

    close() {
      isClosed = true;
      messages.close();
    },
  };
  return { target, posts: () => messages.count() };

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
