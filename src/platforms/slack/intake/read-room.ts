import type { Clock } from "../../../core/clock.ts";
import { ParleyError, isParleyError } from "../../../core/errors.ts";
import type { Platform } from "../../../core/platform.ts";
import type { RoomMessage, RoomQuery, RoomResult } from "../../../core/room.ts";
import { retry } from "../../../support/retry.ts";
import {
  isDirectMessages,
  parseAddress,
  parseMessageKey,
  toAuthorId,
  toMessageKey,
  toUnixMs,
  type SlackAddress,
  type MessagePage,
  type MessageWindow,
  type SlackMessageInfo,
} from "../address.ts";
import { isNotMember, slackErrorCode, toParleyError } from "../errors.ts";
import type { Names } from "../people.ts";
import type { MessageReader } from "./read-message.ts";
import type { Identity } from "../transport/call.ts";
import type { SlackApi } from "../transport/web-api.ts";

/** Slack recommends this page size. Apps that are sold outside of its Marketplace get 15 messages at most. */
const pageSize = 200;
/** One reading has so many pages, which is up to 2,000 messages. */
const maxPages = 10;
/** A longer Retry-After is not waited for. */
const maxWaitMs = 5000;

/** Messages of these subtypes have content; all others are Slack's own notes. */
const contentSubtypes = new Set([undefined, "file_share", "thread_broadcast", "bot_message", "me_message"]);

interface RoomReaderOptions {
  readonly api: Pick<SlackApi, "page">;
  readonly identity: Pick<Identity, "teamId" | "userId">;
  readonly names: Names;
  readonly read: MessageReader;
  readonly clock: Clock;
}

/** These are the messages of one reading, oldest first. */
interface Collected {
  readonly messages: readonly SlackMessageInfo[];
  readonly hasOlder: boolean;
  readonly failure?: ParleyError;
}

/**
 * Returns {@link Platform.readRoom} for Slack's threads and channels. Slack reads a thread from its
 * beginning: of a long one that cannot be read to its end in time, the first messages are returned, with a
 * failure.
 */
