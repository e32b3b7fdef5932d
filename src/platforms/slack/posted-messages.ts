import { isCommandKey, type SlackAddress } from "./address.ts";
import type { SlackMessageInfo } from "./message-info.ts";
import type { MessageRef, SlackApi } from "./web-api.ts";

/** A message's time comes from Slack. */
const marginMs = 60_000;
/** A command's time comes from the clock of a machine, which may be wrong. */
const wrongClockMs = 60 * 60_000;

/** Finds what was posted for a reply without a response, by this process or an earlier one. */
export interface PostedMessages {
  /** The mark of the reply's message number `index`, from 0. */
  markOf(index: number): string;
  /**
   * The messages with that mark, newest first: the first one counts, and it was posted in place of the others. `known`
   * are messages of the reply whose address is saved.
   */
  find(index: number, known: readonly MessageRef[]): Promise<readonly MessageRef[]>;
}

/** What {@link createPostedMessages} needs to know besides. */
export interface PostedMessagesOptions {
  readonly botUserId: string;
  /** Which of these messages show other turns. */
  readonly otherTurnsShow: (refs: readonly MessageRef[]) => Promise<readonly MessageRef[]>;
}

/**
 * Slack has no idempotency key for posts, but keeps metadata (markdown blocks lose their block ids). A stream gets its
 * mark only when it ends: until then it is known by its saved address, and between its start and that by being the one
 * message of the bot in the thread without a mark that no other open turn shows.
 */
export function createPostedMessages(
  api: Pick<SlackApi, "messagesAfter">,
  { key, channel, thread, since }: SlackAddress,
  { botUserId, otherTurnsShow }: PostedMessagesOptions,
): PostedMessages {
  const markOf = (index: number): string => `${key}/${index}`;

  function isLostStream({ user, metadata, files = [], ts }: SlackMessageInfo): boolean {
    const isOwn = user === botUserId && thread !== undefined && ts !== thread;
    return isOwn && metadata === undefined && files.length === 0 && Number(ts) * 1000 > since;
  }

  async function findLostStreams(recent: readonly SlackMessageInfo[]): Promise<MessageRef[]> {
    const lost = recent.filter(isLostStream).map(({ ts }) => ({ channel, ts }));
    if (lost.length === 0) return [];
    const taken = await otherTurnsShow(lost);
    return lost.filter(({ ts }) => taken.every((ref) => ref.ts !== ts));
  }

  return {
    markOf,
    async find(index, known) {
      const sinceMs = since - (isCommandKey(key) ? wrongClockMs : marginMs);
      // What was posted in the place of a known one is newer.
      const after = known[index]?.ts ?? (sinceMs / 1000).toFixed(6);
      const recent: SlackMessageInfo[] = [];
      for await (const message of api.messagesAfter(channel, thread, after)) recent.push(message);
      recent.sort((a, b) => Number(b.ts) - Number(a.ts));
      const isMarked = ({ metadata }: SlackMessageInfo) => metadata?.event_payload?.mark === markOf(index);
      const isUnknown = ({ ts }: SlackMessageInfo) => known.every((ref) => ref.ts !== ts);
      const marked = recent.filter(isMarked);
      if (marked.length > 0 || index < known.length) return marked.map(({ ts }) => ({ channel, ts }));
      return await findLostStreams(recent.filter(isUnknown));
    },
  };
}
