import type { Clock } from "../../../core/clock.ts";
import { toNotice } from "../../../core/error-messages.ts";
import { isParleyError, isRefusal } from "../../../core/errors.ts";
import type { CommandCall } from "../../../core/events.ts";
import type { Receiver } from "../../../core/platform.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inTime } from "../../../support/clock.ts";
import { receivePatiently } from "../../delivery/receive-patiently.ts";

/** A person whose call has taken so long is told that it is not accepted yet. */
const slowAfterMs = 1800;
/** A call is tried for so long. The notice to the person says two minutes. */
const acceptForMs = 100_000;

/** Passes commands to the receiver. Slack delivers each once. */
export interface CallIntake {
  /**
   * Resolves within two seconds. `slow`: the call is not accepted yet and a notice is to be shown. If it is
   * refused later, `say` gets the words.
   * @throws ParleyError where it is refused
   */
  take(call: CommandCall, say: (text: string) => Promise<void>): Promise<"accepted" | "slow">;
  /** Does the same for a form, for these seconds only, since a form can be submitted again. */
  takeForm(call: CommandCall): Promise<"accepted" | "slow">;
}

export function createCallIntake(options: {
  readonly receiver: Pick<Receiver, "receive">;
  readonly clock: Clock;
  readonly log: Log;
}): CallIntake {
  const { receiver, clock, log } = options;

  /** `slow` where the store does not respond in time, or cannot be reached. */
  async function acceptedSoon(receiving: Promise<unknown>): Promise<"accepted" | "slow"> {
    const accepted = receiving.then(() => "accepted" as const);
    try {
      return (await inTime(accepted, slowAfterMs, { clock })) ?? "slow";
    } catch (error) {
      if (isParleyError(error, "store-unavailable")) return "slow";
      throw error;
    }
  }

  return {
    async take(call, say) {
      const receiving = receivePatiently(() => receiver.receive(call), { forMs: acceptForMs, clock });
      let isSlow = false;
      receiving.catch((error: unknown) => {
        if (isRefusal(error)) log.info({ key: call.key, code: error.code }, "command refused");
        else log.error({ key: call.key, err: error }, "command not accepted");
        // The notice stays true where the store was not reached; what is refused at once is said by the
        // caller.
        return isSlow && !isParleyError(error, "store-unavailable") ? say(toNotice(error)) : undefined;
      });
      const result = await acceptedSoon(receiving);
      isSlow = result === "slow";
      return result;
    },
    takeForm: (call) => acceptedSoon(receiver.receive(call, { canResend: true })),
  };
}
