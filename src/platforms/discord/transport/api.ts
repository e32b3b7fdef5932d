import {
  Routes,
  makeURLSearchParams,
  type APIChannel,
  type APIGatewayBotInfo,
  type APIGuildMember,
  type APIMessage,
  type APIThreadChannel,
  type APIUser,
  type RawFile,
  type REST,
  type RESTPatchAPIChannelMessageJSONBody,
  type RESTPostAPIChannelMessageJSONBody,
  type RESTPostAPIWebhookWithTokenJSONBody,
  type RESTPutAPIApplicationCommandsJSONBody,
} from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import { ParleyError, isParleyError } from "../../../core/errors.ts";
import type { Log, Meter } from "../../../core/telemetry.ts";
import { createSlidingWindowLimiter } from "../../../support/rate-limiter.ts";
import { backoffMs, retry } from "../../../support/retry.ts";
import type { Limits } from "../../delivery/limits.ts";
import { discordCode, errorCodes } from "../errors.ts";
import {
  createDiscordLimits,
  createSending,
  isLost,
  isOldMessage,
  lanes,
  repeatBackoff,
  type SendOptions,
  translated,
} from "./delivery.ts";
import { createRest } from "./request.ts";

const notAMember: ReadonlySet<number> = new Set([
  errorCodes.unknownGuild,
  errorCodes.unknownMember,
  errorCodes.unknownUser,
  errorCodes.missingAccess,
]);

/** Used where a channel has no default for its threads, in minutes. */
const usualArchiveMinutes = 1440;

/** How long the response of an interaction is tried. Discord's deadline is three seconds. */
const respondForMs = 2600;

/** Discord suspects bots that open many direct messages. */
const directLimit = { max: 20, windowMs: 10 * 60_000, reserved: 0 };
/** After Discord has refused to open more, it is not asked for so long. It does not say how long. */
const directPauseMs = 30_000;

/** Authorizes requests about one interaction's messages. */
export interface InteractionToken {
  readonly applicationId: string;
  readonly token: string;
}

/** How a message is posted. */
export interface PostOptions extends SendOptions {
  readonly files?: readonly RawFile[];
}

/** A thread that is to be opened. */
interface NewThread {
  readonly name: string;
  /** After how many idle minutes the thread is hidden: 60, 1440, 4320 or 10080. Default 1440. */
  readonly archiveMinutes?: number | undefined;
  /** Discord's channel type, for a thread without a message. */
  readonly type?: number;
}

/** Which messages are read: 1 to 100, after or before an id, or the last of all. */
interface MessageQuery {
  readonly after?: string;
  readonly before?: string | undefined;
  readonly limit: number;
}

