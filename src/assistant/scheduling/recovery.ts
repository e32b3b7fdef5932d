import { toNotice } from "../../core/error-messages.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Platform, ReplyHooks } from "../../core/platform.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Conversations } from "../../core/storage.ts";
import type { Log, Meter } from "../../core/telemetry.ts";
import { createConcurrencyLimit } from "../../support/keyed-queue.ts";
import { throwIfAbandoned } from "../turn/turn.ts";
import { type ActiveTurn, storedIn, type PendingTurn, toOpenTurns } from "./pending-turn.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";

/** How many conversations are resumed at once, so that new questions need not wait for all of them. */
const maxConversations = 16;

interface RecoveryOptions {
  readonly inbox: Pick<Inbox, "listOpen">;
  readonly now: () => number;
  readonly scheduler: Pick<TurnScheduler, "inFlight" | "isStopping" | "schedule">;
}

/** Resumes open turns of an earlier run or of another process. */
interface Recovery {
  /** Finds a platform's open turns and resumes a few conversations at a time. Resolves to their number. */
  recover(platformId: string): Promise<number>;
  /** Schedules a conversation's turns that still have to be resumed, so that they run before a new turn. */
  resumeFirst(conversationId: string): void;
}

/** Creates the {@link Recovery}, which seals turns that are too old or failed too often. */
export function createRecovery({ inbox, now, scheduler }: RecoveryOptions): Recovery {
  /** Turns that were found but not scheduled yet, by conversation. */
  const found = new Map<string, PendingTurn[]>();
  const limit = createConcurrencyLimit(maxConversations);

  function scheduleFound(conversationId: string): string[] {
    const turns = found.get(conversationId) ?? [];
    found.delete(conversationId);
    const open = turns.filter(({ event }) => !scheduler.inFlight.has(event.key) && !scheduler.isStopping());
    for (const turn of open) scheduler.schedule(turn, { unlessLeased: true });
    return open.map(({ event }) => event.key);
  }

  async function resume(conversationId: string): Promise<void> {
    const keys = scheduleFound(conversationId);
    await Promise.all(keys.map((key) => scheduler.inFlight.whenDone(key)));
  }

  return {
    async recover(platformId) {
      const open = (await inbox.listOpen()).filter(({ event }) => event.platform === platformId);
      const turns = toOpenTurns(open, now()).filter(({ event }) => !scheduler.inFlight.has(event.key));
      const conversations = Map.groupBy(turns, ({ event }) => storedIn(event));
      for (const [conversationId, its] of conversations) {
        const isQueued = found.has(conversationId);
        found.set(conversationId, its);
        if (!isQueued) void limit(() => resume(conversationId));
      }
      return turns.length;
    },
    resumeFirst: (conversationId) => void scheduleFound(conversationId),
  };
}

/**
 * Ends the reply of a turn that is not resumed, with a Retry button, and closes the turn. During an outage
 * the turn stays open to be sealed later. It also stays open if `isAnswered` says that a process that lost
 * the turn has stored its answer, so that the answer is shown.
 */
export async function sealReply(
  { event, progress }: PendingTurn,
  dependencies: {
    readonly active: ActiveTurn;
    readonly otherTurnsShow: NonNullable<ReplyHooks["otherTurnsShow"]>;
    readonly inbox: Inbox;
    readonly conversations: Pick<Conversations, "savePlaces">;
    readonly platform: Platform;
    readonly isAnswered: () => Promise<boolean>;
    readonly log: Log;
    readonly meter: Pick<Meter, "refused">;
  },
): Promise<void> {
  const { active, otherTurnsShow, inbox, conversations, platform, isAnswered, log, meter } = dependencies;
  if (progress === undefined) return;
  const { keys } = progress;
  const attempts = progress.attempts + 1;
  try {
    // The lease may be lost. Only one of several processes that seal or run the turn continues.
    if (!(await inbox.claimTurn({ ...progress, attempts }))) return;
    const reply = platform.openReply(progress.address, {
      // Messages that earlier runs posted without saving their address are found and edited.
      isResumed: true,
      otherTurnsShow,
      isEndOnly: true,
      async saveAddress(address, how) {
        await inbox.saveTurn({ ...progress, address, attempts }, how);
      },
    });
    // A process that loses the lease shows nothing more, because another process may have answered.
    active.reply = reply;
    await reply.show();
    await reply.fail({ text: toNotice(new ParleyError("too-old", "sealed")), retryKey: event.key });
    log.info(
      { platform: platform.id, attempts: progress.attempts },
      "turn sealed: too old, or failed too often",
    );
    meter.refused({ platform: platform.id, code: "too-old" });
    // Messages in its thread are for the bot although nothing of the turn is stored.
    if (event.kind === "message" && event.inRoom !== true && event.within !== undefined)
      await conversations.savePlaces(event.conversationId, event.within);
    if (await isAnswered()) return;
    throwIfAbandoned(active.signal);
  } catch (error) {
    active.reply?.abandon();
    log.warn({ err: error }, "reply not sealed");
    if (isOutage(error)) return;
  }
  await inbox.close(keys, { attempts });
}

/** Whether the turn may succeed later, because store, platform or process were unavailable. */
export function isOutage(error: unknown): boolean {
  return (
    isParleyError(error, "stopping") ||
    isParleyError(error, "platform-unreachable") ||
    isParleyError(error, "store-unavailable")
  );
}
