import { toNotice } from "../../core/error-messages.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Platform } from "../../core/platform.ts";
import type { Inbox } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { toOpenTurns } from "./open-turns.ts";
import type { PendingTurn } from "./pending-turn.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";

export interface RecoveryOptions {
  readonly inbox: Pick<Inbox, "listOpen">;
  readonly now: () => number;
  readonly scheduler: Pick<TurnScheduler, "inFlight" | "schedule">;
}

/**
 * Returns a function that resumes a platform's open turns, of an earlier run or of another process. Those that are too
 * old or failed too often are sealed. It resolves to how many it scheduled.
 */
export function createRecovery(options: RecoveryOptions): (platformId: string) => Promise<number> {
  const { inbox, now, scheduler } = options;
  return async function recover(platformId) {
    const open = (await inbox.listOpen()).filter(({ event }) => event.platform === platformId);
    const turns = toOpenTurns(open, now()).filter(({ event }) => !scheduler.inFlight.has(event.key));
    for (const turn of turns) scheduler.schedule(turn, { unlessLeased: true });
    return turns.length;
  };
}

/**
 * Ends the reply of a turn that is not resumed, with a Retry button, and closes the turn. During an outage the turn
 * stays open, to be sealed later.
 */
export async function sealReply(
  { event, progress }: PendingTurn,
  dependencies: { readonly inbox: Inbox; readonly platform: Platform; readonly log: Log },
): Promise<void> {
  const { inbox, platform, log } = dependencies;
  if (progress === undefined) return;
  try {
    const reply = platform.openReply(progress.address, {
      saveAddress: (address) => inbox.saveTurn({ ...progress, address }),
    });
    await reply.show();
    await reply.fail({ text: toNotice(new ParleyError("too-old", "sealed")), retryKey: event.key });
  } catch (error) {
    log.warn({ key: event.key, err: error }, "reply not sealed");
    if (isOutage(error)) return;
  }
  await inbox.close(progress.keys);
}

/** Whether the same turn may succeed later: the store, the platform or this process was unavailable. */
export function isOutage(error: unknown): boolean {
  return (
    isParleyError(error, "stopping") ||
    isParleyError(error, "platform-unreachable") ||
    isParleyError(error, "store-unavailable")
  );
}
