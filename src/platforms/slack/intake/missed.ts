import type { SlackActionMiddlewareArgs, types } from "@slack/bolt";
import type { Clock } from "../../../core/clock.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { ConversationHistory } from "../../../core/receiver.ts";
import type { Records } from "../../../core/storage.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inLanguage, translate } from "../../../words/translate.ts";
import { type Ask, createLookUp, marginMs, type LookUp, type MissedPlace } from "../../delivery/look-up.ts";
import {
  isDirectMessages,
  toChannelConversationId,
  toConversationId,
  toMessageKey,
  toUnixMs,
  type SlackMessageInfo,
} from "../address.ts";
import { slackErrorCode } from "../errors.ts";
import type { People } from "../people.ts";
import { escapeText } from "../reply/escape-markdown.ts";
import { toCallerText } from "../press/notices.ts";
import type { TeamHandlers } from "../listeners.ts";
import type { Identity } from "../transport/call.ts";
import { noticeTiming } from "../transport/lanes.ts";
import type { SlackApi } from "../transport/web-api.ts";
import type { createIncoming, MessageEvent } from "./incoming.ts";

/** The button below the sentence on messages that are too old has this `action_id`. */
export const answerLastAction = "parley_answer_last";

/** Slack recommends this page size. Apps that are sold outside of its Marketplace get 15 messages. */
const pageSize = 200;
const maxPages = 3;
const shortPage = 100;
/** So many threads and direct messages of the store are read, the latest first. */
const maxKnown = 50;
/** So many threads of a channel are read. */
const maxThreads = 20;
/** Threads that began earlier are read only where the store knows them. */
const threadsMs = 24 * 60 * 60_000;
/** An edit of a message that is older than this at the mark is not looked for. */
const editedMs = 60 * 60_000;
/** This is half of what Slack allows, so that rooms are read meanwhile. */
const pauseMs = 2000;

