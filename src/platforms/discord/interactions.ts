import {
  ApplicationCommandOptionType as OptionType,
  ApplicationCommandType,
  ApplicationIntegrationType,
  InteractionResponseType as ResponseType,
  InteractionType,
  MessageFlags,
  type APIApplicationCommandAutocompleteInteraction,
  type APIApplicationCommandInteraction,
  type APIChatInputApplicationCommandInteraction,
  type APIInteraction,
  type APIMessageApplicationCommandInteraction,
  type APIMessageComponentInteraction,
  type APIModalSubmitInteraction,
} from "discord.js";
import type { Command } from "../../core/command.ts";
import { resolveInput, type CommandInput, type ResolvedInput } from "../../core/command-input.ts";
import { ParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { CommandCall, RawOption } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Receiver } from "../../core/platform.ts";
import {
  conversationIdOf,
  isDirectType,
  isThreadType,
  placesAround,
  toReplyAddress,
  type InteractionAddress,
} from "./address.ts";
import type { DiscordApi, InteractionToken } from "./api.ts";
import { confirmPrefix, retryPrefix, toPrivateSentence } from "./content.ts";
import { codes, discordCode } from "./errors.ts";
import type { FreshTokens } from "./fresh-tokens.ts";
import { readMessage, toAttachment, toAuthor, type Names } from "./incoming.ts";
import { isAskModal, parseAskModal, toAskModal } from "./ask-modal.ts";
import type { Subjects } from "./modal-target-cache.ts";

/** A token works for 15 minutes; the last half minute is left alone. */
const tokenUsableMs = 14.5 * 60 * 1000;
const maxChoices = 25;
const maxChoiceChars = 100;

export interface InteractionOptions {
  readonly api: DiscordApi;
  readonly receiver: Receiver;
  readonly commands: ReadonlyMap<string, Command>;
  readonly names: (guildId: string | undefined) => Names;
  readonly subjects: Subjects;
  readonly freshTokens: FreshTokens;
  readonly now: () => number;
  readonly log: Log;
}

type Call = APIApplicationCommandInteraction | APIModalSubmitInteraction;

