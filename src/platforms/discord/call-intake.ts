import { InteractionResponseType as ResponseType, MessageFlags, type APIInteraction } from "discord.js";
import { isParleyError } from "../../core/errors.ts";
import type { CommandCall } from "../../core/events.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import { backoffMs, retry } from "../../support/retry.ts";
import { sleepUnlessAborted } from "../../support/sleep.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import { privateFlags, toSentence } from "./content.ts";

/** When a call that is not accepted yet is acknowledged with words. Discord's deadline is three seconds. */
const slowAfterMs = 2000;
/** How long accepting a call is retried while the store is unavailable. */
const acceptForMs = 10_000;
const acceptBackoff = { baseMs: 250, maxMs: 1000 };

/**
 * True whether or not the call is accepted later, and also if the process is killed now: it is the message that the
 * answer replaces.
 */
const slowNotice =
  "Parley's store does not respond right now. The answer appears here if your command could be kept. If there is none in two minutes, use the command again.";

/**
 * Returns a function that passes a call to the receiver and then acknowledges it, within Discord's deadline: deferred
 * once it is durable, so that a crash in between leaves no placeholder. Requests of its reply wait for that. It never
 * deletes or edits a response, which may be another instance's.
 */
export function createCallIntake(options: {
  readonly receiver: Pick<Receiver, "receive">;
  readonly acknowledgements: Acknowledgements;
  readonly log: Log;
}): (interaction: Pick<APIInteraction, "id" | "token">, call: CommandCall) => Promise<void> {
  const { receiver, acknowledgements, log } = options;

  /** A store that failed may have accepted it all the same: then the retry returns `duplicate`. */
  async function accept(call: CommandCall): Promise<void> {
    const deadline = performance.now() + acceptForMs;
    await retry(() => receiver.receive(call), {
      delayMs(error, attempt) {
        const waitMs = backoffMs(attempt, acceptBackoff);
        const isWorthwhile = isParleyError(error, "store-unavailable");
        return isWorthwhile && performance.now() + waitMs <= deadline ? waitMs : undefined;
      },
    });
  }

  async function acknowledge(
    interaction: Pick<APIInteraction, "id" | "token">,
    { isPrivate }: CommandCall,
    acceptance: Promise<void>,
  ): Promise<void> {
    const settled = new AbortController();
    const [result] = await Promise.race([
      Promise.allSettled([acceptance]).finally(() => settled.abort()),
      sleepUnlessAborted(slowAfterMs, settled.signal).then(() => [undefined]),
    ]);
    if (result === undefined) {
      await acknowledgements.send(interaction, {
        type: ResponseType.ChannelMessageWithSource,
        data: { ...toSentence(slowNotice), ...(isPrivate ? { flags: privateFlags } : {}) },
      });
    } else if (result.status === "rejected") {
      await acknowledgements.refuse(interaction, result.reason);
    } else {
      // Also for a duplicate: the instance that accepted it may have crashed before it acknowledged it.
      await acknowledgements.send(interaction, {
        type: ResponseType.DeferredChannelMessageWithSource,
        ...(isPrivate ? { data: { flags: MessageFlags.Ephemeral } } : {}),
      });
    }
  }

  return async (interaction, call) => {
    const acceptance = accept(call);
    const acknowledgement = acknowledge(interaction, call, acceptance);
    acknowledgements.expect(interaction.token, acknowledgement);
    const [accepted] = await Promise.allSettled([acceptance, acknowledgement]);
    if (accepted.status === "rejected")
      log.error({ key: call.key, err: accepted.reason }, "command not accepted");
  };
}
