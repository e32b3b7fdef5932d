import {
  ApplicationCommandOptionType as OptionType,
  ApplicationCommandType,
  ApplicationIntegrationType,
  InteractionResponseType as ResponseType,
  InteractionType,
  type APIApplicationCommandAutocompleteInteraction,
  type APIApplicationCommandInteraction,
  type APIChatInputApplicationCommandInteraction,
  type APIInteraction,
  type APIMessageApplicationCommandInteraction,
  type APIMessageComponentInteraction,
  type APIModalSubmitInteraction,
} from "discord.js";
import type { Actor } from "../../core/access.ts";
import type { Command } from "../../core/command.ts";
import { resolveInput, type CommandInput, type ResolvedInput } from "../../core/command-input.ts";
import { ParleyError } from "../../core/errors.ts";
import type { CommandCall, RawOption } from "../../core/events.ts";
import { isSettingName } from "../../core/layered-settings.ts";
import { suggestSettingValues } from "../../core/setting-values.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Receiver } from "../../core/platform.ts";
import {
  toConversationId,
  isDirectType,
  isThreadType,
  toEnclosingPlaces,
  toCommandKey,
  toReplyAddress,
  type InteractionAddress,
} from "./address.ts";
import { createActionHandler } from "./action-clicks.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import type { DiscordApi } from "./api.ts";
import { isAskModal, parseAskModal, toAskModal } from "./ask-modal.ts";
import { createButtonHandler } from "./button-clicks.ts";
import { createCallIntake } from "./call-intake.ts";
import { parseAction } from "./content.ts";
import { createFormClicks } from "./form-clicks.ts";
import type { FreshTokens } from "./fresh-tokens.ts";
import { readMessage, toAttachment, toAuthor, type Names } from "./incoming.ts";
import type { Origins } from "./origin.ts";
import type { ModalTargetCache } from "./modal-target-cache.ts";

/** An interaction's token is valid for 15 minutes. It is not used in the last half minute. */
const tokenUsableMs = 14.5 * 60 * 1000;
const maxChoices = 25;
const maxChoiceChars = 100;

/** What {@link createInteractionHandler} works with. */
export interface InteractionOptions {
  readonly api: Pick<DiscordApi, "followUp" | "editFollowUp">;
  readonly acknowledgements: Acknowledgements;
  readonly receiver: Receiver;
  readonly commands: ReadonlyMap<string, Command>;
  readonly names: (guildId: string | undefined) => Names;
  readonly origins: Pick<Origins, "ofInteraction">;
  readonly modalTargets: ModalTargetCache;
  readonly freshTokens: FreshTokens;
  /** On fields of forms that do not work with this connection. */
  readonly notes: () => Readonly<Record<string, string>>;
  readonly now: () => number;
  readonly log: Log;
}

type Call = APIApplicationCommandInteraction | APIModalSubmitInteraction;