export function createRoomReader(options: RoomReaderOptions): Platform["readRoom"] {
  const { api, identity, names } = options;

  /** Reads a page, up to three times where Slack limits how fast. */
  const nextPage = (at: SlackAddress, window: MessageWindow, signal: AbortSignal): Promise<MessagePage> =>
    retry(() => api.page(at.channel, threadOf(at), window), {
      delayMs(error, attempt) {
        const waitMs = isParleyError(error) ? error.retryAfterMs : undefined;
        return waitMs === undefined || waitMs > maxWaitMs || attempt > 2 ? undefined : waitMs;
      },
      signal,
      clock: options.clock,
    });

  function isWanted(message: SlackMessageInfo, at: SlackAddress, query: RoomQuery): boolean {
    if (!contentSubtypes.has(message.subtype)) return false;
    const { after, before } = { after: tsOf(query.after), before: tsOf(query.before) };
    const time = Number(message.ts);
    // The root of a thread comes with every page, whatever is asked for.
    if (after !== undefined && time <= Number(after)) return false;
    if (before !== undefined && time >= Number(before)) return false;
    if (query.since !== undefined && toUnixMs(message.ts) < query.since) return false;
    return query.includesOwn === true || message.user !== identity.userId || message.ts === at.thread;
  }

  /** Collects messages. The pages of a thread come oldest first, those of a channel newest first. */
  async function collect(at: SlackAddress, query: RoomQuery): Promise<Collected> {
    const isThread = threadOf(at) !== undefined;
    // Slack leaves out a message of that very time.
    const since = query.since === undefined ? undefined : `${(query.since - 1) / 1000}`;
    const oldest = tsOf(query.after) ?? since;
    const latest = tsOf(query.before);
    const found: SlackMessageInfo[] = [];
    const seen = new Set<string>();
    let cursor = "";
    const newest = (): readonly SlackMessageInfo[] => (isThread ? found : found.toReversed());
    const result = (failure?: ParleyError): Collected => ({
      messages: newest().slice(-query.maxMessages),
      hasOlder: found.length > query.maxMessages,
      ...(failure === undefined ? {} : { failure }),
    });
    try {
      for (let page = 0; page < maxPages; page += 1) {
        const read = await nextPage(at, { oldest, latest, limit: pageSize, cursor }, query.signal);
        for (const message of read.messages) {
          if (seen.has(message.ts) || !isWanted(message, at, query)) continue;
          seen.add(message.ts);
          found.push(message);
        }
        ({ cursor } = read);
        if (cursor === "" || (!isThread && found.length > query.maxMessages)) return result();
      }
    } catch (error) {
      if (slackErrorCode(error) === "thread_not_found") return result();
      return result(toFailure(error));
    }
    return result(new ParleyError("platform-unreachable", "the thread is too long to be read in one go"));
  }

  async function toRoomMessage(message: SlackMessageInfo, channel: string): Promise<RoomMessage> {
    const { ts, user, bot_id: botId } = message;
    const isApp = botId !== undefined || message.subtype === "bot_message";
    const appName = message.bot_profile?.name ?? message.username;
    const [content, name] = await Promise.all([
      options.read(message),
      appName ?? (user === undefined ? "An app" : names.nameOf(user)),
    ]);
    return {
      key: toMessageKey(identity.teamId, channel, ts),
      author: { id: toAuthorId(identity.teamId, user ?? botId ?? "app"), name },
      isApp,
      ...content,
      sentAt: toUnixMs(ts),
    };
  }

  /** Whether direct messages are those of other people, who can use commands there. */
  async function isForeign(channel: string): Promise<boolean> {
    try {
      await api.page(channel, undefined, { limit: 1, cursor: "" });
      return false;
    } catch (error) {
      // Slack says of these that they do not exist. What else fails says nothing of who writes there.
      return isNotMember(error);
    }
  }

  return async (given, query): Promise<RoomResult> => {
    const at = parseAddress(given);
    if (isDirectMessages(at.channel)) return (await isForeign(at.channel)) ? "unreadable" : "alone";
    const { messages, hasOlder, failure } = await collect(at, query);
    try {
      const read = await Promise.all(messages.map((message) => toRoomMessage(message, at.channel)));
      return {
        messages: read.filter(({ text, attachments }) => text !== "" || attachments.length > 0),
        hasOlder,
        ...(failure === undefined ? {} : { failure }),
      };
    } catch (error) {
      return { messages: [], hasOlder: false, failure: toFailure(error) };
    }
  };
}

/** Returns the address of a message in the place of `at`, unless that of the workspace is not known. */
export function toMessageLink(
  { url: workspace }: Pick<Identity, "url">,
  { thread }: SlackAddress,
  key: string,
): string | undefined {
  const message = parseMessageKey(key);
  if (workspace === undefined || message === undefined) return undefined;
  const { channel, ts } = message;
  const url = URL.parse(`archives/${channel}/p${ts.replace(".", "")}`, workspace);
  if (url !== null && thread !== undefined && thread !== ts)
    url.search = new URLSearchParams({ thread_ts: thread, cid: channel }).toString();
  return url?.href;
}

/** Returns the thread of an address. A mention at the top level of a channel is in the channel. */
function threadOf({ thread, key }: SlackAddress): string | undefined {
  return thread === undefined || key.endsWith(`:${thread}`) ? undefined : thread;
}

function tsOf(key: string | undefined): string | undefined {
  return key === undefined ? undefined : parseMessageKey(key)?.ts;
}

/** Returns the failure of a reading. A rate limit passes; Slack's refusals do not. */
function toFailure(error: unknown): ParleyError {
  const failure = toParleyError(error, "conversations.replies");
  if (failure.retryAfterMs === undefined) return failure;
  return new ParleyError("platform-unreachable", "Slack limits how fast messages are read", {
    retryAfterMs: failure.retryAfterMs,
    cause: error,
  });
}
