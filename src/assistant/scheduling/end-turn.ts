import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Meter, Log } from "../../core/telemetry.ts";
import { throwIfAbandoned, type Turn, type TurnDependencies } from "../turn/turn.ts";
import { toNotice } from "../../core/error-messages.ts";
import { storedIn, type IncomingEvent, type ReplyAddress } from "../../core/events.ts";
import type { Inbox, StoppedAnswer } from "../../core/inbox.ts";
import type { Platform, Reply, ReplyHooks } from "../../core/platform.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";
import { keepsEarlier, showEarlier, showStored } from "../turn/continued-answer.ts";
import { keepAnswer, messageIds, textOf, noteLastPicture } from "../turn/stored-messages.ts";
import { type ActiveTurn, keysOf, type PendingTurn, toStopped } from "./pending-turn.ts";

type EndedRun = Pick<
  Turn,
  "key" | "attempt" | "conversationId" | "reply" | "lead" | "redo" | "shownMessageKeys"
> & {
  /** The name of the person who stopped it. Without one it is too old, or failed too often, to run again. */
  readonly stoppedBy: string | undefined;
  /** What people saw of its answer when it was stopped. */
  readonly stoppedAnswer?: StoppedAnswer | undefined;
};

/**
 * Ends the reply of a run that asks no model. It shows the earlier answer if there is one, and why there is
 * no new one. This end is the turn's answer. If nobody stopped the turn, it can be retried.
 */
export async function endUnanswered(
  dependencies: Pick<TurnDependencies, "conversations" | "archive" | "now" | "log">,
  turn: EndedRun,
): Promise<"cancelled" | "failed"> {
  const { key, attempt, conversationId, reply, redo, stoppedBy, stoppedAnswer } = turn;
  if (stoppedAnswer !== undefined) return await endWithAnswer(dependencies, turn, stoppedAnswer);
  const why = toNotice(
    stoppedBy === undefined ? new ParleyError("too-old", "not run again") : toStopped(stoppedBy),
  );
  await reply.show();
  if (keepsEarlier(redo) && (await showEarlier(dependencies, turn, why))) return "cancelled";
  const question = await dependencies.conversations.find(conversationId, messageIds.user(key));
  const shownAs = turn.shownMessageKeys();
  const isStopped = stoppedBy !== undefined;
  if (question !== undefined)
    await keepAnswer(dependencies, turn, {
      id: messageIds.complete(key),
      role: "assistant",
      turnKey: key,
      attempt,
      parts: [],
      createdAt: dependencies.now(),
      estimatedTokens: 0,
      ...(isStopped ? { outcome: "interrupted", notices: [why] } : { outcome: "failed", failure: why }),
      ...(shownAs.length === 0 ? {} : { shownAs }),
    });
  if (isStopped) {
    await reply.finish({ notices: [why] });
    return "cancelled";
  }
  dependencies.log.info({ attempt }, "turn sealed: too old, or failed too often");
  await reply.fail({ text: why, retryKey: key });
  return "failed";
}

/** Keeps the words that people saw as the answer. */
async function endWithAnswer(
  dependencies: Pick<TurnDependencies, "conversations" | "archive" | "log">,
  turn: EndedRun,
  { message: { shownAs: _earlier, ...message }, lead }: StoppedAnswer,
): Promise<"cancelled"> {
  const { conversations } = dependencies;
  const { reply } = turn;
  reply.write({ lead, text: textOf(message.parts), isWhole: true });
  await reply.show();
  const shownAs = turn.shownMessageKeys();
  const answer: StoredMessage = {
    ...message,
    attempt: turn.attempt,
    ...(shownAs.length === 0 ? {} : { shownAs }),
  };
  const kept = await keepAnswer(dependencies, turn, answer);
  await noteLastPicture(conversations, turn.conversationId, answer);
  const stored = kept === "stored" ? answer : await conversations.find(turn.conversationId, answer.id);
  if (stored !== undefined) await showStored(dependencies, { ...turn, lead }, stored);
  // Its author has removed the answer in the meantime.
  else await reply.finish({ notices: message.notices ?? [] });
  return "cancelled";
}

/** A turn that does not run, whose reply only ends. */
export interface TurnToEnd {
  readonly turn: PendingTurn;
  readonly active: ActiveTurn;
  readonly platform: Platform;
  readonly inbox: Pick<Inbox, "claimTurn" | "close" | "saveTurn" | "withdraw">;
  readonly conversations: Pick<Conversations, "saveSettings">;
  readonly otherTurnsShow: NonNullable<ReplyHooks["otherTurnsShow"]>;
  /** Whether its answer is stored and can be shown. */
  readonly isAnswered: () => Promise<boolean>;
  readonly meter: Meter;
  readonly log: Log;
}

/**
 * Why a turn ends without a run.
 * - `stopped`: a person has stopped it before it had a reply.
 * - `deleted`: its messages were deleted. What is left of them is erased.
 * - `refused`: the access rules now refuse its author. A visible reply says so; otherwise only the author is
 *   told, if the platform can do that.
 * - `sealed`: it is too old, or failed too often. Its reply gets a Retry button.
 */
export type EndReason = "stopped" | "deleted" | "refused" | "sealed";

type Ended = "ended" | "left-open";

/** What people see of an end, and what is stored then. */
interface End {
  /** Where the reply is, and what it shows. Without one nobody sees the end. */
  readonly reply?: Partial<ReplyHooks> & {
    readonly address: ReplyAddress;
    readonly show: (reply: Reply) => Promise<void>;
  };
  readonly close: () => Promise<unknown>;
}

/**
 * Ends a turn that does not run: it shows why in its reply, and closes its events. During an outage the turn
 * stays open, to be ended later. Otherwise it is over, even where its end could not be shown.
 */
