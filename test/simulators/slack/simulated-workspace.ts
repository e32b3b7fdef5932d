import { toThreadFields } from "./parent-user.ts";
import { deleteChannel, deleteMessage } from "./deletions.ts";
import { announceJoin } from "./joins.ts";
import type { MethodContext } from "./methods.ts";
import { createPerson, type Person } from "./person.ts";
import type { ResponseUrl } from "./server.ts";
import { sessionIn, type SeenSession } from "./sessions.ts";
import type { Delivery } from "./socket.ts";
import { toTranscript, type SeenMessage } from "./transcript.ts";
import type { Fields, SlackChannel, SlackUser } from "./workspace.ts";

/** A channel or direct messages for a test. */
export interface SimulatedChannel {
  readonly id: string;
  readonly name: string;
  /** Returns all messages, oldest first. */
  transcript(): SeenMessage[];
  /** Returns the bot's messages. With `thread` they are those of one thread. */
  saidByBot(thread?: string): SeenMessage[];
  inviteBot(): void;
  /** Makes a person join. */
  add(person: Person): void;
  /** Deletes a message, as its author or an admin does. */
  deleteMessage(ts: string): void;
  /** Deletes the channel, as an admin does. */
  delete(): void;
  /** Archives it, so that it can only be read. */
  archive(): void;
  removeBot(): void;
}

/** One workspace with its people and channels, and with what is delivered about it. */
export interface SimulatedWorkspace {
  /** The current token of the app. */
  readonly botToken: string;
  readonly teamId: string;
  readonly botUserId: string;
  readonly deliveries: readonly Delivery[];
  /** Acknowledgements that Slack would refuse. A correct bot leaves this empty. */
  readonly badAcks: readonly string[];
  /** Events that were dropped after their last redelivery. */
  readonly lost: readonly Fields[];
  readonly suggestedPrompts: ReadonlyMap<string, readonly Fields[]>;
  readonly sessions: MethodContext["sessions"];
  /** Returns the app's session in a thread, or `undefined` if it has none. */
  sessionIn(channelId: string, thread: string): SeenSession | undefined;
  /** Adds a person, by default a full member of the workspace. */
  person(name: string, more?: Partial<SlackUser>): Person;
  /** Creates a channel with these members. `withBot` defaults to true, `isPrivate` to false. */
  channel(
    name: string,
    people: readonly Person[],
    options?: { readonly withBot?: boolean; readonly isPrivate?: boolean },
  ): SimulatedChannel;
  directMessages(person: Person): SimulatedChannel;
  /** Returns all messages of a channel or direct messages, oldest first. */
  transcriptOf(channelId: string): SeenMessage[];
  /** Returns all messages of all channels and direct messages, oldest first within each. */
  everything(): SeenMessage[];
  /** Posts a message of another app's bot. Returns its `ts`. */
  otherBotSends(
    channel: SimulatedChannel,
    text: string,
    thread?: string,
    more?: { readonly name?: string; readonly blocks?: Fields[]; readonly attachments?: readonly Fields[] },
  ): string;
  /** Changes the message of another app, as `chat.update` does. The message is not marked as edited. */
  otherBotEdits(
    channel: SimulatedChannel,
    ts: string,
    text: string,
    more?: { readonly blocks?: Fields[]; readonly attachments?: readonly Fields[] },
  ): void;
  /** Sets how many messages a page of a history holds at most from now on. */
  capHistories(messages: number): void;
  /** Sets how many milliseconds after the upload files appear in their channel from now on. */
  shareFilesAfter(ms: number): void;
  /** Accepts that many of the next uploads with `ok` and shows them nowhere. */
  loseShares(count: number): void;
  /** Delivers any event, for example an edit. Returns its event id. */
  sendEvent(event: Fields): string;
  /** Delivers the last acknowledged event of this type again, with the same event id. */
  redeliver(what: string): void;
  revokeScope(scope: string): void;
  revokeToken(): void;
  /** Removes the app as an admin does. Slack sends `tokens_revoked` and `app_uninstalled`. */
  uninstall(): void;
}

