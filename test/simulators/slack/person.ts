import { randomUUID } from "node:crypto";
import { createSearch } from "./external-selects.ts";
import { createHomeActs, type HomeActs } from "./home.ts";
import { announceJoin } from "./joins.ts";
import { messageEvents, type Installation } from "./installation.ts";
import { toThreadFields } from "./parent-user.ts";
import { fillModal, type SeenModal, toSeenModal } from "./modal.ts";
import type { MethodContext, OpenModal } from "./methods.ts";
import type { ResponseUrl } from "./server.ts";
import { pressStop } from "./sessions.ts";
import type { SentFile, SentMessage } from "./sent-message.ts";
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

/** The result of an interaction. */
export type Interaction =
  | { readonly kind: "acknowledged"; readonly ack: Fields }
  | { readonly kind: "failed"; readonly reason: "timeout" | "disconnected" | "refused" };

/** A member of the workspace who acts through Slack's client. */
export interface Person extends HomeActs {
  readonly id: string;
  readonly name: string;
  /** The id of their direct messages with the bot. */
  readonly directMessages: string;
  /** Posts a message and returns its `ts`. */
  sends(message: SentMessage): string;
  /** Changes one of the person's own messages. If it mentions the bot, Slack sends `app_mention` again. */
  edits(
    ts: string,
    text: string,
    where: { readonly channel: string; readonly mentionBot?: boolean; readonly isMarkup?: boolean },
  ): void;
  /** Adds the preview of a link to one of the person's messages, as Slack does. This change is no edit. */
  getsPreview(ts: string, where: { readonly channel: string }): void;
  /** Uses a slash command. @throws Error if the app has no such command */
  usesCommand(command: string, text: string, where: { readonly channel: string }): Promise<Interaction>;
  /** Presses the button with that label. @throws Error if the person does not see it */
  clicks(message: SeenMessage, label: string, where: { readonly channel: string }): Promise<Interaction>;
  /** Presses one of Slack's feedback buttons. @throws Error if the person does not see them */
  rates(
    message: SeenMessage,
    rating: "good" | "bad",
    where: { readonly channel: string },
  ): Promise<Interaction>;
  /** Chooses in a message's select. @throws Error if the person does not see it */
  chooses(message: SeenMessage, label: string, where: { readonly channel: string }): Promise<Interaction>;
  /** Uses the message shortcut with that label. */
  usesShortcut(label: string, ts: string, where: { readonly channel: string }): Promise<Interaction>;
  /** Invites the app's bot into a channel. */
  invitesBot(channel: string): void;
  /** Returns the open modal. */
  modal(): SeenModal | undefined;
  /** Types into a searched select of the open modal. Returns the labels that the app offers. */
  searches(label: string, typed: string): Promise<string[]>;
  /**
   * Fills in inputs by their label and submits. If the app answers with errors, the modal stays open.
   * @throws Error if Slack's client would not submit it, for example without a required input
   */
  submitsModal(
    values: Readonly<Record<string, string | number | boolean>>,
    files?: Readonly<Record<string, SentFile>>,
    /** Stands in place of what the app has put into the modal. */
    metadata?: string,
  ): Promise<{ readonly errors: Readonly<Record<string, string>> } | Interaction>;
  /** Presses Slack's own Stop button. @throws Error if none is shown */
  pressesStop(channel: string, thread: string): void;
}

/** The options of {@link createPerson}. */
export interface PersonOptions {
  readonly context: MethodContext;
  readonly installation: Installation;
  readonly responseUrls: Map<string, ResponseUrl>;
}

