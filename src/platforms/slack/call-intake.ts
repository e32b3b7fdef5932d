import type { Clock } from "../../core/clock.ts";
import { notAcceptedNotice } from "../../core/error-messages.ts";
import { isParleyError, isRefusal } from "../../core/errors.ts";
import type { CommandCall } from "../../core/events.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import { inTime } from "../../support/clock.ts";
import { receivePatiently } from "../delivery/receive-patiently.ts";

/** A person whose call has taken so long is told that it is not accepted yet. */
const slowAfterMs = 1800;
/** A call is tried for so long. The notice to the person says two minutes. */
const acceptForMs = 100_000;

/** The intake passes commands to the receiver. What is said about a command must stay true. */
export interface CallIntake {
  /**
   * Resolves within two seconds. The result `slow` means that the call is not accepted yet and a notice is to
   * be shown; if it never is accepted, `say` gets the words once they are certain.
   * @throws ParleyError `busy` or `stopping` where the call is refused
   */
  take(call: CommandCall, say: (text: string) => Promise<void>): Promise<"accepted" | "slow">;
  /** Does the same for a form, for these seconds only, since a form can be submitted again. */
  takeForm(call: CommandCall): Promise<"accepted" | "slow">;
}

export function createCallIntake(options: {
  readonly receiver: Pick<Receiver, "receive" | "refuse">;
  readonly clock: Clock;
  readonly log: Log;
}): CallIntake {
  const { receiver, clock, log } = options;

  async function refuse(key: string, say: (text: string) => Promise<void>): Promise<void> {
    try {
      if ((await receiver.refuse(key)) === "refused") await say(notAcceptedNotice());
    } catch (error) {
      log.warn({ key, err: error }, "refused command not settled");
    }
  }

  /** Resolves to `slow` where the store does not respond in time, or cannot be reached. */
  async function acceptedSoon(acceptance: Promise<unknown>): Promise<"accepted" | "slow"> {
    const accepted = acceptance.then(() => "accepted" as const);
    try {
      return (await inTime(accepted, slowAfterMs, { clock })) ?? "slow";
    } catch (error) {
      if (isParleyError(error, "store-unavailable")) return "slow";
      throw error;
    }
  }

  return {
    async take(call, say) {
      const acceptance = receivePatiently(() => receiver.receive(call), { forMs: acceptForMs, clock });
      let isSlow = false;
      acceptance.catch((error: unknown) => {
        if (isRefusal(error)) log.info({ key: call.key, code: error.code }, "command refused");
        else log.error({ key: call.key, err: error }, "command not accepted");
        // The rules refuse the call whenever it is delivered, so that nothing is stored.
        if (isParleyError(error, "access-denied")) return;
        // In all other cases the caller of this function says why.
        return refuse(call.key, isSlow ? say : () => Promise.resolve());
      });
      const result = await acceptedSoon(acceptance);
      isSlow = result === "slow";
      return result;
    },
    takeForm: (call) => acceptedSoon(receiver.receive(call)),
  };
}
