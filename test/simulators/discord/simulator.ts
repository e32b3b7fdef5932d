import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import type { Clock } from "../../../src/core/clock.ts";
import { createGateway, intents, type Gateway } from "./gateway.ts";
import { createSessionStarts, platformSessionStarts, type SessionStartOptions } from "./session-starts.ts";
import { createApiServer, type Fault, type SeenRequest } from "./http.ts";
import { createPerson, type Person } from "./people.ts";
import { platformRateLimits, type RateLimitOptions } from "./rate-limits.ts";
import { purge, removeChannel, removeGuild } from "./deletions.ts";
import { renderChannel, renderRole } from "./render.ts";
import { sign } from "./render-attachment.ts";
import { applicationRoutes } from "./routes-application.ts";
import { channelRoutes, directChannel, dispatchMessage } from "./routes-channels.ts";
import { guildRoutes } from "./routes-guilds.ts";
import { threadRoutes } from "./routes-threads.ts";
import { interactionRoutes } from "./routes-interactions.ts";
import { transcriptOf, type SeenMessage } from "./transcript.ts";
import {
  addChannel,
  addGuild,
  addMessage,
  channelTypes,
  createWorld,
  type MessageExtras,
  type Permission,
  type SimMessage,
  type SimRole,
  type SimUser,
  type World,
} from "./world.ts";

/** A channel for tests. */
export interface ChannelHandle {
  readonly id: string;
  readonly name: string;
  transcript(): SeenMessage[];
  /** Returns only the bot's messages. */
  fromBot(): SeenMessage[];
  /** Returns the threads below it. */
  threads(): ChannelHandle[];
  /** Returns the name of each person who was added to the thread. */
  members(): string[];
  /** Sets after how many minutes new threads are hidden, as people do. */
  setArchiveMinutes(minutes: number): void;
  /** Denies the bot permissions in the channel. */
  deny(...permissions: Permission[]): void;
  /** Denies a member permissions in the channel and its threads. */
  denyTo(person: { readonly id: string }, ...permissions: Permission[]): void;
  /** Archives the thread, locks it, or both, as a moderator does. `archived` is true by default. */
  archive(options?: { readonly locked?: boolean; readonly archived?: boolean }): void;
  /** Deletes the channel with its threads, or the thread, as a moderator does. */
  remove(): void;
  /** Deletes messages as a moderator does. Several are one bulk deletion. */
  purge(...messageIds: string[]): void;
  /** Whether people see now that the bot is typing. */
  isTyping(): boolean;
  /** Returns the number of the bot's typing indicators. */
  typingCount(): number;
}

/** A further server of the bot for tests. */
export interface ServerHandle {
  readonly id: string;
  channel(name: string): ChannelHandle;
  join(person: { readonly id: string }): void;
  /** Returns which of `count` shards gets its events. */
  shardOf(count: number): number;
}