/** Converts typed text to Slack's markup. */
function toMarkup(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Converts what a person typed to a block, as Slack's clients do. */
function toTypedBlock({ text }: SlackMessage): Fields {
  const pieces = text.split(/(<@[UW][A-Z0-9]+>)/).filter((piece) => piece !== "");
  const elements = pieces.map((piece) => {
    const user = /^<@(\w+)>$/.exec(piece)?.[1];
    return user === undefined ? { type: "text", text: piece } : { type: "user", user_id: user };
  });
  return {
    type: "rich_text",
    block_id: "typed",
    elements: [{ type: "rich_text_section", elements }],
  };
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
    if (channel.isArchived) throw new Error(`${channel.name} is archived`);
    return channel;
  }

  function makeTrigger(): string {
    const id = `${Date.now()}.${workspace.id("")}.${randomUUID()}`;
    triggers.set(id, { user: user.id, at: clock.now(), used: false });
    return id;
  }

  /** Creates a `response_url`. @param original the `ts` of the message that has the button */
  function makeResponseUrl(channel: string, original?: string): string {
    const id = randomUUID();
    responseUrls.set(id, { channel, user: user.id, at: clock.now(), posts: 0, original });
    return `${origin()}/commands/${id}`;
  }

  function upload(file: SentFile, isForApp = false): SlackFile {
    return workspace.addFile({
      isForApp,
      name: file.name,
      owner: user.id,
      bytes: file.bytes,
      mediaType: file.mediaType,
      isShared: true,
      extra: file.extra ?? {},
    });
  }

  /** Converts a file to its form in events. A Slack Connect file has only an id and must be looked up. */
  function toEventFile(file: SlackFile): Fields {
    if (file.extra["file_access"] !== "check_file_info") return toFileJson(workspace, file, origin());
    return { id: file.id, mode: "file_access", file_access: "check_file_info" };
  }

  const common = () => ({
    token: "simulator",
    api_app_id: workspace.appId,
    team: { id: workspace.teamId, domain: "simulated" },
    user: { id: user.id, username: name.toLowerCase(), name: name.toLowerCase(), team_id: user.teamId },
    is_enterprise_install: workspace.enterpriseId !== undefined,
    enterprise:
      workspace.enterpriseId === undefined ? null : { id: workspace.enterpriseId, name: "Simulated" },
  });

  async function interact(type: "slash_commands" | "interactive", payload: Fields): Promise<Interaction> {
    const result = await hub.sendInteraction(type, payload);
    return "ack" in result
      ? { kind: "acknowledged", ack: result.ack }
      : { kind: "failed", reason: result.failed };
  }

  function openModal(): OpenModal {
    const open = modals.get(user.id);
    if (open === undefined) throw new Error(`${name} has no modal open`);
    return open;
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
      ...toThreadFields(workspace, message),
      ...(message.files.length === 0 ? {} : { files: message.files.map(toEventFile) }),
      ...(message.blocks.length === 0 ? {} : { blocks: message.blocks }),
      ...(message.edited === undefined ? {} : { edited: message.edited }),
      ...(message.attachments === undefined ? {} : { attachments: message.attachments }),
    };
  }

  function announceChange(
    channel: SlackChannel,
    message: Fields,
    previous: Fields,
    ts: string = workspace.nextTs(),
  ): void {
    if (!channel.members.has(workspace.botUserId)) return;
    if (!installation.subscribesTo(messageEvents[channel.kind])) return;
    hub.sendEvent({
      type: "message",
      subtype: "message_changed",
      hidden: true,
      message,
      previous_message: previous,
      channel: channel.id,
      channel_type: channel.kind,
      ts,
      event_ts: ts,
    });
  }

  return {
    ...createHomeActs({ context, user, directMessages, common, makeTrigger, interact }),
    id: user.id,
    name,
    directMessages,
    sends(sent) {
      const channel = channelOf(sent.channel);
      const typed = toMarkup(sent.text ?? "");
      const mention = sent.mentionBot === true ? `<@${workspace.botUserId}> ` : "";
      const text = mention + (sent.markup ?? typed);
      const files = (sent.files ?? []).map((file) => upload(file));
      const message = workspace.addMessage({
        channel: channel.id,
        user: user.id,
        threadTs: sent.thread,
        text,
        files,
        ...(sent.attachments === undefined ? {} : { attachments: sent.attachments }),
      });
      if (!channel.members.has(workspace.botUserId)) return message.ts;
      const subtype = sent.subtype ?? (files.length > 0 ? "file_share" : undefined);
      const event: Fields = {
        ...toMessageFields(message),
        // What people type in Slack's clients comes as a block too.
        blocks: [
          ...(message.blocks.length > 0 ? message.blocks : [toTypedBlock(message)]),
          ...(sent.blocks ?? []),
        ],
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
        if (!installation.subscribesTo("app_mention")) return;
        // The event has the files but not the subtype. @see https://github.com/slackapi/bolt-js/issues/2056
        const { files: shared, subtype: _subtype, channel_type: _type, blocks, ...rest } = event;
        const isWhole = sent.mentionLacksFiles !== true;
        const more = shared === undefined ? {} : { files: shared, upload: false, display_as_bot: false };
        hub.sendEvent({ ...rest, ...(isWhole ? { blocks, ...more } : {}), type: "app_mention" });
      };
      if (sent.first === "message") {
        sendMessage();
        sendMention();
      } else {
        sendMention();
        if (sent.messageAfterMs === undefined) sendMessage();
        else clock.after(sent.messageAfterMs, sendMessage);
      }
      return message.ts;
    },
    edits(ts, typed, { channel: channelId, mentionBot = false, isMarkup = false }) {
      const channel = channelOf(channelId);
      const message = workspace.findMessage(channel.id, ts);
      if (message?.user !== user.id) throw new Error(`${name} has not written ${ts}`);
      // Slack's client asks whether to delete the message instead.
      if (typed.trim() === "" && message.files.length === 0) throw new Error("an empty message is deleted");
      const previous = toMessageFields(message);
      const text = `${mentionBot ? `<@${workspace.botUserId}> ` : ""}${isMarkup ? typed : toMarkup(typed)}`;
      if (text === message.text) return;
      message.text = text;
      message.edits += 1;
      const editedTs = workspace.nextTs();
      message.edited = { user: user.id, ts: `${editedTs.split(".")[0]}.000000` };
      if (!channel.members.has(workspace.botUserId)) return;
      const edited = toMessageFields(message);
      announceChange(channel, edited, previous, editedTs);
      if (mentionBot && channel.kind !== "im" && installation.subscribesTo("app_mention"))
        hub.sendEvent({ ...edited, type: "app_mention", channel: channel.id, event_ts: editedTs });
    },
    getsPreview(ts, { channel: channelId }) {
      const channel = channelOf(channelId);
      const message = workspace.findMessage(channel.id, ts);
      if (message?.user !== user.id) throw new Error(`${name} has not written ${ts}`);
      const previous = toMessageFields(message);
      const attachments = [{ id: 1, from_url: "https://example.com", fallback: "Example", title: "Example" }];
      announceChange(channel, { ...previous, attachments }, previous);
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
        ...(workspace.enterpriseId === undefined ? {} : { enterprise_id: workspace.enterpriseId }),
        is_enterprise_install: String(workspace.enterpriseId !== undefined),
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
    rates({ feedback, ...message }, rating, where) {
      if (feedback === undefined) throw new Error("no feedback buttons");
      const { label, value } = feedback[rating];
      return act({ ...message, feedback }, where, {
        type: "feedback_buttons",
        action_id: feedback.actionId,
        text: { type: "plain_text", text: label },
        value,
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
    invitesBot(id) {
      const channel = channelOf(id);
      if (channel.members.has(workspace.botUserId)) throw new Error(`the bot is in ${channel.name} already`);
      channel.members.add(workspace.botUserId);
      announceJoin(context, channel, workspace.botUserId, user.id);
    },
    searches: createSearch({ context, open: openModal, common, interact }),
    modal() {
      const open = modals.get(user.id);
      return open === undefined ? undefined : toSeenModal(open.view);
    },
    async submitsModal(values, files = {}, metadata) {
      const open = openModal();
      const uploaded = Object.fromEntries(
        Object.entries(files).map(([label, file]) => [
          label,
          toFileJson(workspace, upload(file, true), origin()),
        ]),
      );
      const state = fillModal(open.view, values, uploaded, open.loaded);
      const result = await interact("interactive", {
        ...common(),
        type: "view_submission",
        trigger_id: makeTrigger(),
        response_urls: [],
        view: {
          ...open.view,
          ...(metadata === undefined ? {} : { private_metadata: metadata }),
          id: open.id,
          team_id: workspace.teamId,
          hash: "1.a",
          state: { values: state },
        },
      });
      if (result.kind === "failed") return result;
      if (result.ack["response_action"] === "errors") {
        return { errors: result.ack["errors"] as Record<string, string> };
      }
      modals.delete(user.id);
      return result;
    },
    pressesStop: (channel, thread) => pressStop(context, user.id, channelOf(channel).id, thread),
  };
}
