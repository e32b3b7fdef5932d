import { isAnswered, type AnswerRule } from "../../../core/addressee.ts";
import type { PlaceSettings, Receiver } from "../../../core/platform.ts";
import {
  isDirectMessages,
  toChannelPlace,
  toChannelTerm,
  toConversationId,
  toTeamTerm,
  toUnixMs,
  type SlackMessageInfo,
} from "../address.ts";
import type { Identity } from "../transport/web-api.ts";
import { mentions, toSpoken } from "./read-message.ts";

/** A message in an event that tells of its change. */
export interface ChangedMessage extends SlackMessageInfo {
  /** This is the author's last edit, to the second. */
  readonly edited?: { readonly ts: string };
}

/** These are the fields of a `message` or `app_mention` event that Parley reads. */
export interface MessageEvent extends ChangedMessage {
  readonly channel: string;
  /** The event happened at this time, to the microsecond. */
  readonly event_ts?: string;
  readonly message?: Partial<ChangedMessage>;
  readonly previous_message?: Partial<ChangedMessage>;
  readonly deleted_ts?: string;
}

/** Messages that people write have these subtypes. All others are edits, joins and the like. */
const writtenSubtypes = new Set([undefined, "file_share", "thread_broadcast", "me_message"]);

/** Returns what decides who wrote a message, and whether it is for the bot. */
export function createAddressee(
  identity: Identity,
  receiver: Pick<Receiver, "answersTo" | "heardAside" | "placeSettings">,
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

  /** @throws ParleyError `store-unavailable` */
  async function isForBot(event: MessageEvent): Promise<boolean> {
    const spoken = toSpoken(event.text ?? "", {
      author: isByPerson(event) ? "person" : "app",
      isDirect: isDirectMessages(event.channel),
      botUserId: identity.userId,
    });
    // What calls the bot is answered whatever is set.
    const rule: AnswerRule = spoken.isCall === true ? { answerTo: "mentions" } : await ruleOf(event);
    return isAnswered(spoken, rule);
  }

  const placeOf = (event: MessageEvent) => ({
    server: toTeamTerm(identity.teamId),
    channel: toChannelTerm(event.channel),
    channelPlace: toChannelPlace(identity.teamId, event.channel),
  });

  /** By default what is said below the bot's own message is said to the bot, unless it was sent away. */
  async function ruleOf(event: MessageEvent): Promise<AnswerRule> {
    if (isThreadRoot(event)) return settingsOf(event);
    const isBelowOwn = event.parent_user_id === identity.userId;
    const rule = await receiver.answersTo(conversationOf(event), placeOf(event));
    return rule ?? { answerTo: isBelowOwn ? "addressed" : "mentions", isDefault: true };
  }

  /** Whether the thread of a reply is the bot's, so that what is said in it is stored. */
  async function isInOwnThread(event: MessageEvent): Promise<boolean> {
    const rule = await receiver.answersTo(conversationOf(event), placeOf(event));
    return rule !== undefined && rule.answerTo !== "mentions";
  }

  const isReply = ({ channel, ts, thread_ts: thread }: MessageEvent): boolean =>
    thread !== undefined && thread !== ts && !isDirectMessages(channel);

  /** Whether it is in a thread in which people talk with each other. */
  const isInRoom = async (event: MessageEvent): Promise<boolean> =>
    isReply(event) && !(await isInOwnThread(event));

  /** Has what is said to others in the bot's thread read with the next question. */
  async function hearAside(event: MessageEvent): Promise<void> {
    if (isReply(event) && (await isInOwnThread(event)))
      await receiver.heardAside(conversationOf(event), toUnixMs(event.ts));
  }

  /** Returns how the channel of a message is answered. */
  const settingsOf = (event: MessageEvent): Promise<PlaceSettings> => receiver.placeSettings(placeOf(event));

  /** Returns whether the message is answered in the channel itself. Threads and direct messages are not. */
  async function isAnsweredInChannel(event: MessageEvent): Promise<boolean> {
    if (event.thread_ts !== undefined || isDirectMessages(event.channel)) return false;
    return (await settingsOf(event)).answerIn === "channel";
  }

  return {
    isByPerson,
    isByApp,
    isAddressed,
    isForBot,
    isInRoom,
    isAnsweredInChannel,
    hearAside,
    conversationOf,
  };
}

/** Whether the message stands in the channel itself. */
export function isThreadRoot({ ts, thread_ts: thread }: MessageEvent): boolean {
  return thread === undefined || thread === ts;
}
