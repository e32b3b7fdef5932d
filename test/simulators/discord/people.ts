import { randomBytes } from "node:crypto";
import { intents, type Gateway } from "./gateway.ts";
import {
  botPermissions,
  findGuild,
  findMessage,
  holdsPosts,
  isElsewhere,
  memberPermissionsIn,
  messageFlags,
  addMessage,
  channelTypes,
  type MessageExtras,
  type SimAttachment,
  type SimChannel,
  type SimInteraction,
  type SimMessage,
  type SimUser,
  type World,
} from "./world.ts";
import { fillModal } from "./modals.ts";
import { limits } from "./message-form.ts";
import { owners, renderChannel, renderMember, renderMessage, renderUser } from "./render.ts";
import { contentTypeOf, renderAttachment } from "./render-attachment.ts";
import type { DeclaredOption } from "./routes-application.ts";
import { removeMessage } from "./deletions.ts";
import { createEdits, type Edits } from "./edits.ts";
import { dispatchMessage } from "./routes-channels.ts";
import { acknowledgeWithinMs } from "./routes-interactions.ts";

/** A file that a person uploads. A file with `voiceSecs` is a voice message. */
export interface UploadFile {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly voiceSecs?: number;
  readonly altText?: string;
}

/** One use of a command, button or modal. */
export interface Use {
  readonly id: string;
  /** It is `thinking` from the defer to the first edit. `failed` shows "The application did not respond". */
  state(): "waiting" | "thinking" | "answered" | "failed";
  /** The interaction. Its `modal` is the one that it opened, for `submitsModal`. */
  readonly interaction: SimInteraction;
}

/** The channel of an interaction. */
export interface Where {
  readonly channel: { readonly id: string };
}

/** A person at Discord's client. Each function throws where the client would not let the person do this. */
export interface Person extends Edits {
  readonly id: string;
  readonly name: string;
  sends(message: {
    readonly channel: { readonly id: string };
    readonly text?: string;
    readonly files?: readonly UploadFile[];
    readonly mentionBot?: boolean;
    readonly replyTo?: { readonly id: string };
    /** Whether the reply notifies the author of that message. The default is the client's. */
    readonly pingsReplied?: boolean;
    readonly extras?: MessageExtras;
  }): SimMessage;
  /** Deletes one of the person's own messages. */
  deletes(message: { readonly id: string; readonly channelId: string }): void;
  /** Adds a reaction to a message. */
  reacts(message: { readonly id: string }, emoji: string, where: Where): void;
  usesCommand(
    name: string,
    options: Readonly<Record<string, string | number | boolean>>,
    where: Where & {
      readonly attachments?: Readonly<Record<string, UploadFile>>;
    },
  ): Use;
  usesMessageCommand(label: string, message: { readonly id: string }, where: Where): Use;
  /** Clicks the button with that label on a message. */
  clicks(label: string, message: { readonly id: string }, where: Where): Use;
  /** Chooses the option with that label in a message's select. */
  selects(label: string, message: { readonly id: string }, where: Where): Use;
  /** Submits the modal that `use` opened, with values by label. A select's value is the label of a choice. */
  submitsModal(use: Use, values: Readonly<Record<string, string>>): Use;
  /** Types into an option with autocomplete. The choices are then in `use.interaction.choices`. */
  types(command: string, option: string, text: string, where: Where): Use;
}