/** A running simulator. */
export interface DiscordSimulator {
  /** The address for `rest.api`. */
  readonly apiUrl: string;
  /** `127.0.0.1:<port>`, which is also the host of the CDN. */
  readonly host: string;
  readonly token: string;
  readonly botId: string;
  readonly world: World;
  readonly gateway: Gateway;
  readonly requests: readonly SeenRequest[];
  channel(name: string): ChannelHandle;
  /** Creates a channel of another type than text. */
  channelOfType(type: "voice" | "stage" | "announcement" | "forum" | "media", name: string): ChannelHandle;
  /** Creates a group chat without the bot. Only apps that people installed for themselves work there. */
  groupChat(name: string): ChannelHandle;
  /** Creates a further server of the bot. Servers are spread over the shards in turn. */
  server(
    name: string,
    options?: { readonly emptyChannels?: number; readonly preferredLocale?: string },
  ): ServerHandle;
  directMessages(person: { readonly id: string }): ChannelHandle;
  /**
   * Opens a thread as a person does, maybe from a message. In a forum or media channel it is a post, whose
   * first message has its id. With `isOld` it was archived before the bot connected, so the bot has not heard
   * of it.
   */
  thread(
    channel: { readonly id: string },
    person: { readonly id: string },
    options?: {
      readonly isPrivate?: boolean;
      readonly from?: SimMessage;
      readonly title?: string;
      readonly isOld?: boolean;
    },
  ): ChannelHandle;
  handle(channelId: string): ChannelHandle;
  /** Creates a person, by default a member of the server. */
  person(name: string, options?: { readonly isMember?: boolean; readonly locale?: string }): Person;
  /** Adds a role to the server. Returns its id. */
  role(name: string, permissions?: bigint): string;
  /** Adds the role that Discord makes for a bot that is invited with permissions. Returns its id. */
  botRole(): string;
  give(person: { readonly id: string }, roleId: string): void;
  /** Makes the person leave the server. */
  leave(person: { readonly id: string }): void;
  /** Creates a channel of a server without the bot. */
  channelElsewhere(name: string): ChannelHandle;
  /** Makes the person take no more direct messages from the bot. */
  closeDirectMessages(person: { readonly id: string }): void;
  /** Posts a message as another bot or a webhook. */
  otherBotSends(message: {
    channel: { id: string };
    text: string;
    name?: string;
    isWebhook?: boolean;
    extras?: MessageExtras;
  }): SimMessage;
  /** Changes the message of another bot. */
  otherBotEdits(
    message: SimMessage,
    changed: { readonly text?: string; readonly embeds?: MessageExtras["embeds"] },
  ): void;
  /** Dispatches MESSAGE_CREATE for a message again, as a resumed session can. */
  redeliver(message: { readonly id: string; readonly channelId: string }): void;
  /** Removes the bot from the server, or simulates an outage of the server. */
  removeGuild(options?: { readonly isOutage?: boolean }): void;
  /** Advances Discord's clock. */
  advance(ms: number): void;
  fail(fault: Fault): void;
  /** Returns the number of 401, 403 and 429 in the last ten minutes. 10,000 lead to a ban. */
  invalidRequests(): number;
  /** Ends the simulator. @throws Error if one of its responses did not match Discord's schema */
  close(): Promise<void>;
}

/**
 * Starts Discord on a loopback port with REST, gateway and CDN, as strict as the platform. The real client
 * connects to it with `rest: { api: simulator.apiUrl, offset: 0 }`.
 */
