import {
  ApplicationCommandOptionType as OptionType,
  InteractionResponseType as ResponseType,
  type APIApplicationCommandAutocompleteInteraction,
  type APIApplicationCommandInteraction,
  type APIChatInputApplicationCommandInteraction,
  type APIMessage,
  type APIMessageApplicationCommandInteraction,
  type APIMessageComponentInteraction,
  type APIModalSubmitInteraction,
} from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import type { Command } from "../../../core/command.ts";
import { resolveInput, type CommandInput, type ResolvedInput } from "../../../core/command-input.ts";
import { ParleyError } from "../../../core/errors.ts";
import type { CommandCall, RawOption } from "../../../core/events.ts";
import { isSettingName } from "../../../core/layered-settings.ts";
import type { Receiver } from "../../../core/receiver.ts";
import { suggestSettingValues } from "../../../core/setting-values.ts";
import { inTime } from "../../../support/clock.ts";
import { unknownCommand } from "../../../support/text.ts";
import { translate } from "../../../words/translate.ts";
import {
  isDirectType,
  isThreadType,
  toCommandKey,
  toConversationId,
  toEnclosingPlaces,
  toReplyAddress,
  type InteractionAddress,
} from "../address.ts";
import { readMessage, toAttachment, toAuthor, withPostTitle, type Names } from "../intake/incoming.ts";
import type { Origins } from "../intake/origin.ts";
import { discordCode, errorCodes, withPermission } from "../errors.ts";
import type { DiscordApi } from "../transport/api.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import { isAskModal, parseAskModal, toAskModal, type createCallIntake } from "./call-intake.ts";

/** An interaction's token is valid for 15 minutes. It is not used in the last half minute. */
const tokenUsableMs = 14.5 * 60 * 1000;
const maxChoices = 25;
const lookupMs = 1500;
const maxChoiceChars = 100;

type Call = APIApplicationCommandInteraction | APIModalSubmitInteraction;

/** Handles uses of commands: as they are typed, in menus of messages, and in the forms that those open. */
interface CommandUses {
  /** Suggests values for the option that somebody types. */
  complete(interaction: APIApplicationCommandAutocompleteInteraction): Promise<void>;
  slash(interaction: APIChatInputApplicationCommandInteraction): Promise<void>;
  message(interaction: APIMessageApplicationCommandInteraction): Promise<void>;
  /** Takes a form that {@link message} has opened. It ignores others. */
  submit(interaction: APIModalSubmitInteraction): Promise<void>;
  /** Makes a call that belongs to no conversation. */
  toBaseCall(
    interaction: Call | APIMessageComponentInteraction,
    isPrivate: boolean,
  ): Omit<CommandCall, "name" | "options" | "inConversation">;
}

