import type { AddressInfo } from "node:net";
import { createClock, type Clock } from "./clock.ts";
import { createInstallation } from "./installation.ts";
import type { MethodContext } from "./methods.ts";
import { createPerson, type Person } from "./person.ts";
import { createRateLimits } from "./rate-limits.ts";
import { deleteChannel, deleteMessage } from "./deletions.ts";
import { createSlackServer, type ApiCall, type Fault } from "./server.ts";
import { statusIn } from "./statuses.ts";
import { createSocketHub, type Delivery } from "./socket.ts";
import { toTranscript, type SeenMessage } from "./transcript.ts";
import { createWorkspace, type Fields, type SlackChannel, type SlackUser } from "./workspace.ts";

/** A channel or direct messages, for a test. */
export interface SimulatedChannel {
  readonly id: string;
  readonly name: string;
  /** All messages, oldest first. */
  transcript(): SeenMessage[];
  /** The bot's messages; with `thread`, those of one thread. */
  saidByBot(thread?: string): SeenMessage[];
  inviteBot(): void;
  /** Deletes a message, as its author or an admin does. */
  deleteMessage(ts: string): void;
  /** Deletes the channel, as an admin does. */
  delete(): void;
  removeBot(): void;
}

/** A running simulator: addresses and tokens for the bot, and what a test does and sees. */
export interface SlackSimulator {
  /** For `slackApiUrl`. */
  readonly apiUrl: string;
  readonly botToken: string;
  readonly appToken: string;
  readonly teamId: string;
  readonly botUserId: string;
  readonly clock: Clock;
  /** Every Web API call, in order. */
  readonly calls: readonly ApiCall[];
  readonly deliveries: readonly Delivery[];
  /** Acknowledgements that Slack would refuse; a correct bot leaves this empty. */
  readonly badAcks: readonly string[];
  /** Events dropped after their last redelivery. */
  readonly lost: readonly Fields[];
  /** Open sockets. */
  readonly connections: number;
  readonly suggestedPrompts: ReadonlyMap<string, readonly Fields[]>;
  readonly statuses: MethodContext["statuses"];
  /** The status line that people see below a thread now; empty where there is none. */
  statusIn(channelId: string, thread: string): string;
  readonly sessions: MethodContext["sessions"];
  /** A person, by default a full member of the workspace. */
  person(name: string, more?: Partial<SlackUser>): Person;
  /** Creates a channel with these members. `withBot` defaults to true, `isPrivate` to false. */
  channel(
    name: string,
    people: readonly Person[],
    options?: { readonly withBot?: boolean; readonly isPrivate?: boolean },
  ): SimulatedChannel;
  directMessages(person: Person): SimulatedChannel;
  /** All messages of a channel or direct messages, oldest first. */
  transcriptOf(channelId: string): SeenMessage[];
  /** All messages of all channels and direct messages, oldest first within each. */
  everything(): SeenMessage[];
  /** Posts a message of another app's bot. Returns its `ts`. */
  otherBotSends(channel: SimulatedChannel, text: string, thread?: string): string;
  /** Delivers any event, e.g. an edit. Returns its event id. */
  sendEvent(event: Fields): string;
  /** Delivers the last acknowledged event of this type again, with the same event id. */
  redeliver(what: string): void;
  revokeScope(scope: string): void;
  revokeToken(): void;
  /** From now on the bot token is that of another app than the app-level token. */
  mixApps(): void;
  deleteFile(name: string): void;
  /** From now on the method is unknown. */
  switchOff(method: string): void;
  /** Replaces the rate limit of a method. */
  limit(method: string, perMinute: number): void;
  /** From now on markdown blocks that contain these words are refused as `invalid_blocks`, as Slack refuses some tables. */
  refuseMarkdown(words: string): void;
  /** Makes the next call of `method` fail. `afterEffect`: the call takes effect, only its response is lost. */
  fail(method: string, fault: Fault): void;
  /** Asks the bot to reconnect, as Slack does every few hours. */
  recycleConnections(): void;
  /** Terminates all sockets. */
  cutConnections(): void;
  /**
   * Resolves to the first result of `look` that is neither `undefined` nor `false`.
   * @param what names the condition in the error
   * @throws Error after `timeoutMs` (default 10 s), with all messages and the last API calls
   */
  waitFor<T>(what: string, look: () => T | undefined | false, timeoutMs?: number): Promise<T>;
  close(): Promise<void>;
}

