import type { Clock } from "../../core/clock.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import { backoffMs, retry } from "../../support/retry.ts";
import { type SlackMessageInfo, teamOf } from "./message-info.ts";
import type { People } from "./people.ts";
import type { SlackApi } from "./web-api.ts";

/** Slack does not deliver again what was acknowledged while its thread was unknown. */
export const lookUpPolicy = {
  delayMs: (error: unknown, attempt: number): number | undefined => {
    const askedMs = isParleyError(error) ? (error.retryAfterMs ?? 0) : 0;
    return attempt < 6 ? Math.max(askedMs, backoffMs(attempt, { baseMs: 500, maxMs: 8000 })) : undefined;
  },
};

/** What {@link readLateThread} works with. */
export interface LateThreadOptions {
  readonly api: Pick<SlackApi, "messagesAfter">;
  readonly people: Pick<People, "find">;
  readonly isByPerson: (message: SlackMessageInfo) => boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * What was said in the thread of a mention after it, oldest first. The people who said it are in the cache then: a
 * history need not name their workspace, and whose workspace is not known is refused as a stranger.
 * @throws ParleyError when Slack does not return the thread within about 25 seconds. Whom it does not describe in that
 * time is logged.
 */
export async function readLateThread(
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
