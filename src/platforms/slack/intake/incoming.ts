import type { Clock } from "../../../core/clock.ts";
import { isParleyError, isRefusal, type ParleyError } from "../../../core/errors.ts";
import type { IncomingMessage, MessageEdit } from "../../../core/events.ts";
import type { Placement } from "../../../core/placement.ts";
import type { ConversationHistory, EditedMessage, Receiver } from "../../../core/receiver.ts";
import type { Log } from "../../../core/telemetry.ts";
import { systemClock } from "../../../support/clock.ts";
import { createKeyedQueue } from "../../../support/queues.ts";
import { toTitle } from "../../../support/text.ts";
import { currentLocale, inLanguage } from "../../../words/translate.ts";
import {
  teamOf,
  placesAround,
  isDirectMessages,
  toChannelConversationId,
  toAuthorId,
  toMessageKey,
  toReplyAddress,
  toUnixMs,
  toChannelPlace,
  toChannelTerm,
  toConversationId,
  toTeamTerm,
  type SlackMessageInfo,
} from "../address.ts";
import { withLookupTime } from "../errors.ts";
import type { Origins, People } from "../people.ts";
import { mentions, type MessageReader, toSpoken } from "./read-message.ts";
import { createNotAcceptedLog } from "../../delivery/receive-patiently.ts";
import type { RefusalNotices } from "../press/notices.ts";
import type { Identity } from "../transport/call.ts";
import { createRecent } from "../../../support/recent.ts";

interface IncomingOptions {
  readonly identity: Identity;
  readonly people: People;
  readonly read: MessageReader;
  readonly origins: Pick<Origins, "originOf">;
  readonly refusals: RefusalNotices;
  readonly receiver: Receiver;
  readonly history: Pick<ConversationHistory, "conversationOf" | "knows">;
  /** Returns whether the bot has removed a message itself. */
  readonly isOwnRemoval: (ts: string) => boolean;
  /** Whether earlier messages of a channel may still be found by a look-up. Default false. */
  readonly mayFindIn?: (channel: string) => boolean;
  /** Called with the first message of a thread, by its key, before it is accepted. */
  readonly saveTitle: (key: string, title: string) => void;
  readonly clock?: Clock | undefined;
  readonly log: Log;
}

const maxHeard = 500;
/**
 * A mention waits so long for the `message` event of the same message, which has its files. Where the mention
 * is what brings the bot into the channel, there is none.
 */
const messageEventMs = 500;
/**
 * Slack gives up after this redelivery.
 * @see https://docs.slack.dev/apis/events-api#retries describes them.
 */
