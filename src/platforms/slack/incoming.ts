import { LRUCache } from "lru-cache";
import { isParleyError, isRefusal, ParleyError } from "../../core/errors.ts";
import type { Attachment, IncomingMessage } from "../../core/events.ts";
import type { PlaceSettings, Receiver } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import { createKeyedQueue } from "../../support/keyed-queue.ts";
import { backoffMs, retry } from "../../support/retry.ts";
import { steadyClock } from "../../support/steady-clock.ts";
import { refuseInTime } from "../delivery/refuse-in-time.ts";
import {
  isDirectMessages,
  placesAround,
  toChannelConversationId,
  toChannelTerm,
  toTeamTerm,
  toAuthorId,
  toConversationId,
  toMessageKey,
  toReplyAddress,
  toUnixMs,
} from "./address.ts";
import { createArrivals } from "./arrivals.ts";
import { reportDeletedMessage, type DeletionFields } from "./deletion-events.ts";
import { isUnresolved, toAttachment } from "./files.ts";
import type { Origins } from "./origin.ts";
import type { Names } from "./people.ts";
import { mentions, toPlainText } from "./plain-text.ts";
import type { RefusalNotices } from "./refusal-notices.ts";
import type { ReplacedMessages } from "./replaced-messages.ts";
import type { Identity, SlackApi, SlackFileInfo, SlackMessageInfo } from "./web-api.ts";

/** The fields of a `message` or `app_mention` event that Parley reads. */
export interface MessageEvent extends SlackMessageInfo, DeletionFields {
  readonly channel: string;
  readonly channel_type?: string;
  readonly subtype?: string;
  /** The author's workspace. */
  readonly team?: string;
  /** The same in channels that are shared with other workspaces. */
  readonly user_team?: string;
}

/** What {@link createIncoming} needs. */
export interface IncomingOptions {
  readonly api: Pick<SlackApi, "message" | "messagesAfter" | "fileInfo">;
  readonly identity: Identity;
  readonly names: Names;
  readonly origins: Pick<Origins, "originOf">;
  readonly refusals: RefusalNotices;
  readonly receiver: Receiver;
  readonly replaced: Pick<ReplacedMessages, "isOwn">;
  /** Whether a channel has more answers than Slack takes posts in time. */
  readonly isCrowded: (channel: string) => boolean;
  readonly log: Log;
}

/** Handlers of message events. */
export interface Incoming {
  /**
   * Resolves when the event is durable, ignored or refused in words; rejects when Slack must deliver it again.
   * @param redelivery 0 for the first delivery
   */
  onMessage(event: MessageEvent, redelivery: number): Promise<void>;
  /** The same. A redelivery is accepted even if its files cannot be looked up. */
  onMention(event: MessageEvent, redelivery: number): Promise<void>;
  /** The text and files of a message, for a message command. */
  read(message: SlackMessageInfo): Promise<{ text: string; attachments: readonly Attachment[] }>;
}

/** Subtypes of messages that people write. All others are edits, joins and the like. */
const writtenSubtypes = new Set([undefined, "file_share", "thread_broadcast"]);
const maxAcceptedKeys = 500;
/** How long a mention waits for the `message` event of the same message. */
const messageEventMs = 500;
/** Slack gives up after it. @see https://docs.slack.dev/apis/events-api#retries */
const lastRedelivery = 3;
/** An event that arrives so long after its message is late, in milliseconds. */
const lateMs = 3000;
/** Slack does not deliver again what was acknowledged while its thread was unknown. */
const lookUpPolicy = {
  delayMs: (error: unknown, attempt: number) => {
    const askedMs = isParleyError(error) ? (error.retryAfterMs ?? 0) : 0;
    return attempt < 6 ? Math.max(askedMs, backoffMs(attempt, { baseMs: 500, maxMs: 8000 })) : undefined;
  },
};

