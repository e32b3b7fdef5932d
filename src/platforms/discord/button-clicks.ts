import { InteractionResponseType, InteractionType, MessageFlags } from "discord-api-types/v10";
import type { APIMessageComponentInteraction, APIModalSubmitInteraction } from "discord.js";
import { isRefusal, ParleyError } from "../../core/errors.ts";
import { goneNotice, toNotice } from "../../core/error-messages.ts";
import type { Actor } from "../../core/access.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import type { DiscordApi, InteractionToken } from "./api.ts";
import { confirmPrefix, parseAction, retryPrefix, toPrivateSentence } from "./content.ts";
import { readFormModal } from "./form-modal.ts";
import type { FreshTokens } from "./fresh-tokens.ts";
import { toAuthor } from "./incoming.ts";
import type { Origins } from "./origin.ts";
import { translate } from "../../words/translate.ts";

type Interaction = APIMessageComponentInteraction | APIModalSubmitInteraction;

/**
 * Handles clicks on the buttons that change a reply (Retry, confirm, Stop, Regenerate, Continue), and forms that do:
 * acknowledges the click, keeps its token for edits of the message, and calls the receiver. Problems are told to the
 * person alone.
 */
export function createButtonHandler(options: {
  readonly api: Pick<DiscordApi, "followUp">;
  readonly acknowledgements: Acknowledgements;
  readonly receiver: Receiver;
  readonly freshTokens: FreshTokens;
  readonly origins: Pick<Origins, "ofInteraction">;
  readonly log: Log;
}): (interaction: Interaction) => Promise<void> {
  const { api, acknowledgements, receiver, freshTokens, origins, log } = options;

  /** Resolves to what the person is told; `undefined`: they see it. */
  async function press(interaction: Interaction, by: Actor): Promise<string | undefined> {
    const { custom_id: customId } = interaction.data;
    const action = parseAction(customId);
    if (action !== undefined) {
      const isForm = interaction.type === InteractionType.ModalSubmit;
      const isPrivate = ((interaction.message?.flags ?? 0) & MessageFlags.Ephemeral) !== 0;
      const use = isForm ? { values: readFormModal(interaction), isPrivate } : {};
      const result = await receiver.act(action, by, use);
      if (result.kind === "done") return undefined;
      if (result.kind === "problems") return Object.values(result.problems).join("\n");
      return result.kind === "told" ? result.markdown : goneNotice();
    }
    const isRetry = customId.startsWith(retryPrefix);
    const key = customId.slice((isRetry ? retryPrefix : confirmPrefix).length);
    const result = await (isRetry ? receiver.retry(key, by) : receiver.confirm(key, by));
    if (result === "refused") return translate("platform.only-asker");
    if (result === "accepted") return undefined;
    return translate(isRetry ? "discord.retry-gone" : "discord.confirm-gone");
  }

  return async (interaction) => {
    const { custom_id: customId } = interaction.data;
    const user = interaction.member?.user ?? interaction.user;
    const isKnown = [retryPrefix, confirmPrefix].some((one) => customId.startsWith(one));
    if (user === undefined || !(isKnown || parseAction(customId) !== undefined)) return;
    const token: InteractionToken = { applicationId: interaction.application_id, token: interaction.token };
    // A process that stops can still stop an answer: that only leaves a mark.
    if (receiver.isStopping() && parseAction(customId)?.kind !== "stop")
      return acknowledgements.refuse(interaction, new ParleyError("stopping", "the process is stopping"));
    // One of several instances handles a click: the one whose response Discord takes.
    const isOurs = await acknowledgements.send(interaction, {
      type: InteractionResponseType.DeferredMessageUpdate,
    });
    if (!isOurs) return;
    if (interaction.message !== undefined) freshTokens.add(interaction.message.id, token);
    let problem: string | undefined;
    try {
      const origin = await origins.ofInteraction(interaction);
      problem = await press(interaction, {
        platform: "discord",
        author: toAuthor(user, interaction.member, interaction.locale),
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