/**
 * Starts a Slack with one workspace on a loopback port. It refuses what Slack documents as refused.
 * With a `manifest` only its commands, shortcuts, events and scopes work, as after an installation.
 * @see https://docs.slack.dev/reference
 */
export async function createSlackSimulator(
  options: { readonly manifest?: Fields } = {},
): Promise<SlackSimulator> {
  const clock = createClock();
  const workspace = createWorkspace(clock);
  const installation = createInstallation(options.manifest);
  if (installation.scopes !== undefined) {
    workspace.scopes.clear();
    for (const scope of installation.scopes) workspace.scopes.add(scope);
  }
  const hub = createSocketHub(workspace, clock);
  const limits = createRateLimits(clock);
  const faults = new Map<string, Fault[]>();
  const switchedOff = new Set<string>();
  const calls: ApiCall[] = [];
  const responseUrls = new Map();
  let origin = "";
  const context: MethodContext = {
    workspace,
    clock,
    hub,
    installation,
    origin: () => origin,
    modals: new Map(),
    triggers: new Map(),
    suggestedPrompts: new Map(),
    statuses: [],
    sessions: [],
    refusedMarkdown: [],
  };
  const server = createSlackServer({ context, limits, faults, switchedOff, calls, responseUrls });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
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
      inviteBot: () => void channel.members.add(workspace.botUserId),
      removeBot: () => void channel.members.delete(workspace.botUserId),
    };
  }

  async function waitFor<T>(what: string, look: () => T | undefined | false, timeoutMs = 10_000): Promise<T> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const found = look();
      if (found !== undefined && found !== false) return found;
      if (Date.now() > deadline) {
        const seen = [...workspace.channels.values()]
          .flatMap((channel) =>
            toTranscript(context, channel).map(
              (m) => `#${channel.name} ${m.author}: ${m.text.slice(0, 300)}`,
            ),
          )
          .join("\n");
        const last = calls.slice(-8).map(({ method, outcome }) => `${method} → ${outcome}`);
        throw new Error(
          `timed out after ${timeoutMs} ms waiting for ${what}\n${seen}\nlast calls: ${last.join(", ")}`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  return {
    apiUrl: `${origin}/api/`,
    botToken: workspace.botToken,
    appToken: workspace.appToken,
    teamId: workspace.teamId,
    botUserId: workspace.botUserId,
    clock,
    calls,
    deliveries: hub.deliveries,
    badAcks: hub.badAcks,
    lost: hub.lost,
    get connections() {
      return hub.connections;
    },
    suggestedPrompts: context.suggestedPrompts,
    statuses: context.statuses,
    statusIn: (channelId, thread) => statusIn(context, channelId, thread),
    sessions: context.sessions,
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
    otherBotSends(channel, text, thread) {
      const message = workspace.addMessage({
        channel: channel.id,
        user: "UOTHERBOT",
        text,
        threadTs: thread,
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
      if (tokenIsGood) Object.assign(workspace, { botToken: "xoxb-revoked-and-replaced" });
      tokenIsGood = false;
    },
    mixApps() {
      workspace.botAppId = workspace.id("A");
    },
    deleteFile(name) {
      for (const file of workspace.files.values()) if (file.name === name) file.isDeleted = true;
    },
    switchOff: (method) => void switchedOff.add(method),
    refuseMarkdown: (words) => void context.refusedMarkdown.push(words),
    limit: (method, perMinute) => limits.set(method, perMinute),
    fail: (method, fault) => void faults.set(method, [...(faults.get(method) ?? []), fault]),
    recycleConnections: () => hub.recycle(),
    cutConnections: () => hub.cut(),
    waitFor,
    async close() {
      clock.close();
      hub.cut();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      clock.close();
    },
  };
}
