import { isParleyError, ParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { Waiting } from "./pending-turns.ts";
import type { Inbox, InboxEntry, TurnProgress } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Platform } from "../../core/platform.ts";

/** An event this much older than the start that finds it is not answered late unasked, in milliseconds. */
const tooOldMs = 60 * 60_000;
/** A turn that ended its process this often is not started again by itself. */
const maxAttempts = 4;

export interface RecoveryOptions {
  readonly inbox: Pick<Inbox, "listOpen">;
  readonly now: () => number;
  /** Whether this process is already at it. */
  readonly isInHand: (key: string) => boolean;
  readonly enqueue: (turn: Waiting) => void;
}

/**
 * Takes up what was accepted and not answered, by this process's earlier run or by another one: runs it again,
 * or, where it is too old or has ended its process too often, seals its reply with a Retry. Answers how many.
 */
export function createRecovery(options: RecoveryOptions): (platformId: string) => Promise<number> {
  const { inbox, now, isInHand, enqueue } = options;
  return async function recover(platformId: string): Promise<number> {
    const open = (await inbox.listOpen()).filter(({ event }) => event.platform === platformId);
    const turns = toOpenTurns(open, now()).filter(({ event }) => !isInHand(event.key));
    for (const turn of turns) enqueue(turn);
    return turns.length;
  };
}

/** The turns of open entries, in order; what belongs to another entry's turn is part of that. */
export function toOpenTurns(open: readonly InboxEntry[], now: number): Waiting[] {
  const byKey = new Map(open.map((entry) => [entry.event.key, entry]));
  const joined = new Set<string>();
  // Two processes may each have begun with both of two messages: the first turn has them.
  for (const { event, turn } of open)
    if (!joined.has(event.key)) for (const key of turn?.keys.slice(1) ?? []) joined.add(key);
  return open.flatMap(({ event, turn, acceptedAt }): Waiting[] => {
    if (joined.has(event.key)) return [];
    const others = (turn?.keys.slice(1) ?? []).flatMap((key) => {
      const other = byKey.get(key)?.event;
      return other?.kind === "message" ? [other] : [];
    });
    const progress: TurnProgress = turn ?? { keys: [event.key], address: event.address, attempts: 0 };
    const isSealed = now - acceptedAt > tooOldMs || progress.attempts >= maxAttempts;
    return [{ event, progress, others, ...(isSealed ? { isSealed } : {}) }];
  });
}

/**
 * Ends a reply that will not be answered by itself any more, with a Retry button. Where the platform or the store
 * cannot be reached it stays open, to be sealed later.
 */
export async function seal(
  turn: Waiting,
  room: { readonly inbox: Inbox; readonly platforms: ReadonlyMap<string, Platform>; readonly log: Log },
): Promise<void> {
  const { event, progress } = turn;
  const platform = room.platforms.get(event.platform);
  if (platform === undefined || progress === undefined) return;
  try {
    const reply = platform.openReply(progress.address, {
      saveAddress: (address) => room.inbox.saveTurn({ ...progress, address }),
    });
    await reply.show();
    await reply.fail({ text: toNotice(new ParleyError("too-old", "sealed")), retryKey: event.key });
  } catch (error) {
    room.log.warn({ key: event.key, err: error }, "a reply that is too old could not be sealed");
    if (isOutage(error)) return;
  }
  await room.inbox.close(progress.keys);
}

/** Whether trying the same later may work: nothing is wrong with the turn itself. */
export function isOutage(error: unknown): boolean {
  return (
    isParleyError(error, "stopping") ||
    isParleyError(error, "platform-unreachable") ||
    isParleyError(error, "store-unavailable")
  );
}