/** Creates a {@link Person}. */
export function createPerson(world: World, gateway: () => Gateway, user: SimUser): Person {
  const channelOf = (id: string): SimChannel => {
    const channel = world.channels.get(id);
    if (channel === undefined) throw new Error(`no channel ${id}`);
    const guild = findGuild(world, channel.guildId);
    if (guild !== undefined && !guild.members.has(user.id)) throw new Error("not a member of the server");
    return channel;
  };

  const upload = (channel: SimChannel, file: UploadFile, isEphemeral: boolean): SimAttachment => {
    if (file.bytes.length > limits.fileBytes) throw new Error("your files are too powerful");
    const attachment: SimAttachment = {
      id: world.nextId(),
      filename: file.name.replaceAll(/[^\w.-]/g, "_"),
      contentType: contentTypeOf(file.name),
      bytes: file.bytes,
      description: file.altText,
      durationSecs: file.voiceSecs,
      waveform: file.voiceSecs === undefined ? undefined : "AAAA",
      isEphemeral,
      channelId: channel.id,
    };
    world.attachments.set(attachment.id, attachment);
    return attachment;
  };

  const interact = (
    type: number,
    channel: SimChannel,
    data: unknown,
    extra: Partial<SimInteraction> & { message?: SimMessage },
  ): Use => {
    const { message, ...rest } = extra;
    const interaction: SimInteraction = {
      id: world.nextId(),
      token: randomBytes(32).toString("base64url"),
      type,
      user,
      channelId: channel.id,
      createdAt: world.now(),
      sourceMessageId: message?.id,
      ackedAt: undefined,
      ackType: undefined,
      originalId: undefined,
      isPlaceholderOpen: false,
      followUps: 0,
      choices: undefined,
      modal: undefined,
      commandName: undefined,
      ...rest,
    };
    world.interactions.set(interaction.id, interaction);
    const isGuild = channel.guildId !== undefined;
    gateway().dispatch("INTERACTION_CREATE", {
      id: interaction.id,
      application_id: world.applicationId,
      type,
      data,
      token: interaction.token,
      version: 1,
      channel_id: channel.id,
      channel: renderChannel(world, channel),
      app_permissions: botPermissions(world, channel),
      locale: user.locale ?? "en-US",
      entitlements: [],
      entitlement_sku_ids: [],
      attachment_size_limit: limits.fileBytes,
      context: isGuild ? 0 : channel.type === channelTypes.group ? 2 : 1,
      authorizing_integration_owners: owners(world, interaction, channel),
      ...(isGuild
        ? {
            guild_id: channel.guildId,
            guild_locale: localeOf(channel),
            guild: { id: channel.guildId, locale: localeOf(channel), features: [] },
            // In another server, where the app is installed for the user, this member may do everything.
            member: isElsewhere(world, channel)
              ? {
                  ...renderMember(world, ""),
                  user: renderUser(user),
                  permissions: ((1n << 51n) - 1n).toString(),
                }
              : {
                  ...renderMember(world, user.id, findGuild(world, channel.guildId)),
                  user: renderUser(user),
                  permissions: memberPermissionsIn(
                    world,
                    user.id,
                    channel,
                    findGuild(world, channel.guildId),
                  ),
                },
          }
        : { user: renderUser(user) }),
      ...(message === undefined ? {} : { message: renderMessage(world, message, { hideContent: false }) }),
    });
    return {
      id: interaction.id,
      interaction,
      state() {
        if (interaction.ackedAt === undefined)
          return world.now() - interaction.createdAt > acknowledgeWithinMs ? "failed" : "waiting";
        return interaction.isPlaceholderOpen ? "thinking" : "answered";
      },
    };
  };

  const localeOf = ({ guildId }: SimChannel): string => findGuild(world, guildId)?.preferredLocale ?? "en-US";

  const command = (name: string, type: number) => {
    const found = world.commands.find((one) => one.name === name && one.type === type);
    if (found === undefined) throw new Error(`there is no command ${name}`);
    return found;
  };

  const messageIn = (channel: SimChannel, id: string): SimMessage => {
    const message = findMessage(world, channel.id, id);
    if (message === undefined) throw new Error(`no message ${id}`);
    if (message.ephemeralTo !== undefined && message.ephemeralTo !== user.id)
      throw new Error("only someone else sees this message");
    return message;
  };

  return {
    id: user.id,
    name: user.globalName ?? user.username,
    sends({
      channel: { id },
      text = "",
      files = [],
      mentionBot = false,
      replyTo,
      pingsReplied = true,
      extras = {},
    }) {
      const channel = channelOf(id);
      const content = `${mentionBot ? `<@${world.bot.id}> ` : ""}${text}`.trim();
      if (content.length > limits.contentChars) throw new Error("your message is too long");
      if (content === "" && files.length === 0 && Object.keys(extras).length === 0)
        throw new Error("nothing to send");
      if (holdsPosts(channel)) throw new Error("only posts, no messages");
      const parent = world.channels.get(channel.parentId ?? "");
      const isFirstOfPost = parent !== undefined && holdsPosts(parent) && channel.messages.length === 0;
      const isVoice = files.some((file) => file.voiceSecs !== undefined);
      const message = addMessage(world, {
        ...(isFirstOfPost ? { id: channel.id } : {}),
        channelId: channel.id,
        author: user,
        content,
        type: replyTo === undefined ? 0 : 19,
        flags: isVoice ? messageFlags.voice : 0,
        attachments: files.map((file) => upload(channel, file, false)),
        embeds: [...(extras.embeds ?? [])],
        components: [...(extras.components ?? [])],
        extras,
        referenceId: replyTo === undefined ? undefined : messageIn(channel, replyTo.id).id,
        nonce: world.nextId(),
      });
      if (replyTo !== undefined && pingsReplied) message.pings.push(messageIn(channel, replyTo.id).author.id);
      if (/@(everyone|here)\b/.test(content)) message.pings.push("everyone");
      dispatchMessage(world, gateway(), "MESSAGE_CREATE", message);
      return message;
    },
    deletes({ id, channelId }) {
      const message = messageIn(channelOf(channelId), id);
      if (message.author.id !== user.id) throw new Error("not your message");
      removeMessage(world, gateway(), message);
    },
    ...createEdits({ world, gateway, user, messageIn: (at, id) => messageIn(channelOf(at), id) }),
    reacts({ id: messageId }, emoji, { channel: { id } }) {
      const channel = channelOf(id);
      const message = messageIn(channel, messageId);
      const isGuild = channel.guildId !== undefined;
      gateway().dispatch(
        "MESSAGE_REACTION_ADD",
        {
          user_id: user.id,
          channel_id: channel.id,
          message_id: message.id,
          message_author_id: message.author.id,
          emoji: { id: null, name: emoji },
          burst: false,
          type: 0,
          ...(isGuild
            ? {
                guild_id: channel.guildId,
                member: { ...renderMember(world, user.id), user: renderUser(user) },
              }
            : {}),
        },
        isGuild ? intents.guildMessageReactions : intents.directMessageReactions,
      );
    },
    usesCommand(name, options, { channel: { id }, attachments = {} }) {
      const channel = channelOf(id);
      const registered = command(name, 1);
      const isForServersAlone = !(registered["integration_types"] as readonly number[]).includes(1);
      if (isForServersAlone && (isElsewhere(world, channel) || channel.type === channelTypes.group))
        throw new Error("this command is not offered here");
      const declared = (registered["options"] ?? []) as readonly DeclaredOption[];
      const resolved: Record<string, unknown> = {};
      const values: Record<string, string | number | boolean> = { ...options };
      for (const [option, file] of Object.entries(attachments)) {
        const types = declared.find((one) => one.name === option)?.file_types;
        if (types !== undefined && !isOfType(file.name, types))
          throw new Error("this file type is not allowed");
        const attachment = upload(channel, file, true);
        resolved[attachment.id] = renderAttachment(world, attachment);
        values[option] = attachment.id;
      }
      const data = checkValues(declared, values);
      return interact(
        2,
        channel,
        {
          id: registered.id,
          name,
          type: 1,
          ...(data.length === 0 ? {} : { options: data }),
          ...(Object.keys(resolved).length === 0 ? {} : { resolved: { attachments: resolved } }),
        },
        { commandName: name },
      );
    },
    usesMessageCommand(label, { id: messageId }, { channel: { id } }) {
      const channel = channelOf(id);
      const registered = command(label, 3);
      const target = messageIn(channel, messageId);
      return interact(
        2,
        channel,
        {
          id: registered.id,
          name: label,
          type: 3,
          target_id: target.id,
          resolved: { messages: { [target.id]: renderMessage(world, target, { hideContent: false }) } },
        },
        { commandName: label },
      );
    },
    clicks(label, { id: messageId }, { channel: { id } }) {
      const channel = channelOf(id);
      const message = messageIn(channel, messageId);
      const button = (message.components as { components?: { label?: string; custom_id?: string }[] }[])
        .flatMap((row) => row.components ?? [])
        .find((one) => one.label === label);
      if (button?.custom_id === undefined) throw new Error(`no button "${label}"`);
      return interact(3, channel, { custom_id: button.custom_id, component_type: 2, id: 2 }, { message });
    },
    selects(label, { id: messageId }, { channel: { id } }) {
      const channel = channelOf(id);
      const message = messageIn(channel, messageId);
      const rows = message.components as { components?: SimSelect[] }[];
      const select = rows.flatMap((row) => row.components ?? []).find((one) => one.type === 3);
      const option = select?.options?.find((one) => one.label === label);
      if (select === undefined || option === undefined) throw new Error(`no choice "${label}"`);
      const data = { custom_id: select.custom_id, component_type: 3, id: 2, values: [option.value] };
      return interact(3, channel, data, { message });
    },
    submitsModal(use, values) {
      const { modal, channelId, sourceMessageId } = use.interaction;
      if (modal === undefined) throw new Error("no modal was opened");
      // Discord sends the message whose component opened the modal along with it.
      const source =
        sourceMessageId === undefined
          ? undefined
          : { message: messageIn(channelOf(channelId), sourceMessageId) };
      return interact(5, channelOf(channelId), fillModal(modal, values), source ?? {});
    },
    types(name, option, text, { channel: { id } }) {
      const registered = command(name, 1);
      const declared = ((registered["options"] ?? []) as readonly DeclaredOption[]).find(
        (one) => one.name === option,
      );
      if (declared?.autocomplete !== true) throw new Error(`option ${option} does not complete`);
      const typed = { name: option, type: declared.type, value: text, focused: true };
      return interact(
        4,
        channelOf(id),
        { id: registered.id, name, type: 1, options: [typed] },
        { commandName: name },
      );
    },
  };
}