export function createCommandUses(options: {
  readonly acknowledgements: Acknowledgements;
  readonly receiver: Pick<Receiver, "suggestModels">;
  readonly commands: ReadonlyMap<string, Command>;
  readonly names: (guildId: string | undefined) => Names;
  readonly origins: Pick<Origins, "ofInteraction">;
  readonly api: Pick<DiscordApi, "getMessage">;
  readonly takeCall: ReturnType<typeof createCallIntake>;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly clock: Clock;
}): CommandUses {
  const { api, acknowledgements, receiver, commands, takeCall } = options;

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
      return acknowledgements.refuse(interaction, unknownCommand(interaction.data.name, commands.keys()));
    await run(interaction, command, { options: readOptions(interaction) });
  }

  async function messageCommand(interaction: APIMessageApplicationCommandInteraction): Promise<void> {
    const { name, target_id: targetId, resolved } = interaction.data;
    const command = [...commands.values()].find((one) => one.messageCommand?.label === name);
    const target = resolved.messages[targetId];
    if (command === undefined || target === undefined)
      return acknowledgements.refuse(interaction, unknownCommand(name, commands.keys()));
    if ((command.messageCommand?.asks ?? []).length > 0) {
      await acknowledgements.send(interaction, {
        type: ResponseType.Modal,
        data: toAskModal(command, { channelId: target.channel_id, messageId: targetId }),
      });
      return;
    }
    await run(interaction, command, { subject: toSubject(target, interaction) });
  }

  async function submit(interaction: APIModalSubmitInteraction): Promise<void> {
    if (!isAskModal(interaction.data.custom_id))
      return acknowledgements.refuse(
        interaction,
        new ParleyError("not-permitted", "the id of a form cannot be read", {
          detail: { problem: translate("form.outdated") },
        }),
      );
    const { commandName, options: given, ...target } = parseAskModal(interaction);
    const command = commands.get(commandName);
    // The modal was opened by an earlier version of the bot.
    if (command === undefined)
      return acknowledgements.refuse(interaction, unknownCommand(commandName, commands.keys()));
    let message: APIMessage;
    try {
      // Discord sends the message with the message command, but not with its form.
      message = await soonEnough(api.getMessage(target.channelId, target.messageId), options.clock);
    } catch (error) {
      const isDeleted = discordCode(error) === errorCodes.unknownMessage;
      const gone = { detail: { what: translate("platform.the-message") } };
      return acknowledgements.refuse(
        interaction,
        isDeleted
          ? new ParleyError("attachment-gone", "the message was deleted", gone)
          : withPermission(error, "Read Message History"),
      );
    }
    await run(interaction, command, { options: given, subject: toSubject(message, interaction) });
  }

  function toSubject(message: APIMessage, interaction: Call): NonNullable<CommandCall["subject"]> {
    const read = readMessage(message, options.names(interaction.guild_id));
    return { author: toAuthor(message.author), ...inItsPost(read, message.id, interaction) };
  }

  /** Passes a command to the receiver. Only the person is told of failures. */
  async function run(interaction: Call, command: Command, input: CommandInput): Promise<void> {
    let resolved: ResolvedInput;
    try {
      resolved = resolveInput(command, input);
    } catch (error) {
      return acknowledgements.refuse(interaction, error);
    }
    const call = toCall(interaction, command, resolved, input.subject);
    const [origin] = await Promise.allSettled([options.origins.ofInteraction(interaction)]);
    if (origin.status === "fulfilled") await takeCall(interaction, { ...call, origin: origin.value });
    else await acknowledgements.refuse(interaction, origin.reason);
  }

  function isOwnThread({ channel, guild_id: guildId }: Call): boolean {
    if (channel === undefined || !("owner_id" in channel)) return false;
    return channel.owner_id === options.names(guildId).botId;
  }

  function toCall(
    interaction: Call,
    command: Command,
    { options: given, isPrivate }: ResolvedInput,
    subject: CommandCall["subject"],
  ): CommandCall {
    const base = toBaseCall(interaction, isPrivate);
    const { type, id } = interaction.channel!;
    const inConversation = isDirectType(type) || isThreadType(type);
    return {
      ...base,
      ...(inConversation ? { conversationId: toConversationId(id) } : {}),
      name: command.name,
      options: given,
      inConversation,
      ...(inConversation && isThreadType(type) && !isOwnThread(interaction) ? { inRoom: true } : {}),
      ...(subject === undefined ? {} : { subject }),
    };
  }

  function toBaseCall(
    interaction: Call | APIMessageComponentInteraction,
    isPrivate: boolean,
  ): Omit<CommandCall, "name" | "options" | "inConversation"> {
    const user = interaction.member?.user ?? interaction.user;
    const { channel } = interaction;
    if (user === undefined || channel === undefined)
      throw new ParleyError("internal", "an interaction without user or channel");
    const key = toCommandKey(interaction.id);
    const address: InteractionAddress = {
      id: interaction.id,
      applicationId: interaction.application_id,
      token: interaction.token,
      expiresAt: options.now() + tokenUsableMs,
      isPrivate,
      userId: user.id,
      maxFileBytes: interaction.attachment_size_limit,
    };
    return {
      kind: "call",
      key,
      platform: "discord",
      conversationId: key,
      author: toAuthor(user, interaction.member, interaction.locale),
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
      isPrivate,
    };
  }

  return { complete, slash: slashCommand, message: messageCommand, submit, toBaseCall };
}

/** Puts the title of a forum post before its first message, which has the id of the post. */
function inItsPost<T extends { readonly text: string }>(subject: T, messageId: string, { channel }: Call): T {
  const title = channel?.id === messageId && "name" in channel ? channel.name : undefined;
  return { ...subject, text: withPostTitle(title ?? undefined, subject.text) };
}

/** Waits for a look-up that the response needs, at most 1.5 s. @throws ParleyError `platform-unreachable` */
async function soonEnough<T>(looking: Promise<T>, clock: Clock): Promise<T> {
  const looked = await inTime(
    looking.then((found) => ({ found })),
    lookupMs,
    { clock },
  );
  if (looked === undefined)
    throw new ParleyError("platform-unreachable", "looking up the message took too long");
  return looked.found;
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