/** Creates what a test does and sees in a workspace. */
export function createSimulatedWorkspace(
  context: MethodContext,
  responseUrls: Map<string, ResponseUrl>,
): SimulatedWorkspace {
  const { workspace, hub, installation } = context;
  let tokenIsGood = true;

  function toHandle(channel: SlackChannel): SimulatedChannel {
    return {
      id: channel.id,
      name: channel.name,
      transcript: () => toTranscript(context, channel),
      saidByBot: (thread) =>
        toTranscript(context, channel).filter(
          (message) => message.author === "Parley" && (thread === undefined || message.thread === thread),
        ),
      deleteMessage: (ts) => deleteMessage(context, installation, channel, ts),
      delete: () => deleteChannel(context, installation, channel),
      archive() {
        channel.isArchived = true;
      },
      add(person) {
        channel.members.add(person.id);
        announceJoin(context, channel, person.id);
      },
      inviteBot: () => void channel.members.add(workspace.botUserId),
      removeBot: () => void channel.members.delete(workspace.botUserId),
    };
  }

  return {
    get botToken() {
      return workspace.botToken;
    },
    teamId: workspace.teamId,
    botUserId: workspace.botUserId,
    deliveries: hub.deliveries,
    badAcks: hub.badAcks,
    lost: hub.lost,
    suggestedPrompts: context.suggestedPrompts,
    sessions: context.sessions,
    sessionIn: (channelId, thread) => sessionIn(context, channelId, thread),
    person: (name, more) => createPerson(name, { context, installation, responseUrls }, more),
    channel(name, people, { withBot = true, isPrivate = false } = {}) {
      const members = people.map(({ id }) => id);
      if (withBot) members.push(workspace.botUserId);
      return toHandle(workspace.addChannel(name, isPrivate ? "group" : "channel", members));
    },
    directMessages: (person) => toHandle(workspace.directMessagesOf(person.id)),
    transcriptOf(channelId) {
      const channel = workspace.channels.get(channelId);
      return channel === undefined ? [] : toTranscript(context, channel);
    },
    everything: () => [...workspace.channels.values()].flatMap((channel) => toTranscript(context, channel)),
    capHistories(messages) {
      context.historyCap.messages = messages;
    },
    loseShares(count) {
      context.lostShares.count = count;
    },
    shareFilesAfter(ms) {
      context.shareDelay.ms = ms;
    },
    otherBotSends(channel, text, thread, { name, blocks = [], attachments } = {}) {
      const message = workspace.addMessage({
        channel: channel.id,
        user: "UOTHERBOT",
        text,
        threadTs: thread,
        blocks,
        ...(name === undefined ? {} : { appName: name }),
        ...(attachments === undefined ? {} : { attachments }),
      });
      const fields: Fields = {
        user: "UOTHERBOT",
        bot_id: "BOTHER",
        text,
        ts: message.ts,
        channel: channel.id,
        event_ts: message.ts,
        ...(thread === undefined ? {} : { thread_ts: thread }),
      };
      hub.sendEvent({ ...fields, type: "message", channel_type: "channel", subtype: "bot_message" });
      if (text.includes(`<@${workspace.botUserId}>`)) hub.sendEvent({ ...fields, type: "app_mention" });
      return message.ts;
    },
    otherBotEdits(channel, ts, text, { blocks = [], attachments } = {}) {
      const message = workspace.findMessage(channel.id, ts);
      if (message?.user !== "UOTHERBOT") throw new Error(`no message ${ts} of another app`);
      const fields = () => ({
        type: "message",
        subtype: "bot_message",
        user: message.user,
        bot_id: "BOTHER",
        text: message.text,
        ts,
        ...toThreadFields(workspace, message),
        ...(message.blocks.length === 0 ? {} : { blocks: message.blocks }),
        ...(message.attachments === undefined ? {} : { attachments: message.attachments }),
      });
      const previous = fields();
      Object.assign(message, { text, blocks, ...(attachments === undefined ? {} : { attachments }) });
      const at = workspace.nextTs();
      hub.sendEvent({
        type: "message",
        subtype: "message_changed",
        hidden: true,
        message: fields(),
        previous_message: previous,
        channel: channel.id,
        channel_type: "channel",
        ts: at,
        event_ts: at,
      });
    },
    sendEvent: (event) => hub.sendEvent(event),
    redeliver(what) {
      const delivery = hub.deliveries.findLast(
        (made) => made.what === what && made.outcome === "acknowledged",
      );
      if (delivery?.eventId === undefined) throw new Error(`no acknowledged ${what}`);
      hub.sendEvent(delivery.payload["event"] as Fields, { eventId: delivery.eventId });
    },
    revokeScope: (scope) => void workspace.scopes.delete(scope),
    revokeToken() {
      if (tokenIsGood) workspace.botToken = "xoxb-revoked-and-replaced";
      tokenIsGood = false;
    },
    uninstall() {
      workspace.botToken = "xoxb-revoked-and-replaced";
      workspace.olderTokens.clear();
      workspace.refreshToken = undefined;
      const tokens = { oauth: [], bot: [workspace.botUserId] };
      if (installation.subscribesTo("tokens_revoked")) hub.sendEvent({ type: "tokens_revoked", tokens });
      if (installation.subscribesTo("app_uninstalled")) hub.sendEvent({ type: "app_uninstalled" });
    },
  };
}