const lastRedelivery = 3;
type Question = Extract<Placement, { readonly kind: "question" }>;
/** A mention that is edited into a message after so many milliseconds is not a question any more. */
const maxEditedMs = 10 * 60_000;
/** Decides which events the bot must answer and turns them into {@link IncomingMessage}s. */
export function createIncoming(options: IncomingOptions) {
  const { identity, people, read, refusals, receiver, history, log, clock = systemClock } = options;
  const logNotAccepted = createNotAcceptedLog(log, clock);
  /** By channel, so that looking up names and files does not change the order of messages. */
  const inOrder = createKeyedQueue();
  /** The `message` events of these messages have come to this process. */
  const heard = createRecent(maxHeard);

  const keyOf = (event: MessageEvent) => toMessageKey(identity.teamId, event.channel, event.ts);
  const addressee = createAddressee(identity, people, receiver);
  const { isByPerson, conversationOf } = addressee;
  /**
   * Returns the conversations that a message may be in: that of its thread, and that of the whole channel.
   */
  const conversationsOf = (event: MessageEvent) =>
    [conversationOf(event), toChannelConversationId(identity.teamId, event.channel)] as const;
  /** The edit of a message that is taken in its edited form, which may have been said to others before. */
  const toEdit = (event: MessageEvent): MessageEdit => ({
    at: toEditedAt(event),
    madeQuestion: true,
  });

  /** Accepts a message, or says why it is refused. */
  async function accept(event: MessageEvent, placement: Question, redelivery: number): Promise<void> {
    try {
      await take(event, placement, options.mayFindIn?.(event.channel) === true);
    } catch (error) {
      if (!isLastOutage(error, redelivery) && !isParleyError(error, "busy") && !isRefusal(error)) throw error;
      await tell(event, error);
    }
  }

  async function take(event: MessageEvent, placed: Question, mayBeEarly = false): Promise<void> {
    const key = keyOf(event);
    const user = event.user ?? "";
    const { conversationId, inRoom, where } = placed;
    const isInChannel = isThreadRoot(event) && where === "here" && !isDirectMessages(event.channel);
    const [{ text, attachments }, author, language, origin] = await Promise.all([
      read(event),
      people.namesOf(user),
      people.languageOf(user),
      options.origins.originOf({ user, channel: event.channel, team: teamOf(event) }),
    ]);
    const message: IncomingMessage = {
      kind: "message",
      key,
      platform: "slack",
      conversationId,
      author: {
        id: toAuthorId(identity.teamId, user),
        ...author,
        ...inLanguage(language, currentLocale),
      },
      sentAt: toUnixMs(event.ts),
      ...placesAround(identity.teamId, event.channel),
      origin,
      ...(inRoom ? { inRoom } : {}),
      address: toReplyAddress({
        key,
        channel: event.channel,
        user,
        ...(isInChannel ? {} : { thread: event.thread_ts ?? event.ts }),
        since: toUnixMs(event.ts),
      }),
      text,
      attachments,
      ...(event.edited === undefined ? {} : { edit: toEdit(event) }),
    };
    if (isThreadRoot(event) && !isInChannel) options.saveTitle(key, toTitle(text));
    await inLanguage(language, () => receiver.receive(message, mayBeEarly ? { mayBeEarly } : {}));
  }

  /**
   * Says why the message is not answered, or that it may not be. Who did not speak to the bot is told
   * nothing.
   */
  async function tell(event: MessageEvent, error: ParleyError): Promise<void> {
    logNotAccepted("message", { key: keyOf(event) }, error);
    const { channel, ts, thread_ts: thread, user = "" } = event;
    if (thread === undefined && !addressee.isAddressed(event)) return;
    const language = await people.languageOf(user);
    await inLanguage(language, () => refusals.tell({ channel, user, ts, thread }, error));
  }

  /**
   * Returns what becomes of a message. Where the store cannot say so at Slack's last delivery, who
   * mentioned it or wrote below its own message is told; whose other threads are is not known.
   * @throws ParleyError `store-unavailable`
   */
  async function placeOf(event: MessageEvent, redelivery: number): Promise<Placement> {
    try {
      return await addressee.placeOf(event);
    } catch (error) {
      const isBelowOwn = event.parent_user_id === identity.userId;
      const mayBeForBot = isByPerson(event) && (isBelowOwn || addressee.isAddressed(event));
      if (mayBeForBot && isLastOutage(error, redelivery)) await tell(event, error);
      throw error;
    }
  }

  /**
   * Reports an edited message of a person or another app, and returns `false` if the event is no change of a
   * message. A message also changes when Slack adds the preview of a link to it, and when replies to it are
   * counted; then its words stay the same. Only its content says that an app's message was changed.
   * @throws ParleyError `store-unavailable`
   * @see https://docs.slack.dev/reference/events/message/message_changed describes the event.
   */
  async function reportEdited(event: MessageEvent): Promise<boolean> {
    if (event.subtype !== "message_changed") return false;
    const { channel, message: changed, previous_message: before } = event;
    if (changed?.ts === undefined) return true;
    const message: MessageEvent = { ...changed, ts: changed.ts, channel, event_ts: event.event_ts };
    const isPersons = isByPerson(message);
    const isReported = isPersons
      ? isEdited(message, before)
      : addressee.isByApp(message) && contentOf(message) !== contentOf(before ?? {});
    if (!isReported) return true;
    let placement: Placement | undefined;
    const edited: EditedMessage = {
      kind: "edit",
      key: keyOf(message),
      editedAt: toEditedAt(message),
      conversationIds: conversationsOf(message),
      // The receiver may call this later.
      async read({ wasAsked = false }) {
        const content = await withLookupTime(clock, () => read(message));
        placement = isPersons ? await addressee.placeOf(message, { wasAsked }) : undefined;
        const isAside = placement !== undefined && placement.kind !== "question";
        return isAside ? { ...content, isAside } : content;
      },
    };
    const outcome = await receiver.changed(edited);
    if (outcome === "changed" && placement !== undefined) await addressee.hear(placement);
    // It was said to others before, or Slack still delivers the message again as it was written.
    if (outcome === "unknown" && isPersons && !isLateEdit(message)) {
      placement ??= await addressee.placeOf(message);
      if (placement.kind === "question") await accept(message, placement, 0);
    }
    return true;
  }

  /**
   * Reports a deleted message, and returns `false` if the event is no deletion. Slack does not delete the
   * root of a thread with replies but changes it into a tombstone. What this process has replaced is not
   * reported; what another one has is named by nothing that is stored.
   * @throws ParleyError `store-unavailable`
   * @see https://docs.slack.dev/reference/events/message/message_deleted describes the event.
   */
  async function reportDeleted(event: MessageEvent): Promise<boolean> {
    const isTombstone = event.subtype === "message_changed" && event.message?.subtype === "tombstone";
    if (event.subtype !== "message_deleted" && !isTombstone) return false;
    const { channel } = event;
    const deleted = isTombstone ? event.message : event.previous_message;
    const ts = isTombstone ? deleted?.ts : (event.deleted_ts ?? deleted?.ts);
    if (ts === undefined || options.isOwnRemoval(ts)) return true;
    const thread = deleted?.thread_ts;
    const message = { ts, channel, ...(thread === undefined ? {} : { thread_ts: thread }) };
    const keys = [keyOf(message)];
    const [conversationId, inChannel] = conversationsOf(message);
    await receiver.changed({ kind: "delete-messages", conversationId, keys });
    // The message may have been answered in the channel itself.
    if (thread === undefined && !isDirectMessages(channel) && (await history.knows(inChannel)))
      await receiver.changed({ kind: "delete-messages", conversationId: inChannel, keys });
    return true;
  }

  /**
   * Accepts a message that was written while nobody heard it. The access rules refuse it silently, since they
   * refuse it at each look-up. @throws ParleyError `store-unavailable`
   */
  async function acceptMissed(event: MessageEvent, placement: Question): Promise<void> {
    try {
      await take(event, placement);
    } catch (error) {
      if (isParleyError(error, "access-denied")) return;
      if (!isParleyError(error, "busy") && !isRefusal(error)) throw error;
      await tell(event, error);
    }
  }

  return {
    /**
     * Takes a message that was found by a look-up, as it is now. Resolves to whether it is a question.
     * @throws ParleyError `store-unavailable`
     */
    onMissed(event: MessageEvent): Promise<boolean> {
      if (isByPerson(event)) heard.set(keyOf(event), true);
      return inOrder.run(event.channel, async () => {
        if (!isByPerson(event) && !addressee.isByApp(event)) return false;
        const placement = await addressee.placeOf(event);
        if (placement.kind === "question") await acceptMissed(event, placement);
        else await addressee.hear(placement);
        return placement.kind === "question";
      });
    },
    /**
     * Returns the conversation of a message that would be a question and is not known.
     * @throws ParleyError `store-unavailable`
     */
    async askedIn(event: MessageEvent): Promise<string | undefined> {
      if (!isByPerson(event) || (await history.conversationOf(keyOf(event))) !== undefined) return undefined;
      const placement = await addressee.placeOf(event);
      return placement.kind === "question" ? placement.conversationId : undefined;
    },
    /**
     * Resolves when the event is durable, ignored or refused in words. It rejects when Slack must deliver the
     * event again.
     * @param redelivery is 0 for the first delivery
     */
    onMessage(event: MessageEvent, redelivery: number): Promise<void> {
      if (isByPerson(event)) heard.set(keyOf(event), true);
      return inOrder.run(event.channel, async () => {
        if ((await reportDeleted(event)) || (await reportEdited(event))) return;
        if (!isByPerson(event) && !addressee.isByApp(event)) return;
        const placement = await placeOf(event, redelivery);
        if (placement.kind === "question") await accept(event, placement, redelivery);
        else await addressee.hear(placement);
      });
    },
    /** Does the same for a mention whose message has no event of its own by then, or was edited. */
    async onMention(event: MessageEvent, redelivery: number): Promise<void> {
      if (!isByPerson(event) || isLateEdit(event)) return;
      // An edit may have added the mention to a message that has long come.
      if (event.edited === undefined) {
        if (!heard.has(keyOf(event))) await clock.sleep(messageEventMs);
        if (heard.has(keyOf(event))) return;
      }
      await inOrder.run(event.channel, async () => {
        const placement = await placeOf(event, redelivery);
        if (placement.kind === "question") await accept(event, placement, redelivery);
      });
    },
  };
}