/** The options of {@link createDiscordApi}. */
interface ApiOptions {
  readonly token: string;
  readonly apiUrl: string;
  /** By default one is made from the next three. */
  readonly limits?: Limits;
  /** What Discord allows this process, over all routes. Default 50. */
  readonly requestsPerSecond?: number | undefined;
  readonly meter?: Meter | undefined;
  /** Unix milliseconds. Ids of messages are compared with it. */
  readonly now: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

/** What the requests below are made with. */
interface Surroundings extends Pick<ApiOptions, "now" | "clock" | "log"> {
  readonly rest: REST;
  readonly send: ReturnType<typeof createSending>;
}

/**
 * The requests that Parley makes, all with one client. They reject with ParleyErrors without tokens and user
 * text, and wait in their lanes under Discord's limits, except the response of an interaction.
 */
export type DiscordApi = ReturnType<typeof createDiscordApi>;

export function createDiscordApi(options: ApiOptions) {
  const { limits = createDiscordLimits(options), clock } = options;
  const rest = createRest(options.token, options.apiUrl, options.log);
  const around: Surroundings = { ...options, rest, send: createSending(limits, clock) };
  const messages = createMessageRequests(around);
  return {
    limits,
    ...messages,
    ...createPlaceRequests(around),
    ...createDirectMessages(around, (channelId, body) => messages.createMessage(channelId, body)),
    ...createInteractionRequests(around),
  };
}

/** Returns how a request is sent that shows nothing, and that may be repeated. */
function asked(method: string, action: string, place: string) {
  return { method, action, lanes: [lanes.others(method, place), lanes.global], isRepeatable: true };
}

/** Returns the lane of edits to an old message, which comes before all others. */
function oldLane(messageId: string, id: string, now: number): string[] {
  return isOldMessage(messageId, now) ? [lanes.oldEdits(id)] : [];
}

function createMessageRequests({ rest, send, now, clock, log }: Surroundings) {
  function post(
    channelId: string,
    body: RESTPostAPIChannelMessageJSONBody,
    given: PostOptions,
  ): Promise<APIMessage> {
    const its = [lanes.posts(channelId), lanes.global];
    return send(
      { method: "post", action: "post a message", lanes: its, isRepeatable: true },
      () => rest.post(Routes.channelMessages(channelId), { body, ...toRequest(given) }),
      given,
    );
  }

  return {
    /** Posts a message, as an ordinary one where Discord refuses a reply for want of Read Message History. */
    async createMessage(
      channelId: string,
      body: RESTPostAPIChannelMessageJSONBody,
      given: PostOptions = {},
    ): Promise<APIMessage> {
      try {
        return await post(channelId, body, given);
      } catch (error) {
        if (discordCode(error) !== errorCodes.noHistoryToReply || body.message_reference === undefined)
          throw error;
        log.warn(
          { channel: channelId, permission: "Read Message History" },
          "permission missing: answers here are not shown as replies, so that nobody can go on by replying",
        );
        return await post(channelId, { ...body, message_reference: undefined }, given);
      }
    },
    /** Edits a message. It is never sent twice, since another process may have edited it meanwhile. */
    editMessage(
      channelId: string,
      messageId: string,
      body: RESTPatchAPIChannelMessageJSONBody,
      given: SendOptions = {},
    ): Promise<APIMessage> {
      const its = [...oldLane(messageId, channelId, now()), lanes.edits(channelId), lanes.global];
      return send(
        { method: "edit", action: "edit a message", lanes: its },
        () => rest.patch(Routes.channelMessage(channelId, messageId), { body, ...toRequest(given) }),
        given,
      );
    },
    /** Shows "typing…" for ten seconds, or until the bot posts. */
    startTyping(channelId: string, given?: SendOptions): Promise<void> {
      const its = [lanes.typing(channelId), lanes.global];
      return send(
        { method: "typing", action: "start typing", lanes: its },
        () => rest.post(Routes.channelTyping(channelId), toRequest(given)),
        // It never waits.
        { urgency: "growth", deadline: clock.monotonic(), ...given },
      );
    },
    deleteMessage: (channelId: string, messageId: string): Promise<void> =>
      send(asked("delete", "delete a message", channelId), () =>
        rest.delete(Routes.channelMessage(channelId, messageId)),
      ),
    getMessage: (channelId: string, messageId: string): Promise<APIMessage> =>
      send(asked("read", "read a message", channelId), () =>
        rest.get(Routes.channelMessage(channelId, messageId)),
      ),
    /**
     * Reads messages, the newest first. `isPatient` means that nobody waits for them, so requests that
     * somebody waits for come first and keep their room. Default false.
     */
    listMessages(
      channelId: string,
      { isPatient = false, ...query }: MessageQuery & { readonly isPatient?: boolean },
    ): Promise<APIMessage[]> {
      return send(
        { ...asked("read", "read messages", channelId), isPatient },
        () => rest.get(Routes.channelMessages(channelId), { query: makeURLSearchParams(query) }),
        { urgency: isPatient ? "growth" : "final" },
      );
    },
  };
}

/** Returns the requests about channels, servers, threads and the application. */
function createPlaceRequests({ rest, send }: Surroundings) {
  return {
    getChannel: (channelId: string): Promise<APIChannel> =>
      send(asked("read", "read a channel", channelId), () => rest.get(Routes.channel(channelId))),
    /** Returns the bot's own user. */
    getSelf: (): Promise<APIUser> =>
      send(asked("read", "read the bot's user", "self"), () => rest.get(Routes.user())),
    /** Returns how many shards Discord recommends, and how many sessions may begin at once. */
    getGateway: (): Promise<APIGatewayBotInfo> =>
      send(asked("read", "read the gateway's limits", "gateway"), () => rest.get(Routes.gatewayBot())),
    /** Lists the first `limit` servers of the bot (1 to 200) after an id, in the order of their ids. */
    listGuilds: (query: {
      readonly after?: string | undefined;
      readonly limit: number;
    }): Promise<readonly { readonly id: string }[]> =>
      send(asked("read", "list the servers", "servers"), () =>
        rest.get(Routes.userGuilds(), { query: makeURLSearchParams(query) }),
      ),
    /** Resolves to `undefined` where the user is not a member, or the bot is not. */
    async getMember(guildId: string, userId: string): Promise<APIGuildMember | undefined> {
      try {
        return await send(asked("read", "read a member", guildId), () =>
          rest.get(Routes.guildMember(guildId, userId)),
        );
      } catch (error) {
        if (notAMember.has(discordCode(error) ?? 0)) return undefined;
        throw error;
      }
    },
    startThread(
      channelId: string,
      messageId: string | undefined,
      { name, archiveMinutes = usualArchiveMinutes, type }: NewThread,
      given: SendOptions = {},
    ): Promise<APIThreadChannel> {
      const its = [lanes.threads(channelId), lanes.global];
      // A thread from a message is public anyway, and the field does not exist for it.
      const kind = messageId === undefined ? { type } : {};
      const body = { name, auto_archive_duration: archiveMinutes, ...kind };
      return send(
        { method: "thread", action: "open a thread", lanes: its, isRepeatable: true },
        () => rest.post(Routes.threads(channelId, messageId), { body, ...toRequest(given) }),
        given,
      );
    },
    /** Makes an archived thread active. That is not possible where a moderator has locked it. */
    unarchiveThread: (threadId: string): Promise<void> =>
      send(asked("thread", "unarchive a thread", threadId), () =>
        rest.patch(Routes.channel(threadId), { body: { archived: false } }),
      ),
    /** Puts a thread into somebody's list of channels. */
    addToThread: (threadId: string, userId: string): Promise<void> =>
      send(asked("thread", "add to a thread", threadId), () =>
        rest.put(Routes.threadMembers(threadId, userId)),
      ),
    putCommands: (applicationId: string, body: RESTPutAPIApplicationCommandsJSONBody): Promise<void> =>
      send(asked("commands", "register the commands", applicationId), () =>
        rest.put(Routes.applicationCommands(applicationId), { body }),
      ),
  };
}

function createDirectMessages(
  { rest, send, clock }: Surroundings,
  createMessage: (channelId: string, body: RESTPostAPIChannelMessageJSONBody) => Promise<APIMessage>,
) {
  const notes = createSlidingWindowLimiter({ ...directLimit, now: () => clock.monotonic() });
  let pausedUntil = Number.NEGATIVE_INFINITY;

  async function openDirectChannel(userId: string): Promise<APIChannel> {
    const pausedMs = Math.ceil(pausedUntil - clock.monotonic());
    if (pausedMs > 0) throw tooFast(pausedMs);
    try {
      return await send(asked("open", "open a direct message", "direct"), () =>
        rest.post(Routes.userChannels(), { body: { recipient_id: userId } }),
      );
    } catch (error) {
      if (discordCode(error) !== errorCodes.openingTooFast) throw error;
      pausedUntil = clock.monotonic() + directPauseMs;
      throw tooFast(directPauseMs);
    }
  }

  return {
    /** Returns the channel. @throws ParleyError `platform-unreachable` with `retryAfterMs`: not now */
    openDirectChannel,
    /**
     * Tells a person something in direct messages. Resolves to false where too many were opened lately.
     * @throws ParleyError where they take none
     */
    async tellDirectly(userId: string, body: RESTPostAPIChannelMessageJSONBody): Promise<boolean> {
      if (!notes.tryTake()) return false;
      const direct = await openDirectChannel(userId);
      await createMessage(direct.id, body);
      return true;
    },
  };
}

/**
 * Returns the requests about interactions. Messages of interactions have a limit for each token and count
 * against no other. They are delayed only after a refusal, except edits of messages older than an hour.
 */
function createInteractionRequests({ rest, send, now, clock }: Surroundings) {
  const open = { auth: false } as const;
  const acknowledgements = new Map<string, Promise<unknown>>();

  /** Makes a request about the messages of an interaction, once that is acknowledged. */
  async function follow<T>(
    { token }: InteractionToken,
    [method, action, ...before]: readonly [method: string, action: string, ...before: string[]],
    request: () => Promise<unknown>,
    given?: SendOptions,
  ): Promise<T> {
    await acknowledgements.get(token);
    return send({ method, action, lanes: [...before, lanes.interaction(token)] }, request, given);
  }

  return {
    /**
     * Sends the response of an interaction, which must arrive within 3 s of the interaction's creation. The
     * library sends it at once, also while Discord refuses everything else.
     */
    respond: (interactionId: string, token: string, body: unknown): Promise<void> =>
      retry(
        async (attempt) => {
          const sent = translated<void>("answer an interaction", () =>
            rest.post(Routes.interactionCallback(interactionId, token), { ...open, body }),
          );
          await sent.catch((error: unknown) => {
            // Perhaps only a response was lost. This attempt is then rejected, because the one before was
            // taken.
            if (attempt === 1 || discordCode(error) !== errorCodes.alreadyAcknowledged) throw error;
          });
        },
        {
          clock,
          deadline: clock.monotonic() + respondForMs,
          delayMs(error, attempt) {
            if (isLost(error)) return backoffMs(attempt, repeatBackoff);
            return isParleyError(error) ? error.retryAfterMs : undefined;
          },
        },
      ),
    /**
     * Makes requests about the messages of the interaction wait until `acknowledgement` has settled, as
     * Discord rejects earlier ones.
     */
    expect(token: string, acknowledgement: Promise<unknown>): void {
      const settled = Promise.allSettled([acknowledgement]).then(() => acknowledgements.delete(token));
      acknowledgements.set(token, settled);
    },
    /** Posts a message. It has no nonce, so that repeating it after a lost response would post it twice. */
    followUp: (
      interaction: InteractionToken,
      body: RESTPostAPIWebhookWithTokenJSONBody,
      given: PostOptions = {},
    ): Promise<APIMessage> =>
      follow(
        interaction,
        ["follow-up", "follow up on an interaction"],
        () =>
          rest.post(Routes.webhook(interaction.applicationId, interaction.token), {
            ...open,
            query: new URLSearchParams({ wait: "true" }),
            body,
            ...toRequest(given),
          }),
        given,
      ),
    /** `messageId` may be `@original`. */
    editFollowUp: (
      interaction: InteractionToken,
      messageId: string,
      body: RESTPatchAPIChannelMessageJSONBody,
      given: SendOptions = {},
    ): Promise<APIMessage> =>
      follow(
        interaction,
        ["follow-up edit", "edit an interaction's message", ...oldLane(messageId, messageId, now())],
        () => rest.patch(toRoute(interaction, messageId), { ...open, body, ...toRequest(given) }),
        given,
      ),
    getFollowUp: (interaction: InteractionToken, messageId: string): Promise<APIMessage> =>
      follow(interaction, ["follow-up read", "read an interaction's message"], () =>
        rest.get(toRoute(interaction, messageId), open),
      ),
    deleteFollowUp: (interaction: InteractionToken, messageId: string): Promise<void> =>
      follow(interaction, ["follow-up deletion", "delete an interaction's message"], () =>
        rest.delete(toRoute(interaction, messageId), open),
      ),
  };
}

const toRoute = ({ applicationId, token }: InteractionToken, messageId: string) =>
  Routes.webhookMessage(applicationId, token, messageId);

function toRequest({ files = [], signal }: PostOptions = {}): { files?: RawFile[]; signal?: AbortSignal } {
  return {
    ...(files.length === 0 ? {} : { files: [...files] }),
    // The library leaves its listeners on the signal that it is given.
    ...(signal === undefined ? {} : { signal: AbortSignal.any([signal]) }),
  };
}

function tooFast(retryAfterMs: number): ParleyError {
  return new ParleyError("platform-unreachable", "direct messages are opened too fast for Discord", {
    retryAfterMs,
    detail: { discordCode: errorCodes.openingTooFast },
  });
}
