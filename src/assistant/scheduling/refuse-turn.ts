import { toNotice } from "../../core/error-messages.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Platform } from "../../core/platform.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Log } from "../../core/telemetry.ts";
import type { ActiveTurn } from "./active-turn.ts";
import { keysOf, type PendingTurn } from "./pending-turn.ts";
import { isOutage } from "./recovery.ts";

/**
 * Ends a stored turn whose author the access rules refuse by now, and closes it. A reply that is visible already says
 * so; otherwise only the author is told, where the platform has a way. During an outage the turn stays open.
 */
export async function refuseTurn(
  turn: PendingTurn,
  dependencies: {
    readonly active: ActiveTurn;
    readonly inbox: Pick<Inbox, "close">;
    readonly platform: Platform;
    readonly log: Log;
  },
): Promise<void> {
  const { event, progress } = turn;
  const { active, inbox, platform, log } = dependencies;
  const isVisible = progress !== undefined && platform.shownMessageKeys(progress.address).length > 0;
  const address = isVisible ? progress.address : platform.toPrivateAddress(event.address);
  log.info({ isVisible }, "turn refused by the access rules");
  try {
    if (address !== undefined) {
      const saveAddress = (): Promise<void> => Promise.resolve();
      const reply = platform.openReply(address, { saveAddress, isResumed: isVisible, isEndOnly: true });
      active.reply = reply;
      await reply.show();
      await reply.fail({ text: toNotice(new ParleyError("access-denied", "refused by the access rules")) });
    }
  } catch (error) {
    active.reply?.abandon();
    log.warn({ err: error }, "refusal not shown");
    if (isOutage(error)) return;
  }
  await inbox.close(keysOf(turn));
}
