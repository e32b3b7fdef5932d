import {
  ApplicationCommandType,
  InteractionType,
  MessageFlags,
  type APIChatInputApplicationCommandInteraction,
  type APIInteraction,
  type APIMessageApplicationCommandInteraction,
  type APIMessageComponentInteraction,
  type APIModalSubmitInteraction,
} from "discord.js";
import type { Actor } from "../../../core/access.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Command } from "../../../core/command.ts";
import { ParleyError } from "../../../core/errors.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inLanguage } from "../../../words/translate.ts";
import { toLanguage } from "../../../words/languages.ts";
import type { Receiver } from "../../../core/receiver.ts";
import type { ActionCall, Press } from "../../../core/press.ts";
import { createActionHandler, createFormClicks } from "./clicks.ts";
import { createAcknowledgements } from "./acknowledgements.ts";
import type { DiscordApi } from "../transport/api.ts";
import { createCallIntake } from "./call-intake.ts";
import { createCommandUses } from "./command-uses.ts";
import { parsePress } from "../reply/content.ts";
import { readFormModal } from "./form-modal.ts";
import { createTypedTexts } from "./typed-text.ts";
import { toAuthor, type Names } from "../intake/incoming.ts";
import type { Locales } from "../intake/locales.ts";
import type { Origins } from "../intake/origin.ts";

/** The options of {@link createInteractionHandler}. */
interface InteractionOptions {
  readonly api: Pick<
    DiscordApi,
    "followUp" | "editFollowUp" | "deleteFollowUp" | "expect" | "respond" | "getMessage" | "getMember"
  >;
  readonly receiver: Receiver;
  readonly commands: ReadonlyMap<string, Command>;
  readonly names: (guildId: string | undefined) => Names;
  readonly origins: Pick<Origins, "ofInteraction">;
  readonly locales: Pick<Locales, "note">;
  /** Returns the notes on fields of forms that do not work with this connection. */
  readonly notes: () => Readonly<Record<string, string>>;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Handles INTERACTION_CREATE: it calls the receiver and acknowledges within Discord's three seconds. Whoever
 * used something that cannot be handled is told so.
 */
export function createInteractionHandler(given: InteractionOptions) {
  const { log } = given;
  const acknowledgements = createAcknowledgements(given);
  const options = { ...given, acknowledgements };
  const takeCall = createCallIntake(options);
  const uses = createCommandUses({ ...options, takeCall });
  const act = createActionHandler({ ...options, toActor, takeCall: takeActionCall });
  const forms = createFormClicks({ ...options, toActor });
  const nameMentions = createTypedTexts(options);

  return function handle(interaction: APIInteraction): Promise<void> {
    if (!("locale" in interaction)) return handleInLanguage(interaction);
    const user = interaction.member?.user ?? interaction.user;
    if (user !== undefined) options.locales.note(user.id, interaction.locale);
    return inLanguage(toLanguage(interaction.locale), () => handleInLanguage(interaction));
  };

  async function handleInLanguage(interaction: APIInteraction): Promise<void> {
    try {
      await nameMentions(interaction);
      await route(interaction);
    } catch (error) {
      log.error({ interaction: interaction.id, err: error }, "interaction handling failed");
      // Only choices can be answered to what somebody types.
      if (interaction.type !== InteractionType.ApplicationCommandAutocomplete)
        await acknowledgements.refuse(interaction, error);
    }
  }

  async function route(interaction: APIInteraction): Promise<void> {
    switch (interaction.type) {
      case InteractionType.ApplicationCommandAutocomplete:
        return uses.complete(interaction);
      case InteractionType.ApplicationCommand:
        if (interaction.data.type === ApplicationCommandType.ChatInput)
          return uses.slash(interaction as APIChatInputApplicationCommandInteraction);
        if (interaction.data.type === ApplicationCommandType.Message)
          return uses.message(interaction as APIMessageApplicationCommandInteraction);
        return;
      case InteractionType.MessageComponent: {
        if (forms.isForm(interaction)) return forms.open(interaction);
        return pressed(interaction, parsePress(interaction.data.custom_id));
      }
      case InteractionType.ModalSubmit: {
        const press = parsePress(interaction.data.custom_id);
        if (press !== undefined)
          return pressed(interaction, { ...press, values: readFormModal(interaction) });
        return forms.isSubmission(interaction) ? forms.submit(interaction) : uses.submit(interaction);
      }
      default:
        log.debug({ type: interaction.type }, "unknown interaction type");
    }
  }

  async function pressed(
    interaction: APIMessageComponentInteraction | APIModalSubmitInteraction,
    pressedHere: Press | undefined,
  ): Promise<void> {
    if (pressedHere === undefined) return;
    const isPrivate = ((interaction.message?.flags ?? 0) & MessageFlags.Ephemeral) !== 0;
    await act(interaction, { ...pressedHere, isPrivate });
  }

  async function toActor(
    interaction: APIMessageComponentInteraction | APIModalSubmitInteraction,
  ): Promise<Actor> {
    const { member, user = member?.user } = interaction;
    if (user === undefined) throw new ParleyError("internal", "an interaction without user");
    const origin = await options.origins.ofInteraction(interaction);
    return { platform: "discord", author: toAuthor(user, member, interaction.locale), origin };
  }

  /** Runs what a button below an answer asks for. Its answer is the response to the click. */
  async function takeActionCall(
    interaction: APIMessageComponentInteraction | APIModalSubmitInteraction,
    { conversationId, name, options: given, pictures }: ActionCall,
    spentMs: number,
  ): Promise<void> {
    const isPrivate = ((interaction.message?.flags ?? 0) & MessageFlags.Ephemeral) !== 0;
    const call = {
      ...uses.toBaseCall(interaction, isPrivate),
      ...(conversationId === undefined ? {} : { conversationId }),
      inConversation: conversationId !== undefined,
      name,
      options: given,
      ...(pictures === undefined ? {} : { pictures }),
      origin: await options.origins.ofInteraction(interaction),
    };
    await takeCall(interaction, call, spentMs);
  }
}
