import { randomUUID } from "node:crypto";
import { messageEvents, type Installation } from "./installation.ts";
import { fillModal, type SeenModal, toSeenModal } from "./modal.ts";
import type { MethodContext } from "./methods.ts";
import type { ResponseUrl } from "./server.ts";
import type { SeenMessage } from "./transcript.ts";
import {
  toFileJson,
  type Fields,
  type SlackChannel,
  type SlackFile,
  type SlackMessage,
  type SlackUser,
  toText,
} from "./workspace.ts";

/** A file in a person's message. */
export interface SentFile {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  /** Fields that Slack adds: `subtype: "slack_audio"`, `duration_ms`, `file_access: "check_file_info"`. */
  readonly extra?: Fields;
}

/** A message that a person posts. */
export interface SentMessage {
  readonly channel: string;
  /** The thread's root `ts`. */
  readonly thread?: string;
  /** What the person types. */
  readonly text?: string;
  /** Slack's markup as sent on the wire, instead of `text`. */
  readonly markup?: string;
  readonly files?: readonly SentFile[];
  /** Puts a mention of the bot before the text. */
  readonly mentionBot?: boolean;
  readonly subtype?: string;
  /** Which event of a mention is delivered first. Default: `app_mention`. */
  readonly first?: "app_mention" | "message";
}

/** The result of an interaction. */
export type Interaction =
  | { readonly kind: "acknowledged"; readonly ack: Fields }
  | { readonly kind: "failed"; readonly reason: "timeout" | "disconnected" };

/** A member of the workspace, who acts as through Slack's client. */
export interface Person {
  readonly id: string;
  readonly name: string;
  /** The id of their direct messages with the bot. */
  readonly directMessages: string;
  /** Posts a message and returns its `ts`. */
  sends(message: SentMessage): string;
  /** @throws Error when the app has no such command */
  usesCommand(command: string, text: string, where: { readonly channel: string }): Promise<Interaction>;
  /** Presses the button with that label. @throws Error when the person does not see it */
  clicks(message: SeenMessage, label: string, where: { readonly channel: string }): Promise<Interaction>;
  /** Chooses in a message's select. @throws Error when the person does not see it */
  chooses(message: SeenMessage, label: string, where: { readonly channel: string }): Promise<Interaction>;
  /** Uses the message shortcut with that label. */
  usesShortcut(label: string, ts: string, where: { readonly channel: string }): Promise<Interaction>;
  /** The open modal. */
  modal(): SeenModal | undefined;
  /**
   * Fills in inputs by their label and submits. With errors from the app the modal stays open.
   * @throws Error where Slack's client would not submit: unknown label, empty required input, number out of range
   */
  submitsModal(
    values: Readonly<Record<string, string | number | boolean>>,
    files?: Readonly<Record<string, SentFile>>,
  ): Promise<{ readonly errors: Readonly<Record<string, string>> } | Interaction>;
  opensMessagesTab(): void;
  /** Presses Slack's own Stop button. */
  pressesStop(channel: string, thread: string): void;
}

/** What {@link createPerson} needs. */
export interface PersonOptions {
  readonly context: MethodContext;
  readonly installation: Installation;
  readonly responseUrls: Map<string, ResponseUrl>;
}