/** Returns whether the store is unavailable, and Slack does not deliver the event again. */
function isLastOutage(error: unknown, redelivery: number): error is ParleyError {
  return isParleyError(error, "store-unavailable") && redelivery >= lastRedelivery;
}

/** Returns when the message was edited last. The microseconds of this time order edits. */
function toEditedAt({ event_ts: at, edited, ts }: MessageEvent): number {
  return Number(at ?? edited?.ts ?? ts) * 1000;
}

/** Returns whether a message was edited so late that it is history. */
function isLateEdit({ ts, edited }: MessageEvent): boolean {
  return edited !== undefined && toUnixMs(edited.ts) - toUnixMs(ts) > maxEditedMs;
}

function isEdited(message: SlackMessageInfo, before: Partial<SlackMessageInfo> | undefined): boolean {
  if (message.edited === undefined) return false;
  if (before === undefined || message.edited.ts !== before.edited?.ts) return true;
  // The text tells a second edit in the same second.
  return message.text !== before.text || idsOf(message) !== idsOf(before);
}

/** Returns what an app's message shows. */
function contentOf({ text, blocks, attachments, files }: Partial<SlackMessageInfo>): string {
  return JSON.stringify([text, blocks, attachments, files?.map(({ id }) => id)]);
}

function idsOf({ files = [] }: Partial<SlackMessageInfo>): string {
  return files.map(({ id }) => id).join(" ");
}

