import { InteractionResponseType as ResponseType, MessageFlags } from "discord-api-types/v10";
import type { APIInteraction } from "discord.js";
import type { Clock } from "../../core/clock.ts";
import { acceptingNotice, notAcceptedNotice } from "../../core/error-messages.ts";
import { isParleyError, isRefusal } from "../../core/errors.ts";
import type { CommandCall } from "../../core/events.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import { receivePatiently } from "../delivery/receive-patiently.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import type { DiscordApi } from "./api.ts";
import { privateFlags, toSentence } from "./content.ts";

/** When a call that is not accepted yet is acknowledged with words. Discord's deadline is three seconds. */
const slowAfterMs = 2000;
/** How long accepting a call is tried: the notice says two minutes. */
const acceptForMs = 100_000;

type Interaction = Pick<APIInteraction, "id" | "token" | "application_id">;

/**
 * Returns a function that passes a call to the receiver and acknowledges it, within Discord's deadline: deferred once
 * it is durable, so that a crash in between leaves no placeholder. Requests of its reply wait for that. A response,
 * which may be another instance's, is edited only when it is certain that nobody answers the call. `spentMs`: of the
 * deadline, before.
 */
export function createCallIntake(options: {
  readonly api: Pick<DiscordApi, "editFollowUp">;
  readonly receiver: Pick<Receiver, "receive" | "refuse">;
  readonly acknowledgements: Acknowledgements;
  readonly clock: Clock;
  readonly log: Log;
}): (interaction: Interaction, call: CommandCall, spentMs?: number) => Promise<void> {
  const { api, receiver, acknowledgements, clock, log } = options;

  /** Resolves to whether Discord took this instance's notice that the call is not accepted yet. */
  async function acknowledge(
    interaction: Pick<APIInteraction, "id" | "token">,
    { key, isPrivate }: CommandCall,
    acceptance: Promise<unknown>,
    spentMs: number,
  ): Promise<boolean> {
    const isSlow = Promise.withResolvers<[undefined]>();
    const cancel = clock.after(Math.max(0, slowAfterMs - spentMs), () => isSlow.resolve([undefined]));
    const [result] = await Promise.race([Promise.allSettled([acceptance]), isSlow.promise]);
    cancel();
    if (result === undefined) {
      return await acknowledgements.send(interaction, {
        type: ResponseType.ChannelMessageWithSource,
        data: { ...toSentence(acceptingNotice()), ...(isPrivate ? { flags: privateFlags } : {}) },
      });
    }
    if (result.status === "rejected")
      return await acknowledgements.refuseCommand(interaction, result.reason, () => receiver.refuse(key));
    // Also for a duplicate: the instance that accepted it may have crashed before it acknowledged it.
    await acknowledgements.send(interaction, {
      type: ResponseType.DeferredChannelMessageWithSource,
      ...(isPrivate ? { data: { flags: MessageFlags.Ephemeral } } : {}),
    });
    return false;
  }

  /** The call is not answered from now on, unless it was accepted all the same: then the answer replaces what was said. */
  async function refuse(
    interaction: Interaction,
    { key }: CommandCall,
    hasNotice: Promise<boolean>,
  ): Promise<void> {
    const isNoticeOurs = await hasNotice;
    if ((await receiver.refuse(key)) === "accepted" || !isNoticeOurs) return;
    const token = { applicationId: interaction.application_id, token: interaction.token };
    await api.editFollowUp(token, "@original", toSentence(notAcceptedNotice()));
  }

  return async (interaction, call, spentMs = 0) => {
    const acceptance = receivePatiently(() => receiver.receive(call), { forMs: acceptForMs, clock });
    const acknowledgement = acknowledge(interaction, call, acceptance, spentMs);
    acknowledgements.expect(interaction.token, acknowledgement);
    await acknowledgement;
    // Not waited for: the platform stops when the acknowledgements are sent.
    acceptance.catch(async (error: unknown) => {
      if (isRefusal(error)) log.info({ key: call.key, code: error.code }, "command refused");
      else log.error({ key: call.key, err: error }, "command not accepted");
      // The rules refuse it whenever it is delivered.
      if (isParleyError(error, "access-denied")) return;
      try {
        await refuse(interaction, call, acknowledgement);
      } catch (failure) {
        log.warn({ key: call.key, err: failure }, "refused command not settled");
      }
    });
  };
}
