import {
  ApplicationCommandOptionType as OptionType,
  ApplicationCommandType,
  ApplicationIntegrationType,
  InteractionContextType,
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
import type { Actor } from "../../../core/access.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Command } from "../../../core/command.ts";
import { resolveInput, type CommandInput, type ResolvedInput } from "../../../core/command-input.ts";
import { ParleyError } from "../../../core/errors.ts";
import type { CommandCall, RawOption } from "../../../core/events.ts";
import { isSettingName } from "../../../core/layered-settings.ts";
import { suggestSettingValues } from "../../../core/setting-values.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inTime } from "../../../support/clock.ts";
import { toLanguage } from "../../../words/languages.ts";
import type { Receiver } from "../../../core/platform.ts";
import { isForOneProcess, type ActionCall, type Press } from "../../../core/press.ts";
import {
  toConversationId,
  isDirectType,
  isThreadType,
  toEnclosingPlaces,
  toCommandKey,
  toReplyAddress,
  type InteractionAddress,
} from "../address.ts";
import { createActionHandler, createButtonHandler, createFormClicks } from "./clicks.ts";
import type { Acknowledgements, FreshTokens } from "./acknowledgements.ts";
import type { DiscordApi } from "../transport/api.ts";
import {
  isAskModal,
  parseAskModal,
  toAskModal,
  createCallIntake,
  type ModalTargetCache,
} from "./call-intake.ts";
import { parsePress } from "../reply/content.ts";
import { readFormModal } from "./form-modal.ts";
import { readMessage, toAttachment, toAuthor, type Names } from "../intake/incoming.ts";
import type { Locales } from "../intake/locales.ts";
import type { Origins } from "../intake/origin.ts";
import { inLanguage, translate } from "../../../words/translate.ts";
import { unknownCommand } from "../../../support/text.ts";

/** An interaction's token is valid for 15 minutes. It is not used in the last half minute. */
const tokenUsableMs = 14.5 * 60 * 1000;
const maxChoices = 25;
const lookupMs = 1500;
const maxChoiceChars = 100;

/** The options of {@link createInteractionHandler}. */
interface InteractionOptions {
  readonly api: Pick<DiscordApi, "followUp" | "editFollowUp">;
  readonly acknowledgements: Acknowledgements;
  readonly receiver: Receiver;
  readonly commands: ReadonlyMap<string, Command>;
  readonly names: (guildId: string | undefined) => Names;
  readonly origins: Pick<Origins, "ofInteraction">;
  readonly modalTargets: ModalTargetCache;
  readonly freshTokens: FreshTokens;
  readonly locales: Pick<Locales, "note">;
  /** Returns the notes on fields of forms that do not work with this connection. */
  readonly notes: () => Readonly<Record<string, string>>;
  /** Discord's time, in Unix milliseconds. */
  readonly now: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

type Call = APIApplicationCommandInteraction | APIModalSubmitInteraction;

/**
 * Handles INTERACTION_CREATE: it calls the receiver and acknowledges within Discord's three seconds. Whoever
 * used something that cannot be handled is told so.
 */
export function createInteractionHandler(options: InteractionOptions) {
  const { acknowledgements, receiver, commands, log, modalTargets } = options;
  const click = createButtonHandler(options);
  const takeCall = createCallIntake(options);
  const act = createActionHandler({ ...options, toActor, takeCall: takeActionCall });
  const forms = createFormClicks(options);

  return function handle(interaction: APIInteraction): Promise<void> {
    if (!("locale" in interaction)) return handleInLanguage(interaction);
    const user = interaction.member?.user ?? interaction.user;
    if (user !== undefined) options.locales.note(user.id, interaction.locale, interaction.guild_locale);
    return inLanguage(toLanguage(interaction.locale), () => handleInLanguage(interaction));
  };

  async function handleInLanguage(interaction: APIInteraction): Promise<void> {
    try {
      await route(interaction);
    } catch (error) {
      log.error({ interaction: interaction.id, err: error }, "interaction handling failed");
      // Only choices can be answered to what somebody types.
      if (interaction.type !== InteractionType.ApplicationCommandAutocomplete)
        await acknowledgements.refuse(interaction, error, { isAtOnce: true });
    }
  }

  async function route(interaction: APIInteraction): Promise<void> {
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
        return pressed(interaction, parsePress(interaction.data.custom_id));
      }
      case InteractionType.ModalSubmit: {
        const press = parsePress(interaction.data.custom_id);
        if (press !== undefined)
          return pressed(interaction, { ...press, values: readFormModal(interaction) });
        return forms.isSubmission(interaction) ? forms.submit(interaction) : submit(interaction);
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
    const press = { ...pressedHere, isPrivate };
    // What changes nothing may be done by every instance, and is answered by the fastest.
    await (isForOneProcess(press) ? click : act)(interaction, press);
  }

  async function toActor(
    interaction: APIMessageComponentInteraction | APIModalSubmitInteraction,
  ): Promise<Actor | undefined> {
    const { member, user = member?.user } = interaction;
    if (user === undefined) return undefined;
    const origin = await options.origins.ofInteraction(interaction);
    return { platform: "discord", author: toAuthor(user, member, interaction.locale), origin };
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
      return acknowledgements.refuse(interaction, unknownCommand(interaction.data.name, commands.keys()));
    await run(interaction, command, { options: readOptions(interaction) });
  }

  async function messageCommand(interaction: APIMessageApplicationCommandInteraction): Promise<void> {
    const { name, target_id: targetId, resolved } = interaction.data;
    const command = [...commands.values()].find((one) => one.messageCommand?.label === name);
    const target = resolved.messages[targetId];
    if (command === undefined || target === undefined)
      return acknowledgements.refuse(interaction, unknownCommand(name, commands.keys()));
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
    if (command === undefined)
      return acknowledgements.refuse(interaction, unknownCommand(commandName, commands.keys()));
    let subject: CommandCall["subject"];
    try {
      subject = await soonEnough(
        modalTargets.find(target, options.names(interaction.guild_id)),
        options.clock,
      );
    } catch (error) {
      // The time for another instance's answer has passed.
      return acknowledgements.refuse(interaction, error, { isAtOnce: true });
    }
    if (subject === undefined)
      return acknowledgements.refuse(
        interaction,
        new ParleyError("attachment-gone", "the message was deleted", {
          detail: { name: translate("platform.the-message") },
        }),
      );
    await run(interaction, command, { options: given, subject });
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
    else await acknowledgements.refuse(interaction, origin.reason, { isAtOnce: true });
  }

  /** Runs what a button below an answer asks for. Its answer is the response to the click. */
  async function takeActionCall(
    interaction: APIMessageComponentInteraction | APIModalSubmitInteraction,
    { conversationId, name, options: given, pictures }: ActionCall,
    spentMs: number,
  ): Promise<void> {
    const isPrivate = ((interaction.message?.flags ?? 0) & MessageFlags.Ephemeral) !== 0;
    const call = {
      ...toBaseCall(interaction, isPrivate),
      ...(conversationId === undefined ? {} : { conversationId }),
      inConversation: conversationId !== undefined,
      name,
      options: given,
      ...(pictures === undefined ? {} : { pictures }),
      origin: await options.origins.ofInteraction(interaction),
    };
    await takeCall(interaction, call, spentMs);
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
    const inConversation = !isGuestIn(interaction) && (isDirectType(type) || isThreadType(type));
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

  /** Makes a call that belongs to no conversation. */
  function toBaseCall(
    interaction: Call | APIMessageComponentInteraction,
    isPrivate: boolean,
  ): Omit<CommandCall, "name" | "options" | "inConversation"> {
    const user = interaction.member?.user ?? interaction.user;
    const { channel } = interaction;
    if (user === undefined || channel === undefined)
      throw new ParleyError("internal", "an interaction without user or channel");
    const isGuest = isGuestIn(interaction);
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

/** Whether the bot is installed for the user only. It then answers nothing else, but its direct messages. */
function isGuestIn({
  authorizing_integration_owners: owners,
  context,
}: Pick<APIInteraction, "authorizing_integration_owners" | "context">): boolean {
  if (context === InteractionContextType.BotDM) return false;
  return owners[ApplicationIntegrationType.GuildInstall] === undefined;
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