/** These are the fields of a `message` or `app_mention` event that Parley reads. */
export interface MessageEvent extends SlackMessageInfo {
  readonly channel: string;
  /** The event happened at this time, to the microsecond. */
  readonly event_ts?: string | undefined;
  readonly message?: Partial<SlackMessageInfo>;
  readonly previous_message?: Partial<SlackMessageInfo>;
  readonly deleted_ts?: string;
}

/** Messages that people write have these subtypes. All others are edits, joins and the like. */
const writtenSubtypes = new Set([undefined, "file_share", "thread_broadcast", "me_message"]);

/** Returns what decides who wrote a message, and what becomes of it. */
function createAddressee(
  identity: Identity,
  people: Pick<People, "find">,
  receiver: Pick<Receiver, "placeMessage" | "receive">,
) {
  const conversationOf = (event: MessageEvent) =>
    toConversationId(identity.teamId, event.channel, event.thread_ts ?? event.ts);

  function isByPerson(event: SlackMessageInfo): boolean {
    return (
      event.bot_id === undefined &&
      event.user !== undefined &&
      event.user !== identity.userId &&
      writtenSubtypes.has(event.subtype)
    );
  }

  /** Returns whether another app posted the message. The bot changes its own messages all the time. */
  const isByApp = ({ bot_id: botId, user }: SlackMessageInfo): boolean =>
    botId !== undefined && botId !== identity.botId && user !== identity.userId;

  /** Returns whether the message speaks to the bot, whatever is set. */
  const isAddressed = (event: MessageEvent) =>
    isDirectMessages(event.channel) || mentions(event.text ?? "", identity.userId);

  /**
   * Returns what becomes of a message. Said below the bot's own message, it is said in a thread of the bot's.
   * @throws ParleyError `store-unavailable`
   */
  async function placeOf(event: MessageEvent, how: { readonly wasAsked?: boolean } = {}): Promise<Placement> {
    const { channel, text = "", files = [] } = event;
    const conversationId = conversationOf(event);
    const place = {
      server: toTeamTerm(identity.teamId),
      channel: toChannelTerm(channel),
      channelPlace: toChannelPlace(identity.teamId, channel),
    };
    const isDirect = isDirectMessages(channel);
    const isRoot = isThreadRoot(event);
    const isBelowOwn = event.parent_user_id === identity.userId;
    return await receiver.placeMessage({
      ...toSpoken(text, {
        author: isByPerson(event) ? "person" : "app",
        isDirect,
        botUserId: identity.userId,
      }),
      botNames: await botNames(isRoot),
      hasFiles: files.length > 0,
      authorId: toAuthorId(identity.teamId, event.user ?? ""),
      sentAt: toUnixMs(event.ts),
      isEdited: event.edited !== undefined,
      stands: isDirect
        ? { in: "direct", conversationId }
        : isRoot
          ? {
              in: "channel",
              conversationId: toChannelConversationId(identity.teamId, channel),
              threadId: conversationId,
              place,
            }
          : { in: "thread", conversationId, place, isOwn: () => isBelowOwn, isBelowOwn },
      ...how,
    });
  }

  /** The bot's names. Those of its profile are looked up where people talk with it without mentions. */
  async function botNames(isRoot: boolean): Promise<readonly string[]> {
    const { name = "", userId } = identity;
    return [name, ...(isRoot ? [] : ((await people.find(userId))?.names ?? []))];
  }

  /** Has what is said to others in the bot's thread read with the next question. */
  async function hear(placement: Placement): Promise<void> {
    if (placement.kind === "aside") await receiver.receive(placement);
  }

  return { isByPerson, isByApp, isAddressed, placeOf, hear, conversationOf };
}

/** Whether the message stands in the channel itself. */
function isThreadRoot({ ts, thread_ts: thread }: MessageEvent): boolean {
  return thread === undefined || thread === ts;
}
