import { InteractionResponseType, type APIMessageComponentInteraction } from "discord.js";
import { isRefusal, ParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { Actor } from "../../core/access.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import type { DiscordApi, InteractionToken } from "./api.ts";
import { confirmPrefix, retryPrefix, toPrivateSentence } from "./content.ts";
import type { FreshTokens } from "./fresh-tokens.ts";
import { toAuthor } from "./incoming.ts";
import type { Origins } from "./origin.ts";

/**
 * Handles clicks on the Retry and confirm buttons of replies: acknowledges the click, keeps its token for edits of
 * the message, and calls the receiver. Problems are told to the person alone.
 */
export function createButtonHandler(options: {
  readonly api: Pick<DiscordApi, "followUp">;
  readonly acknowledgements: Acknowledgements;
  readonly receiver: Receiver;
  readonly freshTokens: FreshTokens;
  readonly origins: Pick<Origins, "ofInteraction">;
  readonly log: Log;
}): (interaction: APIMessageComponentInteraction) => Promise<void> {
  const { api, acknowledgements, receiver, freshTokens, origins, log } = options;

  async function press(customId: string, by: Actor): Promise<string | undefined> {
    const isRetry = customId.startsWith(retryPrefix);
    const key = customId.slice((isRetry ? retryPrefix : confirmPrefix).length);
    const result = await (isRetry ? receiver.retry(key, by) : receiver.confirm(key, by));
    if (result === "refused") return "Only the person who asked can confirm this.";
    if (result === "accepted") return undefined;
    return `This cannot be ${isRetry ? "tried again" : "confirmed"} any more. Ask once more, please.`;
  }

  return async (interaction) => {
    const { custom_id: customId } = interaction.data;
    const user = interaction.member?.user ?? interaction.user;
    if (user === undefined || ![retryPrefix, confirmPrefix].some((one) => customId.startsWith(one))) return;
    const token: InteractionToken = { applicationId: interaction.application_id, token: interaction.token };
    if (receiver.isStopping())
      return acknowledgements.refuse(interaction, new ParleyError("stopping", "the process is stopping"));
    // One of several instances handles a click: the one whose response Discord takes.
    const isOurs = await acknowledgements.send(interaction, {
      type: InteractionResponseType.DeferredMessageUpdate,
    });
    if (!isOurs) return;
    freshTokens.add(interaction.message.id, token);
    let problem: string | undefined;
    try {
      const origin = await origins.ofInteraction(interaction);
      problem = await press(customId, {
        platform: "discord",
        author: toAuthor(user, interaction.member),
        origin,
      });
    } catch (error) {
      if (isRefusal(error))
        log.info({ interaction: interaction.id, code: error.code }, "button click refused");
      else log.error({ interaction: interaction.id, err: error }, "button click not handled");
      problem = toNotice(error);
    }
    if (problem !== undefined) await api.followUp(token, toPrivateSentence(problem));
  };
}
