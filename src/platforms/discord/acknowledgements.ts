import { InteractionResponseType } from "discord-api-types/v10";
import type { APIInteraction } from "discord.js";
import type { Clock } from "../../core/clock.ts";
import { acceptingNotice, toNotice } from "../../core/error-messages.ts";
import { isParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { DiscordApi } from "./api.ts";
import { toPrivateSentence } from "./content.ts";
import { errorCodes, discordCode } from "./errors.ts";

/**
 * How long a refusal waits: another instance may accept the same interaction, and acknowledges it before that.
 * Discord's deadline is three seconds.
 */
const refuseAfterMs = 2000;
/** How long the store is asked then whether another instance has accepted it, in milliseconds. */
const maxAskMs = 300;

/** Acknowledges interactions. All instances with the same token receive each one, and Discord takes one response. */
export interface Acknowledgements {
  /**
   * Sends a response. Returns whether Discord took it: not where it came second or too late. Contract: must not throw.
   * @param body the response, as Discord's API has it
   */
  send(interaction: Pick<APIInteraction, "id" | "token">, body: unknown): Promise<boolean>;
  /**
   * Tells the person alone why it is refused: wrong input and what the rules forbid at once, all else after two seconds,
   * unless another instance has responded. `isAtOnce`: without that wait, since much of the deadline is over.
   */
  refuse(
    interaction: Pick<APIInteraction, "id" | "token">,
    error: unknown,
    options?: { readonly isAtOnce?: boolean },
  ): Promise<void>;
  /**
   * The same for a command. `refuseKey` makes the refusal final first: where it was accepted, nothing is said, and
   * where that is not known in time, words that are true either way. Resolves to whether Discord took those words.
   */
  refuseCommand(
    interaction: Pick<APIInteraction, "id" | "token">,
    error: unknown,
    refuseKey: () => Promise<"refused" | "accepted">,
  ): Promise<boolean>;
  /** Requests with this token wait until `acknowledgement` has settled. */
  expect(token: string, acknowledgement: Promise<unknown>): void;
  /** Resolves when no acknowledgement with that token is expected any more. */
  settled(token: string): Promise<void>;
}

/** @see {@link Acknowledgements} */
export function createAcknowledgements(
  api: Pick<DiscordApi, "respond">,
  log: Log,
  clock: Clock,
): Acknowledgements {
  const pending = new Map<string, Promise<unknown>>();

  async function send(interaction: Pick<APIInteraction, "id" | "token">, body: unknown): Promise<boolean> {
    try {
      await api.respond(interaction.id, interaction.token, body);
      return true;
    } catch (error) {
      const fields = { interaction: interaction.id, err: error };
      if (discordCode(error) === errorCodes.alreadyAcknowledged)
        log.debug(fields, "interaction already acknowledged by another instance");
      else log.warn(fields, "interaction not acknowledged");
      return false;
    }
  }

  const tell = (interaction: Pick<APIInteraction, "id" | "token">, notice: string): Promise<boolean> =>
    send(interaction, {
      type: InteractionResponseType.ChannelMessageWithSource,
      data: toPrivateSentence(notice),
    });

  return {
    send,
    async refuse(interaction, error, { isAtOnce = false } = {}) {
      if (!isUnanimous(error) && !isAtOnce) await clock.sleep(refuseAfterMs);
      await tell(interaction, toNotice(error));
    },
    async refuseCommand(interaction, error, refuseKey) {
      if (!isUnanimous(error)) {
        await clock.sleep(refuseAfterMs);
        const outcome = await Promise.race([refuseKey().catch(() => undefined), clock.sleep(maxAskMs)]);
        // The instance that accepted it acknowledges it.
        if (outcome === "accepted") return false;
        if (outcome === undefined) return await tell(interaction, acceptingNotice());
      }
      await tell(interaction, toNotice(error));
      return false;
    },
    expect(token, acknowledgement) {
      const settled = Promise.allSettled([acknowledgement]).then(() => pending.delete(token));
      pending.set(token, settled);
    },
    async settled(token) {
      await pending.get(token);
    },
  };
}

/** Whether every instance refuses it: each reads the same input and the same rules in the same way. */
function isUnanimous(error: unknown): boolean {
  return isParleyError(error, "invalid-option") || isParleyError(error, "access-denied");
}

/** The API, whose requests about an interaction's messages wait for its acknowledgement: Discord rejects earlier ones. */
export function withAcknowledgements(
  api: DiscordApi,
  { settled }: Pick<Acknowledgements, "settled">,
): DiscordApi {
  return {
    ...api,
    async followUp(interaction, body, options) {
      await settled(interaction.token);
      return api.followUp(interaction, body, options);
    },
    async editFollowUp(interaction, messageId, body, options) {
      await settled(interaction.token);
      return api.editFollowUp(interaction, messageId, body, options);
    },
    async getFollowUp(interaction, messageId) {
      await settled(interaction.token);
      return api.getFollowUp(interaction, messageId);
    },
    async deleteFollowUp(interaction, messageId) {
      await settled(interaction.token);
      await api.deleteFollowUp(interaction, messageId);
    },
  };
}