/** Typed text in Slack's markup. */
function toMarkup(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Adds a person to the workspace. */
export function createPerson(
  name: string,
  { context, installation, responseUrls }: PersonOptions,
  more: Partial<SlackUser> = {},
): Person {
  const { workspace, clock, hub, origin, modals, triggers } = context;
  const user = workspace.addUser(name, more);
  const isForeign = user.teamId !== workspace.teamId;
  const directMessages = workspace.directMessagesOf(user.id).id;

  function channelOf(id: string): SlackChannel {
    const channel = workspace.channels.get(id);
    if (channel === undefined) throw new Error(`no channel ${id}`);
    if (!channel.members.has(user.id)) throw new Error(`${name} is not in ${channel.name}`);
    return channel;
  }

  function makeTrigger(): string {
    const id = `${Date.now()}.${workspace.id("")}.${randomUUID()}`;
    triggers.set(id, { user: user.id, at: clock.now(), used: false });
    return id;
  }

  /** @param original `ts` of the message that has the button; it can be replaced */
  function makeResponseUrl(channel: string, original?: string): string {
    const id = randomUUID();
    responseUrls.set(id, { channel, user: user.id, at: clock.now(), posts: 0, original });
    return `${origin()}/commands/${id}`;
  }

  function upload(file: SentFile): SlackFile {
    return workspace.addFile({
      name: file.name,
      owner: user.id,
      bytes: file.bytes,
      mediaType: file.mediaType,
      isShared: true,
      extra: file.extra ?? {},
    });
  }

  /** A file as events carry it: a Slack Connect file has only an id and must be looked up. */
  function toEventFile(file: SlackFile): Fields {
    if (file.extra["file_access"] !== "check_file_info") return toFileJson(workspace, file, origin());
    return { id: file.id, mode: "file_access", file_access: "check_file_info" };
  }

  const common = () => ({
    token: "simulator",
    api_app_id: workspace.appId,
    team: { id: workspace.teamId, domain: "simulated" },
    user: { id: user.id, username: name.toLowerCase(), name: name.toLowerCase(), team_id: user.teamId },
    is_enterprise_install: false,
    enterprise: null,
  });

  async function interact(type: "slash_commands" | "interactive", payload: Fields): Promise<Interaction> {
    const result = await hub.sendInteraction(type, payload);
    return "ack" in result
      ? { kind: "acknowledged", ack: result.ack }
      : { kind: "failed", reason: result.failed };
  }

  /** Uses an element of a message that the person sees. */
  function act(
    message: SeenMessage,
    where: { readonly channel: string },
    action: Fields,
  ): Promise<Interaction> {
    const channel = channelOf(where.channel);
    if (message.onlyFor !== undefined && message.onlyFor !== name)
      throw new Error("only someone else sees this message");
    return interact("interactive", {
      ...common(),
      type: "block_actions",
      container: {
        type: "message",
        message_ts: message.ts,
        channel_id: channel.id,
        is_ephemeral: message.onlyFor !== undefined,
        ...(message.thread === undefined ? {} : { thread_ts: message.thread }),
      },
      channel: { id: channel.id, name: channel.name },
      // An ephemeral message is not in the payload.
      ...(message.onlyFor === undefined
        ? {
            message: {
              type: "message",
              ts: message.ts,
              text: message.text,
              user: workspace.botUserId,
              ...(message.thread === undefined ? {} : { thread_ts: message.thread }),
            },
          }
        : {}),
      trigger_id: makeTrigger(),
      response_url: makeResponseUrl(channel.id, message.ts),
      actions: [{ block_id: "actions", action_ts: workspace.nextTs(), ...action }],
    });
  }

  function toMessageFields(message: SlackMessage): Fields {
    return {
      type: "message",
      user: message.user,
      ts: message.ts,
      text: message.text,
      team: workspace.users.get(message.user)?.teamId ?? workspace.teamId,
      ...(message.user === workspace.botUserId ? { bot_id: workspace.botId } : {}),
      ...(message.threadTs === undefined ? {} : { thread_ts: message.threadTs }),
      ...(message.files.length === 0 ? {} : { files: message.files.map(toEventFile) }),
      ...(message.blocks.length === 0 ? {} : { blocks: message.blocks }),
    };
  }

  return {
    id: user.id,
    name,
    directMessages,
    sends(sent) {
      const channel = channelOf(sent.channel);
      const typed = toMarkup(sent.text ?? "");
      const mention = sent.mentionBot === true ? `<@${workspace.botUserId}> ` : "";
      const text = mention + (sent.markup ?? typed);
      const files = (sent.files ?? []).map(upload);
      const message = workspace.addMessage({
        channel: channel.id,
        user: user.id,
        threadTs: sent.thread,
        text,
        files,
      });
      if (!channel.members.has(workspace.botUserId)) return message.ts;
      const subtype = sent.subtype ?? (files.length > 0 ? "file_share" : undefined);
      const event: Fields = {
        ...toMessageFields(message),
        ...(subtype === undefined ? {} : { subtype }),
        client_msg_id: randomUUID(),
        ...(isForeign ? { user_team: user.teamId, source_team: user.teamId } : {}),
        channel: channel.id,
        channel_type: channel.kind,
        event_ts: message.ts,
      };
      const sendMessage = () => {
        if (installation.subscribesTo(messageEvents[channel.kind])) hub.sendEvent(event);
      };
      const sendMention = () => {
        if (channel.kind === "im" || !text.includes(`<@${workspace.botUserId}>`)) return;
        // `app_mention` comes without the files.
        const { files: _files, subtype: _subtype, channel_type: _type, ...rest } = event;
        if (installation.subscribesTo("app_mention")) hub.sendEvent({ ...rest, type: "app_mention" });
      };
      if (sent.first === "message") {
        sendMessage();
        sendMention();
      } else {
        sendMention();
        sendMessage();
      }
      return message.ts;
    },
    async usesCommand(command, text, where) {
      const channel = channelOf(where.channel);
      if (isForeign) throw new Error(`${command} is a command of another workspace's app`);
      if (!installation.hasCommand(command)) throw new Error(`${command} is not a valid command`);
      const result = await interact("slash_commands", {
        token: "simulator",
        team_id: workspace.teamId,
        team_domain: "simulated",
        channel_id: channel.id,
        channel_name: channel.kind === "im" ? "directmessage" : channel.name,
        user_id: user.id,
        user_name: name.toLowerCase(),
        command,
        text: toMarkup(text),
        api_app_id: workspace.appId,
        is_enterprise_install: "false",
        response_url: makeResponseUrl(channel.id),
        trigger_id: makeTrigger(),
      });
      if (result.kind === "acknowledged") {
        const { text: words, blocks, response_type } = result.ack;
        if (words !== undefined || blocks !== undefined) {
          workspace.addMessage({
            channel: channel.id,
            user: workspace.botUserId,
            text: toText(words),
            blocks: (blocks ?? []) as Fields[],
            ephemeralTo: response_type === "in_channel" ? undefined : user.id,
          });
        }
      }
      return result;
    },
    /** Presses the button with that label. @throws Error when the person does not see it */
    clicks(message, label, where) {
      const button = message.buttons.find((candidate) => candidate.label === label);
      if (button === undefined) throw new Error(`no button "${label}"`);
      return act(message, where, {
        type: "button",
        action_id: button.actionId,
        text: { type: "plain_text", text: label },
        value: button.value,
      });
    },
    chooses(message, label, where) {
      const choice = message.choices.find((candidate) => candidate.label === label);
      if (choice === undefined) throw new Error(`no choice "${label}"`);
      return act(message, where, {
        type: "static_select",
        action_id: choice.actionId,
        selected_option: { text: { type: "plain_text", text: label }, value: choice.value },
      });
    },
    usesShortcut(label, ts, where) {
      const channel = channelOf(where.channel);
      if (isForeign) throw new Error(`${label} is a shortcut of another workspace's app`);
      const message = workspace.findMessage(channel.id, ts);
      if (message === undefined) throw new Error(`no message ${ts}`);
      return interact("interactive", {
        ...common(),
        type: "message_action",
        callback_id: installation.shortcut(label),
        channel: { id: channel.id, name: channel.kind === "im" ? "directmessage" : channel.name },
        action_ts: workspace.nextTs(),
        message_ts: ts,
        message: toMessageFields(message),
        trigger_id: makeTrigger(),
        response_url: makeResponseUrl(channel.id),
      });
    },
    modal() {
      const open = modals.get(user.id);
      return open === undefined ? undefined : toSeenModal(open.view);
    },
    async submitsModal(values, files = {}) {
      const open = modals.get(user.id);
      if (open === undefined) throw new Error(`${name} has no modal open`);
      const uploaded = Object.fromEntries(
        Object.entries(files).map(([label, file]) => [label, toFileJson(workspace, upload(file), origin())]),
      );
      const state = fillModal(open.view, values, uploaded);
      const result = await interact("interactive", {
        ...common(),
        type: "view_submission",
        trigger_id: makeTrigger(),
        response_urls: [],
        view: { ...open.view, id: open.id, team_id: workspace.teamId, hash: "1.a", state: { values: state } },
      });
      if (result.kind === "failed") return result;
      if (result.ack["response_action"] === "errors") {
        return { errors: result.ack["errors"] as Record<string, string> };
      }
      modals.delete(user.id);
      return result;
    },
    opensMessagesTab() {
      if (!installation.subscribesTo("app_home_opened")) return;
      hub.sendEvent({
        type: "app_home_opened",
        user: user.id,
        channel: directMessages,
        tab: "messages",
        event_ts: workspace.nextTs(),
      });
    },
    pressesStop(channel, thread) {
      if (!installation.subscribesTo("agent_session_stopped")) return;
      hub.sendEvent({
        type: "agent_session_stopped",
        channel,
        thread_ts: thread,
        user: user.id,
        streaming_message_ts: [],
        event_ts: workspace.nextTs(),
      });
    },
  };
}