/** Decides which events the bot must answer and turns them into {@link IncomingMessage}s. */
export function createIncoming(options: IncomingOptions): Incoming {
  const { api, identity, names, origins, refusals, replaced, isCrowded, receiver, log } = options;
  const acceptedKeys = new LRUCache<string, true>({ max: maxAcceptedKeys });
  /** Refused, told and acknowledged: the mention's second event must not be answered. */
  const refusedKeys = new LRUCache<string, true>({ max: maxAcceptedKeys });
  /** By channel, so that looking up names and files does not change the order of messages. */
  const inOrder = createKeyedQueue();
  const arrivals = createArrivals(maxAcceptedKeys);

  const keyOf = (event: MessageEvent) => toMessageKey(identity.teamId, event.channel, event.ts);
  const isKnown = (event: MessageEvent) => acceptedKeys.has(keyOf(event)) || refusedKeys.has(keyOf(event));
  const conversationOf = (event: MessageEvent) =>
    toConversationId(identity.teamId, event.channel, event.thread_ts ?? event.ts);

  function isByPerson(event: MessageEvent): boolean {
    return (
      event.bot_id === undefined &&
      event.user !== undefined &&
      event.user !== identity.userId &&
      writtenSubtypes.has(event.subtype)
    );
  }

  const isAddressed = (event: MessageEvent) =>
    isDirectMessages(event.channel) || mentions(event.text ?? "", identity.userId);

  async function isForBot(event: MessageEvent): Promise<boolean> {
    if (event.channel_type === "im" || isAddressed(event)) return true;
    if (event.thread_ts !== undefined) return receiver.knows(conversationOf(event));
    return (await settingsOf(event)).answerTo === "every-message";
  }

  /** How the channel of a message is answered; mostly in memory. */
  const settingsOf = (event: MessageEvent): Promise<PlaceSettings> =>
    receiver.placeSettings({ server: toTeamTerm(identity.teamId), channel: toChannelTerm(event.channel) });

  /** Whether it is answered in the channel itself. Threads and direct messages stay what they are. */
  async function isAnsweredInChannel(event: MessageEvent): Promise<boolean> {
    if (event.thread_ts !== undefined || isDirectMessages(event.channel)) return false;
    return (await settingsOf(event)).answerIn === "channel";
  }

  async function accept(event: MessageEvent, redelivery: number): Promise<void> {
    const key = keyOf(event);
    if (refusedKeys.has(key)) return;
    const user = event.user ?? "";
    const isInChannel = await isAnsweredInChannel(event);
    const [{ text, attachments }, name, origin] = await Promise.all([
      read(event),
      names.nameOf(user),
      origins.originOf({ user, channel: event.channel, team: event.user_team ?? event.team }),
    ]);
    const message: IncomingMessage = {
      kind: "message",
      key,
      platform: "slack",
      conversationId: isInChannel
        ? toChannelConversationId(identity.teamId, event.channel)
        : conversationOf(event),
      author: { id: toAuthorId(identity.teamId, user), name },
      sentAt: toUnixMs(event.ts),
      ...placesAround(identity.teamId, event.channel),
      origin,
      address: toReplyAddress({
        key,
        channel: event.channel,
        user,
        ...(isInChannel ? {} : { thread: event.thread_ts ?? event.ts }),
        since: toUnixMs(event.ts),
      }),
      text,
      attachments,
    };
    try {
      // Known ones are accepted already.
      if (isCrowded(event.channel) && !acceptedKeys.has(key)) throw tooManyReplies();
      await receiver.receive(message);
    } catch (error) {
      const isLast = isParleyError(error, "store-unavailable") && redelivery >= lastRedelivery;
      if (!isLast && !isParleyError(error, "busy") && !isRefusal(error)) throw error;
      await refuse(event, error);
    }
    acceptedKeys.set(key, true);
  }

  /**
   * Says once that the message is not answered, and makes that true for its other deliveries. Slack must not deliver it
   * again: that would make it worse.
   */
  async function refuse(event: MessageEvent, error: ParleyError): Promise<void> {
    const key = keyOf(event);
    if (acceptedKeys.has(key)) return;
    // What the rules refuse, they refuse at each delivery: nothing is stored of it.
    if (!isParleyError(error, "access-denied") && (await refuseInTime(receiver, key)) === "accepted") return;
    log.info({ key, code: error.code }, "message refused");
    if (isRefusal(error)) refusedKeys.set(key, true);
    const { channel, ts, thread_ts: thread, user = "" } = event;
    // Who did not speak to the bot is told nothing.
    if (thread === undefined && !isAddressed(event)) return;
    await refusals.tell({ channel, user, ts, thread }, error);
  }

  async function read(message: SlackMessageInfo): Promise<{ text: string; attachments: Attachment[] }> {
    const [text, files] = await Promise.all([
      toPlainText(message.text ?? "", { botUserId: identity.userId, nameOf: (id) => names.nameOf(id) }),
      Promise.all((message.files ?? []).map(resolveFile)),
    ]);
    return { text, attachments: files.map(toAttachment) };
  }

  async function resolveFile(file: SlackFileInfo): Promise<SlackFileInfo> {
    if (!isUnresolved(file)) return file;
    try {
      return await api.fileInfo(file.id);
    } catch (error) {
      // The download looks it up again and shows a failure to the person.
      log.warn({ file: file.id, err: error }, "file lookup failed");
      return file;
    }
  }

  /** `app_mention` may come without the message's files, and without a `message` event beside it. */
  async function withFiles(event: MessageEvent, isRedelivery: boolean): Promise<MessageEvent> {
    if (event.files !== undefined || isKnown(event)) return event;
    // Histories may be read 50 times a minute: the other event is waited for first.
    if (await arrivals.within(keyOf(event), messageEventMs)) await inOrder.run(event.channel, async () => {});
    if (isKnown(event)) return event;
    try {
      const complete = await api.message(event.channel, event.thread_ts, event.ts);
      return complete?.files === undefined ? event : { ...event, files: complete.files };
    } catch (error) {
      // Usually the `message` event brings the files. If it never comes, the redelivery is accepted without them.
      if (!isRedelivery) throw error;
      log.warn({ key: keyOf(event), err: error }, "mention accepted without file lookup");
      return event;
    }
  }

  async function readThread(channel: string, thread: string, after: string): Promise<SlackMessageInfo[]> {
    const messages: SlackMessageInfo[] = [];
    for await (const message of api.messagesAfter(channel, thread, after)) messages.push(message);
    return messages;
  }

  /**
   * Accepts a message. What people wrote in its thread before a late mention arrived was ignored then, since the
   * thread was unknown: it is accepted now.
   */
  async function acceptWithThread(event: MessageEvent, redelivery: number): Promise<void> {
    const isLate = redelivery > 0 || steadyClock.now() - toUnixMs(event.ts) > lateMs;
    await accept(event, redelivery);
    // Also where it is known by now: the process that accepted it first may have died before it looked.
    if (!isLate || event.channel_type === "im" || !mentions(event.text ?? "", identity.userId)) return;
    const thread = event.thread_ts ?? event.ts;
    const later = retry(() => readThread(event.channel, thread, event.ts), lookUpPolicy);
    // Awaited below; until then a rejection must not count as unhandled.
    void Promise.allSettled([later]);
    // Not awaited: Slack wants its acknowledgement first. What arrives meanwhile comes after.
    void inOrder
      .run(event.channel, async () => {
        for (const message of await later) {
          const missed = { ...message, channel: event.channel, thread_ts: thread };
          if (Number(message.ts) > Number(event.ts) && isByPerson(missed))
            await retry(() => accept(missed, redelivery), lookUpPolicy);
        }
      })
      .catch((error: unknown) =>
        log.error({ key: keyOf(event), err: error }, "thread of a late mention not read"),
      );
  }

  return {
    onMessage: (event, redelivery) => {
      if (isByPerson(event)) arrivals.note(keyOf(event));
      return inOrder.run(event.channel, async () => {
        if (await reportDeletedMessage(event, { identity, api, replaced, receiver })) return;
        if (isByPerson(event) && (await isForBot(event))) await acceptWithThread(event, redelivery);
      });
    },
    async onMention(event, redelivery) {
      if (!isByPerson(event)) return;
      // Outside the queue: the `message` event may be accepted during the lookup.
      const complete = await withFiles(event, redelivery > 0);
      await inOrder.run(event.channel, () => acceptWithThread(complete, redelivery));
    },
    read,
  };
}

function tooManyReplies(): ParleyError {
  return new ParleyError("busy", "too many answers are being shown in one Slack channel");
}