export async function createDiscordSimulator(
  options: {
    readonly messageContentAllowed?: boolean;
    readonly rateLimits?: Partial<RateLimitOptions>;
    readonly token?: string;
    /** The limit of the server. The default is 1,000. */
    readonly maxActiveThreads?: number;
    readonly sessionStarts?: Partial<SessionStartOptions>;
    /** The clock that requests and session starts are counted with. The default is real time. */
    readonly clock?: Pick<Clock, "monotonic">;
    /** The default is 41,250. */
    readonly heartbeatMs?: number;
    /** How long a lost session can be resumed, in milliseconds of its clock. The default is three minutes. */
    readonly resumeForMs?: number;
  } = {},
): Promise<DiscordSimulator> {
  let offsetMs = 0;
  const token = options.token ?? `sim.${randomBytes(12).toString("hex")}.${randomBytes(8).toString("hex")}`;
  const world = createWorld({
    now: () => Date.now() + offsetMs,
    messageContentAllowed: options.messageContentAllowed ?? true,
  });
  // The gateway needs the HTTP server, whose routes need the gateway.
  const gatewayOf = (): Gateway => gateway;
  const startLimits = { ...platformSessionStarts, ...options.sessionStarts };
  const starts = createSessionStarts(startLimits, options.clock?.monotonic);
  const credentials = { token };
  const api = createApiServer({
    get token() {
      return credentials.token;
    },
    now: () => world.now(),
    rateLimits: { ...platformRateLimits, ...options.rateLimits },
    ...(options.clock === undefined ? {} : { monotonic: options.clock.monotonic }),
    routes: [
      ...applicationRoutes(world, { ...starts, recommendedShards: startLimits.recommendedShards }),
      ...channelRoutes(world, gatewayOf),
      ...threadRoutes(world, gatewayOf, options.maxActiveThreads ?? 1000),
      ...guildRoutes(world),
      ...interactionRoutes(world, gatewayOf),
    ],
    serveFile(url, response) {
      const path = /^\/(?:ephemeral-)?attachments\/(\d+)\/(\d+)\//.exec(url.pathname);
      if (path === null) return false;
      const attachment = world.attachments.get(path[2] ?? "");
      const expires = url.searchParams.get("ex") ?? "";
      const isSigned = url.searchParams.get("hm") === sign(world, url.pathname, expires);
      if (attachment === undefined || !isSigned || Number.parseInt(expires, 16) * 1000 < world.now()) {
        response.writeHead(404, { "content-type": "text/plain" }).end("This content is no longer available.");
      } else {
        response
          .writeHead(200, {
            "content-type": attachment.contentType ?? "application/octet-stream",
            "content-length": attachment.bytes.length,
          })
          .end(attachment.bytes);
      }
      return true;
    },
  });
  const gateway: Gateway = createGateway(api.server, world, {
    get token() {
      return credentials.token;
    },
    starts,
    limits: startLimits,
    resetToken() {
      credentials.token = "reset";
    },
    heartbeatMs: options.heartbeatMs ?? 41_250,
    resumeForMs: options.resumeForMs ?? 180_000,
  });
  await new Promise<void>((resolve) => {
    api.server.listen(0, "127.0.0.1", resolve);
  });
  const host = `127.0.0.1:${(api.server.address() as AddressInfo).port}`;
  world.origin = `http://${host}`;

  const handle = (id: string): ChannelHandle => {
    const channel = world.channels.get(id);
    if (channel === undefined) throw new Error(`no channel ${id}`);
    return {
      id,
      name: channel.name,
      transcript: () => transcriptOf(world, id),
      fromBot: () => transcriptOf(world, id).filter((message) => message.author === world.bot.username),
      threads: () =>
        [...world.channels.values()].filter((one) => one.parentId === id).map((one) => handle(one.id)),
      members: () => [...channel.threadMembers].map((one) => world.users.get(one)?.globalName ?? ""),
      setArchiveMinutes(minutes) {
        channel.archiveMinutes = minutes;
        gateway.dispatch("CHANNEL_UPDATE", renderChannel(world, channel), intents.guilds);
      },
      deny: (...permissions) => {
        for (const permission of permissions) channel.denied.add(permission);
      },
      denyTo(person, ...permissions) {
        channel.deniedTo.set(person.id, new Set(permissions));
        gateway.dispatch("CHANNEL_UPDATE", renderChannel(world, channel), intents.guilds);
      },
      archive({ locked = false, archived = true } = {}) {
        channel.archived = archived;
        channel.locked = locked;
        gateway.dispatch("THREAD_UPDATE", renderChannel(world, channel), intents.guilds);
      },
      remove: () => removeChannel(world, gateway, channel),
      purge: (...ids) => purge(world, gateway, channel, ids),
      isTyping: () => world.now() < channel.typingUntil,
      typingCount: () => channel.typing.length,
    };
  };

  /** Makes a channel or thread as people do. The bot learns of it if it is a member there. */
  const makeChannel = (given: Parameters<typeof addChannel>[1]): ChannelHandle => {
    const made = addChannel(world, given);
    const event = given.parentId === undefined ? "CHANNEL_CREATE" : "THREAD_CREATE";
    gateway.dispatch(event, renderChannel(world, made), intents.guilds);
    return handle(made.id);
  };

  const addRole = (role: SimRole): string => {
    world.guild.roles.set(role.id, role);
    const data = { guild_id: world.guild.id, role: renderRole(role) };
    gateway.dispatch("GUILD_ROLE_CREATE", data, intents.guilds);
    return role.id;
  };

  return {
    apiUrl: `${world.origin}/api`,
    host,
    token,
    botId: world.bot.id,
    world,
    gateway,
    requests: api.requests,
    channel: (name) => makeChannel({ type: channelTypes.text, name, guildId: world.guild.id }),
    channelOfType: (type, name) => makeChannel({ type: channelTypes[type], name, guildId: world.guild.id }),
    groupChat: (name) => handle(addChannel(world, { type: channelTypes.group, name }).id),
    server(name, { emptyChannels = 0, preferredLocale } = {}) {
      const guild = addGuild(world, name, emptyChannels);
      if (preferredLocale !== undefined) guild.preferredLocale = preferredLocale;
      const { id } = guild;
      return {
        id,
        channel: (of) => makeChannel({ type: channelTypes.text, name: of, guildId: id }),
        join: (person) => void guild.members.set(person.id, new Set()),
        shardOf: (count) => Number((BigInt(id) >> 22n) % BigInt(count)),
      };
    },
    thread({ id }, person, { isPrivate = false, from, title = "thread", isOld = false } = {}) {
      const given = {
        ...(from === undefined ? {} : { id: from.id }),
        type: isPrivate ? channelTypes.privateThread : channelTypes.publicThread,
        name: title,
        guildId: world.channels.get(id)?.guildId ?? world.guild.id,
        parentId: id,
        ownerId: person.id,
      };
      const made = isOld ? handle(addChannel(world, given).id) : makeChannel(given);
      if (from !== undefined)
        addMessage(world, {
          channelId: made.id,
          author: from.author,
          content: "",
          type: 21,
          referenceId: from.id,
        });
      return made;
    },
    directMessages: (person) => handle(directChannel(world, person.id).id),
    handle,
    person(name, { isMember = true, locale } = {}) {
      const user: SimUser = {
        id: world.nextId(),
        username: name.toLowerCase().replaceAll(/\W/g, ""),
        globalName: name,
        isBot: false,
        ...(locale === undefined ? {} : { locale }),
      };
      world.users.set(user.id, user);
      if (isMember) world.guild.members.set(user.id, new Set());
      return createPerson(world, gatewayOf, user);
    },
    role: (name, permissions = 0n) => addRole({ id: world.nextId(), name, permissions }),
    botRole: () => addRole({ id: world.nextId(), name: "Parley", permissions: 0n, botId: world.bot.id }),
    // GUILD_MEMBER_UPDATE and GUILD_MEMBER_REMOVE need a privileged intent, so they are not sent.
    give({ id }, roleId) {
      const roles = world.guild.members.get(id);
      if (roles === undefined || !world.guild.roles.has(roleId)) throw new Error("no such member or role");
      roles.add(roleId);
    },
    leave: ({ id }) => void world.guild.members.delete(id),
    channelElsewhere(name) {
      const { id } = addChannel(world, { type: channelTypes.text, name, guildId: world.nextId() });
      return handle(id);
    },
    closeDirectMessages: ({ id }) => void world.closedDirectMessages.add(id),
    otherBotSends({ channel, text, name = "other", isWebhook = false, extras = {} }) {
      const user: SimUser = { id: world.nextId(), username: name, globalName: null, isBot: true };
      world.users.set(user.id, user);
      const message = addMessage(world, {
        channelId: channel.id,
        author: user,
        content: text,
        webhookId: isWebhook ? user.id : undefined,
        embeds: [...(extras.embeds ?? [])],
        components: [...(extras.components ?? [])],
        extras,
      });
      dispatchMessage(world, gateway, "MESSAGE_CREATE", message);
      return message;
    },
    otherBotEdits(message, { text, embeds }) {
      if (text !== undefined) message.content = text;
      if (embeds !== undefined) message.embeds.splice(0, message.embeds.length, ...embeds);
      message.editedAt = Math.max(world.now(), (message.editedAt ?? 0) + 1);
      dispatchMessage(world, gateway, "MESSAGE_UPDATE", message);
    },
    redeliver({ id, channelId }) {
      const message = world.channels.get(channelId)?.messages.find((one) => one.id === id);
      if (message === undefined) throw new Error(`no message ${id}`);
      dispatchMessage(world, gateway, "MESSAGE_CREATE", message);
    },
    removeGuild: (how) => removeGuild(world, gateway, how),
    advance(ms) {
      offsetMs += ms;
    },
    fail: (fault) => api.fail(fault),
    invalidRequests: () => api.invalidRequests(),
    async close() {
      await gateway.close();
      api.server.closeAllConnections();
      await new Promise<void>((resolve) => {
        api.server.close(() => resolve());
      });
      if (api.defects.length > 0)
        throw new Error(`the simulator's responses do not match Discord's schema: ${api.defects.join("\n")}`);
    },
  };
}
