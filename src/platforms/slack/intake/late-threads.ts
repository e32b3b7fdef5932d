import type { Clock } from "../../../core/clock.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { Log } from "../../../core/telemetry.ts";
import type { createKeyedQueue } from "../../../support/keyed-queue.ts";
import { backoffMs, retry, backoffs } from "../../../support/retry.ts";
import { teamOf, type SlackMessageInfo } from "../address.ts";
import { inLookupTime, withLookupTime, withoutLookupTime } from "../errors.ts";
import type { People } from "../people.ts";
import type { SlackApi } from "../transport/web-api.ts";
import type { MessageEvent } from "./addressee.ts";

/** The look-up is repeated, since Slack does not deliver again what was acknowledged. */
const lookUpPolicy = {
  delayMs: (error: unknown, attempt: number): number | undefined => {
    const askedMs = isParleyError(error) ? (error.retryAfterMs ?? 0) : 0;
    return attempt < 6 ? Math.max(askedMs, backoffMs(attempt, backoffs.shared)) : undefined;
  },
};

interface LateThreadOptions {
  readonly api: Pick<SlackApi, "messagesAfter">;
  readonly people: Pick<People, "find">;
  readonly isByPerson: (message: SlackMessageInfo & { readonly subtype?: string }) => boolean;
  /** The queue in which messages of a channel are accepted. */
  readonly inOrder: ReturnType<typeof createKeyedQueue>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Returns a function that passes on what people wrote in the thread of a mention after it, oldest first, in
 * the channel's order. Nobody awaits that, because Slack wants its acknowledgement first.
 */
export function createLateThreads(options: LateThreadOptions) {
  const { isByPerson, inOrder, clock, log } = options;

  return (mention: MessageEvent, take: (missed: MessageEvent) => Promise<void>): void => {
    const { channel, ts, thread_ts: thread } = mention;
    const later = withoutLookupTime(() => readLateThread(mention, options));

    async function takeAll(messages: readonly SlackMessageInfo[]): Promise<void> {
      await withLookupTime(clock, async () => {
        for (const message of messages) {
          const missed = { ...message, channel, thread_ts: thread ?? ts };
          if (Number(message.ts) <= Number(ts) || !isByPerson(missed)) continue;
          await retry(() => take(missed), { ...lookUpPolicy, clock });
        }
      });
    }

    // What arrives meanwhile comes after it, unless Slack takes long.
    void inOrder
      .run(channel, async () => {
        const found = await withLookupTime(clock, () => inLookupTime(later));
        if (found !== undefined) await takeAll(found);
        return found !== undefined;
      })
      .then(async (isDone) => {
        if (isDone) return;
        const found = await later;
        await inOrder.run(channel, () => takeAll(found));
      })
      .catch((error: unknown) => log.error({ channel, ts, err: error }, "thread of a late mention not read"));
  };
}

/**
 * Yields what was said in the thread of a mention after it, oldest first. The people who said it are in the
 * cache then: a history need not name their workspace, and a person of an unknown workspace is refused as a
 * stranger.
 * @throws ParleyError when Slack does not return the thread within about 25 seconds. People whom Slack does
 * not describe in that time are logged.
 */
async function readLateThread(
  mention: { readonly channel: string; readonly ts: string; readonly thread_ts?: string },
  { api, people, isByPerson, clock, log }: LateThreadOptions,
): Promise<readonly SlackMessageInfo[]> {
  const { channel, ts, thread_ts: thread } = mention;
  const messages = await retry(
    async () => {
      const found: SlackMessageInfo[] = [];
      for await (const message of api.messagesAfter(channel, thread ?? ts, ts)) found.push(message);
      return found;
    },
    { ...lookUpPolicy, clock },
  );
  const unclear = messages.filter((message) => isByPerson(message) && teamOf(message) === undefined);
  const authors = new Set(unclear.flatMap(({ user }) => user ?? []));
  const find = async (author: string) => {
    if ((await people.find(author)) === undefined)
      throw new ParleyError("platform-unreachable", "Slack users.info: no response");
  };
  const notFound = (author: string) => (error: unknown) =>
    log.warn(
      { user: author, err: error },
      "Slack did not describe who wrote in the thread of a late mention",
    );
  await Promise.all(
    [...authors].map((author) =>
      retry(() => find(author), { ...lookUpPolicy, clock }).catch(notFound(author)),
    ),
  );
  return messages;
}