/** Handles INTERACTION_CREATE: acknowledges within Discord's three seconds, then hands over to the receiver. */
export function createInteractionHandler(options: InteractionOptions) {
  const { api, receiver, commands, log, subjects } = options;

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
      case InteractionType.MessageComponent:
        return click(interaction);
      case InteractionType.ModalSubmit:
        return submit(interaction);
      default:
        log.debug({ type: interaction.type }, "an interaction of an unknown type");
    }
  };

  async function complete(interaction: APIApplicationCommandAutocompleteInteraction): Promise<void> {
    const focused = interaction.data.options.find((option) => "focused" in option && option.focused);
    const typed = focused !== undefined && "value" in focused ? String(focused.value) : "";
    const choices = receiver
      .suggestModels(typed)
      .filter((id) => id.length <= maxChoiceChars)
      .slice(0, maxChoices)
      .map((id) => ({ name: id, value: id }));
    await api.respond(interaction.id, interaction.token, {
      type: ResponseType.ApplicationCommandAutocompleteResult,
      data: { choices },
    });
  }

  async function slashCommand(interaction: APIChatInputApplicationCommandInteraction): Promise<void> {
    const command = commands.get(interaction.data.name);
    if (command === undefined) return refuse(interaction, unknownCommand(interaction.data.name));
    await run(interaction, command, { options: readOptions(interaction) });
  }

  async function messageCommand(interaction: APIMessageApplicationCommandInteraction): Promise<void> {
    const { name, target_id: targetId, resolved } = interaction.data;
    const command = [...commands.values()].find((one) => one.messageCommand?.label === name);
    const target = resolved.messages[targetId];
    if (command === undefined || target === undefined) return refuse(interaction, unknownCommand(name));
    const subject = {
      author: toAuthor(target.author),
      ...readMessage(target, options.names(interaction.guild_id)),
    };
    if ((command.messageCommand?.asks ?? []).length > 0) {
      subjects.keep(targetId, subject);
      await api.respond(interaction.id, interaction.token, {
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
    if (command === undefined) return refuse(interaction, unknownCommand(commandName));
    const subject = await subjects.find(target, options.names(interaction.guild_id));
    if (subject === undefined)
      return refuse(
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

  /** Defers, takes the call in, and tells the person where that fails. */
  async function run(interaction: Call, command: Command, input: CommandInput): Promise<void> {
    let resolved: ResolvedInput;
    try {
      resolved = resolveInput(command, input);
    } catch (error) {
      return refuse(interaction, error);
    }
    try {
      await api.respond(interaction.id, interaction.token, {
        type: ResponseType.DeferredChannelMessageWithSource,
        ...(resolved.isPrivate ? { data: { flags: MessageFlags.Ephemeral } } : {}),
      });
    } catch (error) {
      const code = discordCode(error);
      if (code !== codes.alreadyAcknowledged && code !== codes.unknownInteraction) throw error;
      if (code === codes.unknownInteraction) {
        log.warn({ interaction: interaction.id, err: error }, "a command came too late");
        return;
      }
      // Another instance has deferred it, and may have died since: whoever accepts it first answers it.
      log.debug({ interaction: interaction.id }, "a command was deferred elsewhere");
    }
    const call = toCall(interaction, command, resolved, input.subject);
    if (call === undefined) return;
    try {
      await receiver.receive(call);
    } catch (error) {
      log.error({ key: call.key, err: error }, "a command could not be taken in");
      await tellPrivately(interaction, toNotice(error));
    }
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
    // Without the guild's or the bot's own installation, only the interaction itself can be answered.
    const isGuest =
      interaction.authorizing_integration_owners[ApplicationIntegrationType.GuildInstall] === undefined;
    const inConversation = !isGuest && (isDirectType(channel.type) || isThreadType(channel.type));
    const key = `discord:${interaction.id}`;
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
      conversationId: inConversation ? conversationIdOf(channel.id) : key,
      author: toAuthor(user, interaction.member),
      sentAt: options.now(),
      address: toReplyAddress({
        channelId: channel.id,
        channelType: channel.type,
        eventId: interaction.id,
        interaction: address,
      }),
      ...placesAround(interaction.guild_id, [channel.id, "parent_id" in channel ? channel.parent_id : null]),
      name: command.name,
      options: given,
      inConversation,
      isPrivate,
      ...(subject === undefined ? {} : { subject }),
    };
  }

  async function click(interaction: APIMessageComponentInteraction): Promise<void> {
    const { custom_id: customId } = interaction.data;
    const [prefix] = [retryPrefix, confirmPrefix].filter((one) => customId.startsWith(one));
    const user = interaction.member?.user ?? interaction.user;
    if (prefix === undefined || user === undefined) return;
    const key = customId.slice(prefix.length);
    const token: InteractionToken = { applicationId: interaction.application_id, token: interaction.token };
    await api.respond(interaction.id, interaction.token, { type: ResponseType.DeferredMessageUpdate });
    options.freshTokens.add(interaction.message.id, token);
    let problem: string | undefined;
    try {
      const result = await (prefix === retryPrefix
        ? receiver.retry(key)
        : receiver.confirm(key, toAuthor(user).id));
      if (result === "gone")
        problem = `This cannot be ${prefix === retryPrefix ? "tried again" : "confirmed"} any more. Ask once more, please.`;
      if (result === "refused") problem = "Only the person who asked can confirm this.";
    } catch (error) {
      log.error({ interaction: interaction.id, err: error }, "a button could not be followed");
      problem = toNotice(error);
    }
    if (problem === undefined) return;
    await api.followUp(token, toPrivateSentence(problem));
  }

  /** Answers an interaction that has not been acknowledged, for its person alone. */
  async function refuse(interaction: Call, error: unknown): Promise<void> {
    await api.respond(interaction.id, interaction.token, {
      type: ResponseType.ChannelMessageWithSource,
      data: toPrivateSentence(toNotice(error)),
    });
  }

  /** After a defer that everyone sees: the placeholder goes, and only the person is told. */
  async function tellPrivately(interaction: Call, text: string): Promise<void> {
    const token = { applicationId: interaction.application_id, token: interaction.token };
    await api.deleteFollowUp(token, "@original");
    await api.followUp(token, toPrivateSentence(text));
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
