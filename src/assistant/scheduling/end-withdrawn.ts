import { toNotice } from "../../core/error-messages.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Platform, ReplyHooks } from "../../core/platform.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Log } from "../../core/telemetry.ts";
import type { ActiveTurn } from "./active-turn.ts";
import { keysOf, type PendingTurn } from "./pending-turn.ts";
import { isOutage } from "./recovery.ts";

/**
 * Ends the reply of a turn whose messages were deleted, and erases what is left of them. During an outage they stay
 * open, as withdrawn, to be ended later.
 */
export async function endWithdrawn(
  turn: PendingTurn,
  dependencies: {
    readonly active: ActiveTurn;
    readonly otherTurnsShow: NonNullable<ReplyHooks["otherTurnsShow"]>;
    readonly inbox: Pick<Inbox, "withdraw">;
    readonly platform: Platform;
    readonly log: Log;
  },
): Promise<"ended" | "left-open"> {
  const { active, otherTurnsShow, inbox, platform, log } = dependencies;
  const because = new ParleyError("cancelled", "its message was deleted", {
    detail: { because: "deleted" },
  });
  try {
    const reply = platform.openReply(turn.progress?.address ?? turn.event.address, {
      isResumed: true,
      otherTurnsShow,
      isEndOnly: true,
      saveAddress: () => Promise.resolve(),
    });
    active.reply = reply;
    await reply.show();
    await reply.finish({ notices: [toNotice(because)] });
  } catch (error) {
    active.reply?.abandon();
    log.warn({ err: error }, "reply to a deleted message not ended");
    if (isOutage(error)) return "left-open";
  }
  try {
    await inbox.withdraw(keysOf(turn));
  } catch (error) {
    log.warn({ err: error }, "deleted message not erased yet");
    return "left-open";
  }
  return "ended";
}
