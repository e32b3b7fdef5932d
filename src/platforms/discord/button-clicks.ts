import { InteractionResponseType, type APIMessageComponentInteraction } from "discord.js";
import { ParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import type { DiscordApi, InteractionToken } from "./api.ts";
import { confirmPrefix, retryPrefix, toPrivateSentence } from "./content.ts";
import type { FreshTokens } from "./fresh-tokens.ts";
import { toAuthor } from "./incoming.ts";

/**
 * Handles clicks on the Retry and confirm buttons of replies: acknowledges the click, keeps its token for edits of
 * the message, and calls the receiver. Problems are told to the person alone.
 */
export function createButtonHandler(options: {
  readonly api: Pick<DiscordApi, "followUp">;
  readonly acknowledgements: Acknowledgements;
  readonly receiver: Receiver;
  readonly freshTokens: FreshTokens;
  readonly log: Log;
}): (interaction: APIMessageComponentInteraction) => Promise<void> {
  const { api, acknowledgements, receiver, freshTokens, log } = options;

  async function press(customId: string, userId: string): Promise<string | undefined> {
    const isRetry = customId.startsWith(retryPrefix);
    const key = customId.slice((isRetry ? retryPrefix : confirmPrefix).length);
    const result = await (isRetry ? receiver.retry(key) : receiver.confirm(key, userId));
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
      problem = await press(customId, toAuthor(user).id);
    } catch (error) {
      log.error({ interaction: interaction.id, err: error }, "button click not handled");
      problem = toNotice(error);
    }
    if (problem !== undefined) await api.followUp(token, toPrivateSentence(problem));
  };
}