interface SimSelect {
  readonly type?: number;
  readonly custom_id?: string;
  readonly options?: readonly { readonly label: string; readonly value: string }[];
}

/** Does the checks of Discord's client before it sends a command. */
function checkValues(
  declared: readonly DeclaredOption[],
  values: Readonly<Record<string, string | number | boolean>>,
): { name: string; type: number; value: string | number | boolean }[] {
  for (const name of Object.keys(values))
    if (!declared.some((option) => option.name === name)) throw new Error(`no option ${name}`);
  return declared.flatMap((option) => {
    const value = values[option.name];
    if (value === undefined) {
      if (option.required === true) throw new Error(`option ${option.name} is required`);
      return [];
    }
    const expected = { 3: "string", 4: "number", 5: "boolean", 10: "number", 11: "string" }[option.type];
    if (typeof value !== expected) throw new Error(`option ${option.name} takes a ${expected}`);
    if (typeof value === "string" && option.type === 3) {
      if (value.length > (option.max_length ?? 6000) || value.length < (option.min_length ?? 0))
        throw new Error(`option ${option.name} has the wrong length`);
      if (option.choices !== undefined && !option.choices.some((choice) => choice.value === value))
        throw new Error(`option ${option.name} has no choice ${value}`);
    }
    if (
      typeof value === "number" &&
      (value < (option.min_value ?? -Infinity) || value > (option.max_value ?? Infinity))
    )
      throw new Error(`option ${option.name} is out of range`);
    return [{ name: option.name, type: option.type, value }];
  });
}

/** The extensions that Discord's client accepts for its sets of types, as far as they are known. */
const knownExtensions: Readonly<Record<string, readonly string[]>> = {
  image: [".png", ".jpg", ".jpeg", ".gif", ".webp"],
  audio: [".mp3", ".wav", ".ogg", ".flac", ".aac"],
  video: [".mp4", ".mov", ".webm"],
};

/** Whether a file is of one of the types. Discord's client looks only at the name. */
function isOfType(name: string, types: readonly string[]): boolean {
  const extension = /\.[^.]*$/.exec(name.toLowerCase())?.[0] ?? "";
  return types.some((type) => type === extension || knownExtensions[type]?.includes(extension) === true);
}