/** Handles INTERACTION_CREATE: calls the receiver and acknowledges, within Discord's three seconds. */
export function createInteractionHandler(options: InteractionOptions) {
  const { acknowledgements, receiver, commands, log, modalTargets } = options;
  const click = createButtonHandler(options);
  const act = createActionHandler({ ...options, toActor });
  const takeCall = createCallIntake(options);
  const forms = createFormClicks(options);

  return async function handle(interaction: APIInteraction): Promise<void> {
    switch (interaction.type) {
      case InteractionType.ApplicationCommandAutocomplete:
        return complete(interaction);
      case InteractionType.ApplicationCommand:
        if (interaction.data.type === ApplicationCommandType.ChatInput)
          return slashCommand(interaction as APIChatInputApplicationCommandInteraction);
        if (interaction.data.type === ApplicationCommandType.Message)
          return messageCommand(interaction as APIMessageApplicationCommandInteraction);
        return;
      case InteractionType.MessageComponent: {
        if (forms.isForm(interaction)) return forms.open(interaction);
        const action = parseAction(interaction.data.custom_id);
        return action === undefined ? click(interaction) : act(interaction, action);
      }
      case InteractionType.ModalSubmit:
        return forms.isSubmission(interaction) ? forms.submit(interaction) : submit(interaction);
      default:
        log.debug({ type: interaction.type }, "unknown interaction type");
    }
  };

  async function toActor(interaction: APIMessageComponentInteraction): Promise<Actor | undefined> {
    const { member, user = member?.user } = interaction;
    if (user === undefined) return undefined;
    const origin = await options.origins.ofInteraction(interaction);
    return { platform: "discord", author: toAuthor(user, member), origin };
  }

  async function complete(interaction: APIApplicationCommandAutocompleteInteraction): Promise<void> {
    const focused = interaction.data.options.find((option) => "focused" in option && option.focused);
    const typed = focused !== undefined && "value" in focused ? String(focused.value) : "";
    const option = commands.get(interaction.data.name)?.options[focused?.name ?? ""];
    const setting = interaction.data.options.find(({ name }) => name === "name");
    const name = setting !== undefined && "value" in setting ? String(setting.value) : "";
    const isSettingValue = option?.kind === "string" && option.completes === "setting-values";
    const found = !isSettingValue
      ? receiver.suggestModels(typed)
      : isSettingName(name)
        ? suggestSettingValues(name, typed, (query) => receiver.suggestModels(query))
        : [];
    const choices = found
      .filter((id) => id.length <= maxChoiceChars)
      .slice(0, maxChoices)
      .map((id) => ({ name: id, value: id }));
    await acknowledgements.send(interaction, {
      type: ResponseType.ApplicationCommandAutocompleteResult,
      data: { choices },
    });
  }

  async function slashCommand(interaction: APIChatInputApplicationCommandInteraction): Promise<void> {
    const command = commands.get(interaction.data.name);
    if (command === undefined)
      return acknowledgements.refuse(interaction, unknownCommand(interaction.data.name));
    await run(interaction, command, { options: readOptions(interaction) });
  }

  async function messageCommand(interaction: APIMessageApplicationCommandInteraction): Promise<void> {
    const { name, target_id: targetId, resolved } = interaction.data;
    const command = [...commands.values()].find((one) => one.messageCommand?.label === name);
    const target = resolved.messages[targetId];
    if (command === undefined || target === undefined)
      return acknowledgements.refuse(interaction, unknownCommand(name));
    const subject = {
      author: toAuthor(target.author),
      ...readMessage(target, options.names(interaction.guild_id)),
    };
    if ((command.messageCommand?.asks ?? []).length > 0) {
      modalTargets.set(targetId, subject);
      await acknowledgements.send(interaction, {
        type: ResponseType.Modal,
        data: toAskModal(command, { channelId: target.channel_id, messageId: targetId }),
      });
      return;
    }
    await run(interaction, command, { subject });
  }

  async function submit(interaction: APIModalSubmitInteraction): Promise<void> {
    if (!isAskModal(interaction.data.custom_id)) return;
    const { commandName, options: given, ...target } = parseAskModal(interaction);
    const command = commands.get(commandName);
    // The modal was opened by an earlier version of the bot.
    if (command === undefined) return acknowledgements.refuse(interaction, unknownCommand(commandName));
    const subject = await modalTargets.find(target, options.names(interaction.guild_id));
    if (subject === undefined)
      return acknowledgements.refuse(
        interaction,
        new ParleyError("attachment-gone", "the message was deleted", { detail: { name: "The message" } }),
      );
    await run(interaction, command, { options: given, subject });
  }

  function unknownCommand(name: string): ParleyError {
    return new ParleyError("unknown-command", "no such command", {
      detail: { command: name, commands: [...commands.keys()].map((one) => `/${one}`).join(", ") },
    });
  }

  /** Passes a command to the receiver. Failures are told to the person alone. */
  async function run(interaction: Call, command: Command, input: CommandInput): Promise<void> {
    let resolved: ResolvedInput;
    try {
      resolved = resolveInput(command, input);
    } catch (error) {
      return acknowledgements.refuse(interaction, error);
    }
    const call = toCall(interaction, command, resolved, input.subject);
    if (call === undefined) return;
    const [origin] = await Promise.allSettled([options.origins.ofInteraction(interaction)]);
    if (origin.status === "fulfilled") await takeCall(interaction, { ...call, origin: origin.value });
    else await acknowledgements.refuse(interaction, origin.reason, { isAtOnce: true });
  }

  function toCall(
    interaction: Call,
    command: Command,
    { options: given, isPrivate }: ResolvedInput,
    subject: CommandCall["subject"],
  ): CommandCall | undefined {
    const user = interaction.member?.user ?? interaction.user;
    const { channel } = interaction;
    if (user === undefined || channel === undefined) return undefined;
    // Installed for the user only: the bot can answer the interaction and nothing else.
    const isGuest =
      interaction.authorizing_integration_owners[ApplicationIntegrationType.GuildInstall] === undefined;
    const inConversation = !isGuest && (isDirectType(channel.type) || isThreadType(channel.type));
    const key = toCommandKey(interaction.id);
    const address: InteractionAddress = {
      id: interaction.id,
      applicationId: interaction.application_id,
      token: interaction.token,
      expiresAt: options.now() + tokenUsableMs,
      isPrivate,
      userId: user.id,
      isGuest,
      maxFileBytes: interaction.attachment_size_limit,
    };
    return {
      kind: "call",
      key,
      platform: "discord",
      conversationId: inConversation ? toConversationId(channel.id) : key,
      author: toAuthor(user, interaction.member),
      sentAt: options.now(),
      address: toReplyAddress({
        channelId: channel.id,
        channelType: channel.type,
        eventId: interaction.id,
        interaction: address,
      }),
      ...toEnclosingPlaces(interaction.guild_id, [
        channel.id,
        "parent_id" in channel ? channel.parent_id : null,
      ]),
      name: command.name,
      options: given,
      inConversation,
      isPrivate,
      ...(subject === undefined ? {} : { subject }),
    };
  }
}

function readOptions(interaction: APIChatInputApplicationCommandInteraction): Record<string, RawOption> {
  const { options = [], resolved } = interaction.data;
  const given: Record<string, RawOption> = {};
  for (const option of options) {
    if (option.type === OptionType.Attachment) {
      const attachment = resolved?.attachments?.[option.value];
      if (attachment !== undefined) given[option.name] = toAttachment(attachment);
    } else if ("value" in option) {
      given[option.name] = option.value;
    }
  }
  return given;
}