interface MissedOptions {
  readonly identity: Pick<Identity, "teamId" | "userId">;
  readonly api: Pick<SlackApi, "ownChannels" | "page" | "post">;
  readonly people: Pick<People, "languageOf">;
  readonly history: Pick<ConversationHistory, "conversations" | "restored">;
  readonly records: Pick<Records, "get" | "set" | "update">;
  readonly incoming: Pick<ReturnType<typeof createIncoming>, "askedIn" | "onMessage" | "onMissed">;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** A message that a look-up found. */
interface Found {
  readonly key: string;
  readonly sentAt: number;
  readonly isKnown: boolean;
  readonly event: MessageEvent;
  take(): Promise<void>;
  askedIn(): Promise<string | undefined>;
}

/** Looks up what people wrote while nobody heard it. Slack delivers nothing again after six minutes. */
export function createSlackLookUp(options: MissedOptions): LookUp {
  const { identity, api, history, incoming, clock, log, signal } = options;
  const { teamId } = identity;

  /** Reads the messages of a channel or thread after a time, oldest first. */
  async function readSince(
    { channel, thread }: { readonly channel: string; readonly thread?: string },
    since: number,
    ask: Ask,
  ): Promise<readonly SlackMessageInfo[]> {
    const messages = new Map<string, SlackMessageInfo>();
    let cursor = "";
    for (let page = 0; page < maxPages; page++) {
      const window = { oldest: `${since / 1000}`, limit: pageSize, cursor };
      const found = await ask(() => api.page(channel, thread, window));
      for (const message of found.messages) messages.set(message.ts, message);
      ({ cursor } = found);
      // An app that gets short pages gets few of them. Those of a channel begin with the newest messages.
      if (cursor === "" || (thread === undefined && found.messages.length < shortPage)) break;
    }
    return [...messages.values()].sort((a, b) => Number(a.ts) - Number(b.ts));
  }

  /** Whether the replaced store of a restored backup may have known a message, and the bot answered it. */
  function wasAnswered(message: SlackMessageInfo, all: readonly SlackMessageInfo[]): boolean {
    if (history.restored === undefined) return false;
    const { backedUpAt, restoredAt } = history.restored;
    const sentAt = toUnixMs(message.ts);
    if (sentAt < backedUpAt - marginMs || sentAt > restoredAt + marginMs) return false;
    if (message.reply_users?.includes(identity.userId) === true) return true;
    return all.some(
      ({ ts, user, thread_ts: thread }) =>
        user === identity.userId &&
        thread === (message.thread_ts ?? message.ts) &&
        Number(ts) > Number(message.ts),
    );
  }

  function toFound(channel: string, all: readonly SlackMessageInfo[], since: number): readonly Found[] {
    return all.flatMap((message): readonly Found[] => {
      const sentAt = toUnixMs(message.ts);
      const event: MessageEvent = { ...message, channel };
      const isMissed = sentAt > since && !wasAnswered(message, all);
      const isEdited = message.edited !== undefined && toUnixMs(message.edited.ts) > since;
      if (!isMissed && !(isEdited && sentAt > since - editedMs)) return [];
      const edit = { channel, ts: message.ts, subtype: "message_changed", message };
      return [
        {
          key: toMessageKey(teamId, channel, message.ts),
          sentAt,
          isKnown: !isMissed,
          event,
          async take() {
            if (isMissed) await incoming.onMissed(event);
            if (isEdited) await incoming.onMessage({ ...edit, event_ts: message.edited?.ts }, 0);
          },
          askedIn: async () => (isMissed ? await incoming.askedIn(event) : undefined),
        },
      ];
    });
  }

  function threadPlace(channel: string, root: string): MissedPlace<Found> {
    return {
      id: `thread ${channel} ${root}`,
      channel,
      async read(since, ask) {
        try {
          return toFound(channel, await readSince({ channel, thread: root }, since - editedMs, ask), since);
        } catch (error) {
          if (slackErrorCode(error) === "thread_not_found") return [];
          throw error;
        }
      },
    };
  }

  /** What stands in the channel itself, and in its threads of a day with later replies. */
  function channelPlace(channel: string, known: ReadonlySet<string>): MissedPlace<Found> {
    return {
      id: `channel ${channel}`,
      channel,
      async read(since, ask) {
        const roots = await readSince({ channel }, since - threadsMs, ask);
        const threads = roots
          .filter(({ ts, latest_reply: last = "0" }) => toUnixMs(last) > since && !known.has(ts))
          .slice(-maxThreads);
        const replies: (readonly Found[])[] = [];
        for (const { ts } of threads) replies.push(await threadPlace(channel, ts).read(since, ask));
        const found = [toFound(channel, roots, since), ...replies].flat();
        return [...new Map(found.map((one) => [one.key, one])).values()].sort((a, b) => a.sentAt - b.sentAt);
      },
    };
  }

  /** Returns the threads and direct messages that the store knows, then the channels that the bot is in. */
  async function places(since: number, ask: Ask): Promise<readonly MissedPlace<Found>[]> {
    const known = (await history.conversations(`slack:${teamId}:`))
      .filter(({ updatedAt }) => updatedAt > since - threadsMs)
      .toSorted((a, b) => b.updatedAt - a.updatedAt)
      .flatMap(({ conversationId }) => {
        const [, , channel = "", root = ""] = conversationId.split(":");
        return /^[A-Z]\w+$/.test(channel) ? [{ channel, root }] : [];
      });
    const threads = known.filter(({ root }) => /^\d+\.\d+$/.test(root)).slice(0, maxKnown);
    const direct = [...new Set(known.map(({ channel }) => channel).filter(isDirectMessages))];
    const roots = new Set(threads.map(({ root }) => root));
    const own = await ask(() => api.ownChannels()).catch((error: unknown) => {
      if (isParleyError(error, "platform-unreachable")) throw error;
      log.warn({ err: error }, "missed messages of channels not looked up");
      return [];
    });
    return [
      ...direct.slice(0, maxKnown).map((channel) => channelPlace(channel, roots)),
      ...threads.map(({ channel, root }) => threadPlace(channel, root)),
      ...own.map((channel) => channelPlace(channel, roots)),
    ];
  }

  /** Names messages that are too old, in their language, in the place where they would be answered. */
  async function tellOld(conversationId: string, messages: readonly Found[]): Promise<void> {
    const [first] = messages;
    const last = messages.at(-1);
    if (first === undefined || last === undefined) return;
    const { channel, ts, thread_ts: thread = ts, user = "" } = last.event;
    const isInChannel =
      conversationId === toChannelConversationId(teamId, channel) &&
      conversationId !== toConversationId(teamId, channel, thread);
    await inLanguage(await options.people.languageOf(user), async () => {
      const clockTime = new Date(first.sentAt).toISOString().slice(0, 16).replace("T", " ");
      const time = `<!date^${Math.floor(first.sentAt / 1000)}^{date_short_pretty} {time}|${clockTime} UTC>`;
      const words = escapeText(translate("missed.old", { count: messages.length, time: "\u0000" }));
      const text = words.replace("\u0000", time);
      await api.post(
        channel,
        isInChannel ? undefined : thread,
        {
          text,
          blocks: [
            { type: "section", text: { type: "mrkdwn", text } },
            {
              type: "actions",
              elements: [
                {
                  type: "button",
                  action_id: answerLastAction,
                  text: { type: "plain_text", text: translate("missed.answer-last") },
                  value: `${ts} ${thread}`,
                },
              ],
            },
          ],
        },
        { ...noticeTiming, mark: `missed/${ts}` },
      );
    });
  }

  return createLookUp<Found>({
    name: `slack ${teamId}`,
    records: options.records,
    places,
    tellOld,
    pauseMs,
    clock,
    log,
    signal,
  });
}

/** Has the last of some old messages answered, whose button was pressed. */
export async function onAnswerLast(
  { action, body, ack }: SlackActionMiddlewareArgs,
  { api, incoming, notices }: TeamHandlers,
): Promise<void> {
  const pressed = body as unknown as PressedBody;
  const channel = pressed.channel?.id ?? "";
  const [ts = "", thread] = ((action as { readonly value?: string }).value ?? "").split(" ");
  let problem: string | undefined;
  try {
    const message = await api.message(channel, thread === ts ? undefined : thread, ts);
    const isTaken = message !== undefined && (await incoming.onMissed({ ...message, channel }));
    if (!isTaken) problem = translate("missed.gone");
  } catch (error) {
    notices.logFailure(error, answerLastAction);
    problem = toCallerText(error);
  }
  await ack();
  if (problem !== undefined) return await notices.send(pressed.response_url, problem, thread);
  const { ts: told = "", text = "", blocks = [] } = pressed.message ?? {};
  await api
    .update(
      { channel, ts: told },
      { text, blocks: blocks.slice(0, 1) },
      { ...noticeTiming, mark: `missed/${ts}` },
    )
    .catch((error: unknown) => notices.logFailure(error, answerLastAction));
}

/** Slack sends this when the button is pressed. */
interface PressedBody {
  readonly channel?: { readonly id: string };
  readonly response_url?: string;
  readonly message?: {
    readonly ts: string;
    readonly text?: string;
    readonly blocks?: types.KnownBlock[];
  };
}