export async function endTurn(turn: TurnToEnd, why: EndReason): Promise<Ended> {
  const end = await ends[why](turn);
  if (end === undefined) return "ended";
  const shown = end.reply === undefined ? "ended" : await showEnd(turn, end.reply);
  if (shown === "ended") await end.close();
  return shown;
}

/** The end for each reason, or `undefined` where another process ends or runs the turn. */
const ends: Readonly<Record<EndReason, (turn: TurnToEnd) => Promise<End | undefined> | End>> = {
  stopped: ({ turn, inbox }) => ({ close: () => inbox.close(keysOf(turn)) }),

  deleted({ turn, inbox }) {
    const because = new ParleyError("cancelled", "its message was deleted", {
      detail: { because: "deleted" },
    });
    return {
      reply: {
        address: turn.progress?.address ?? turn.event.address,
        show: (reply) => reply.finish({ notices: [toNotice(because)] }),
      },
      close: () => inbox.withdraw(keysOf(turn)),
    };
  },

  refused({ turn, inbox, platform, log }) {
    const { event, progress } = turn;
    const isVisible = progress !== undefined && platform.shownMessageKeys(progress.address).length > 0;
    const address = isVisible ? progress.address : platform.toPrivateAddress(event.address);
    log.info({ isVisible }, "turn refused by the access rules");
    const text = toNotice(new ParleyError("access-denied", "refused by the access rules"));
    const close = () => inbox.close(keysOf(turn));
    if (address === undefined) return { close };
    return { reply: { address, isResumed: isVisible, show: (reply) => reply.fail({ text }) }, close };
  },

  async sealed({ turn, inbox, platform, conversations, isAnswered, meter, log }) {
    const { event } = turn;
    if (turn.progress === undefined) return undefined;
    // Others may have been answered in another turn.
    const progress = { ...turn.progress, keys: keysOf(turn) };
    const attempts = progress.attempts + 1;
    // The lease may be lost. Only one of several processes that seal or run the turn continues.
    if (!(await inbox.claimTurn({ ...progress, attempts }))) return undefined;
    const saveAddress: ReplyHooks["saveAddress"] = async (address, how) => {
      await inbox.saveTurn({ ...progress, address, attempts }, how);
    };
    let isAnsweredNow = false;
    const show = async (reply: Reply): Promise<void> => {
      await reply.fail({ text: toNotice(new ParleyError("too-old", "sealed")), retryKey: event.key });
      log.info(
        { platform: platform.id, attempts: progress.attempts },
        "turn sealed: too old, or failed too often",
      );
      meter({ kind: "refused", platform: platform.id, code: "too-old" });
      // Messages in its thread are for the bot although nothing of the turn is stored.
      if (event.kind === "message" && event.inRoom !== true && event.within !== undefined)
        await conversations.saveSettings(event.conversationId, { within: event.within }, "soon");
      isAnsweredNow = await isAnswered();
    };
    return {
      reply: { address: progress.address, saveAddress, show },
      // A process that lost the turn may have stored its answer, which is then shown in the next run.
      close: async () => isAnsweredNow || (await inbox.close(progress.keys, { attempts })),
    };
  },
};

/** Opens a reply only to end it. */
async function showEnd(
  { active, platform, otherTurnsShow, log }: TurnToEnd,
  { address, show, ...hooks }: NonNullable<End["reply"]>,
): Promise<Ended> {
  try {
    const reply = platform.openReply(address, {
      // Messages that earlier runs posted without saving their address are found and edited.
      isResumed: true,
      isEndOnly: true,
      otherTurnsShow,
      saveAddress: () => Promise.resolve(),
      ...hooks,
    });
    // A process that loses the lease shows nothing more, because another process may have answered.
    active.reply = reply;
    await reply.show();
    await show(reply);
    throwIfAbandoned(active.signal);
    return "ended";
  } catch (error) {
    active.reply?.abandon();
    log.warn({ err: error }, "reply not ended");
    return isOutage(error) ? "left-open" : "ended";
  }
}

/** How many stored messages are searched for those of other turns. */
const maxRecentAnswers = 50;

/**
 * Finds the messages that show other turns of the conversation than the one with these inbox keys and
 * `event`. @see {@link ReplyHooks.otherTurnsShow}
 */
export function createOtherTurns(
  inbox: Pick<Inbox, "listOpenIn">,
  conversations: Pick<Conversations, "recent">,
): (
  event: IncomingEvent,
  keys: readonly string[],
  platform: Pick<Platform, "shownMessageKeys">,
) => NonNullable<ReplyHooks["otherTurnsShow"]> {
  return (event, keys, platform) => async (wanted) => {
    const open = await inbox.listOpenIn(event.conversationId);
    const others = open.filter((one) => !keys.includes(one.event.key));
    const shown = others.flatMap(({ turn }) =>
      turn === undefined ? [] : platform.shownMessageKeys(turn.address),
    );
    // Another process may have started and ended a turn in the meantime.
    const stored = await conversations.recent(storedIn(event), { maxMessages: maxRecentAnswers });
    for (const { turnKey, shownAs = [] } of stored) if (!keys.includes(turnKey)) shown.push(...shownAs);
    return wanted.filter((key) => shown.includes(key));
  };
}

/**
 * Whether the turn may succeed later, because store, platform or process were unavailable, or the platform
 * limits the rate.
 */
export function isOutage(error: unknown): boolean {
  return (
    isParleyError(error, "stopping") ||
    isParleyError(error, "platform-unreachable") ||
    isParleyError(error, "store-unavailable") ||
    (isParleyError(error, "platform-rejected") && error.retryAfterMs !== undefined)
  );
}
