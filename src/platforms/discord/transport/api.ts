import {
  REST,
  Routes,
  makeURLSearchParams,
  type APIChannel,
  type APIGuildMember,
  type APIMessage,
  type APIThreadChannel,
  type RawFile,
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
import type { DeliveryScheduler } from "../../delivery/delivery-scheduler.ts";
import { discordCode, errorCodes, toParleyError } from "../errors.ts";
import {
  createDiscordScheduler,
  createSending,
  isOldMessage,
  lanes,
  type SendOptions,
  requestOptions,
  warnOfRefusals,
} from "./delivery.ts";

/** The default of `DISCORD_API_URL`. */
export const publicApiUrl = "https://discord.com/api";

/** Longer rate limits are errors for the caller. The client waits out shorter ones. */
const maxRateLimitWaitMs = 10_000;

/** The library's own limit over all routes is off: the scheduler counts for it. */
const unlimited = 10_000;

const notAMember: ReadonlySet<number> = new Set([
  errorCodes.unknownGuild,
  errorCodes.unknownMember,
  errorCodes.unknownUser,
  errorCodes.missingAccess,
]);

/** Used where a channel has no default for its threads, in minutes. */
const usualArchiveMinutes = 1440;

const maxRetries = 3;
/**
 * How long the response of an interaction is tried. After two seconds another instance responds instead, and
 * a reply that began before does not know it.
 */
const respondForMs = 2600;
const retryBackoff = { baseMs: 100, maxMs: 400 };

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

/**
 * The requests that Parley makes. They reject with ParleyErrors without tokens and user text. Those that show
 * something, and most others, wait for their turn under Discord's limits.
 */
export interface DiscordApi {
  /** Orders what is shown, under Discord's limits. */
  readonly scheduler: DeliveryScheduler;
  /**
   * Posts a message, as an ordinary one where Discord refuses a reply. That needs the permission Read Message
   * History.
   */
  createMessage(
    channelId: string,
    body: RESTPostAPIChannelMessageJSONBody,
    options?: PostOptions,
  ): Promise<APIMessage>;
  /** Edits a message. It is never sent twice, since another process may have edited the message meanwhile. */
  editMessage(
    channelId: string,
    messageId: string,
    body: RESTPatchAPIChannelMessageJSONBody,
    options?: SendOptions,
  ): Promise<APIMessage>;
  /** Shows "typing…" for ten seconds, or until the bot posts. */
  startTyping(channelId: string, options?: SendOptions): Promise<void>;
  deleteMessage(channelId: string, messageId: string): Promise<void>;
  getMessage(channelId: string, messageId: string): Promise<APIMessage>;
  /**
   * Reads the first `limit` messages (1 to 100) after an id. Without `after` it reads the last ones, before
   * an id or of all. The newest comes first. `isPatient` means that nobody waits for them, so requests that
   * somebody waits for come first and keep their room. Default false.
   */
  listMessages(
    channelId: string,
    options: {
      readonly after?: string;
      readonly before?: string | undefined;
      readonly limit: number;
      readonly isPatient?: boolean;
    },
  ): Promise<APIMessage[]>;
  getChannel(channelId: string): Promise<APIChannel>;
  /** Lists the first `limit` servers of the bot (1 to 200) after an id, in the order of their ids. */
  listGuilds(options: {
    readonly after?: string | undefined;
    readonly limit: number;
  }): Promise<readonly { readonly id: string }[]>;
  /** Resolves to `undefined` where the user is not a member, or the bot is not. */
  getMember(guildId: string, userId: string): Promise<APIGuildMember | undefined>;
  startThread(
    channelId: string,
    messageId: string | undefined,
    thread: NewThread,
    options?: SendOptions,
  ): Promise<APIThreadChannel>;
  /** Makes an archived thread active. That is not possible where a moderator has locked it. */
  unarchiveThread(threadId: string): Promise<void>;
  /** Puts a thread into somebody's list of channels. */
  addToThread(threadId: string, userId: string): Promise<void>;
  /** Returns the channel. @throws ParleyError `platform-unreachable` with `retryAfterMs`: not now */
  openDirectChannel(userId: string): Promise<APIChannel>;
  /**
   * Tells a person something in direct messages. Resolves to false where too many were opened lately.
   * @throws ParleyError where they take none
   */
  tellDirectly(userId: string, body: RESTPostAPIChannelMessageJSONBody): Promise<boolean>;
  putCommands(applicationId: string, commands: RESTPutAPIApplicationCommandsJSONBody): Promise<void>;
  /** Sends the response of an interaction. It must arrive within 3 s of the interaction's creation. */
  respond(interactionId: string, token: string, body: unknown): Promise<void>;
  /**
   * Makes requests about the messages of the interaction wait until `acknowledgement` has settled, as Discord
   * rejects earlier ones.
   */
  expect(token: string, acknowledgement: Promise<unknown>): void;
  followUp(
    interaction: InteractionToken,
    body: RESTPostAPIWebhookWithTokenJSONBody,
    options?: PostOptions,
  ): Promise<APIMessage>;
  /** `messageId` may be `@original`. */
  editFollowUp(
    interaction: InteractionToken,
    messageId: string,
    body: RESTPatchAPIChannelMessageJSONBody,
    options?: SendOptions,
  ): Promise<APIMessage>;
  getFollowUp(interaction: InteractionToken, messageId: string): Promise<APIMessage>;
  deleteFollowUp(interaction: InteractionToken, messageId: string): Promise<void>;
}

/**
 * Creates the REST client. Requests are independent of the gateway client, which drops its token on
 * `destroy`. Interactions have a REST instance of their own, because Discord exempts them from its limit over
 * all routes. Messages of interactions have a limit for each token and count against no other. They are
 * delayed only after a refusal, except edits of messages older than an hour.
 */
export function createDiscordApi(options: {
  readonly token: string;
  readonly apiUrl: string;
  /** By default one is made from the next three. */
  readonly scheduler?: DeliveryScheduler;
  /** What Discord allows this process, over all routes. Default 50. */
  readonly requestsPerSecond?: number | undefined;
  readonly meter?: Meter | undefined;
  /** Unix milliseconds. Ids of messages are compared with it. */
  readonly now: () => number;
  readonly clock: Clock;
  readonly log: Log;
}): DiscordApi {
  const { apiUrl, scheduler = createDiscordScheduler(options), clock, log } = options;
  const sending = createSending(scheduler, clock);
  const offset = apiUrl === publicApiUrl ? 50 : 0;
  const common = {
    version: "10",
    api: apiUrl,
    offset,
    // The library would also repeat posts that may have happened. See `retrying`.
    retries: 0,
    globalRequestsPerSecond: unlimited,
    ...requestOptions,
  };
  const rest = new REST({
    ...common,
    // Requests that show something wait by urgency in the scheduler, and here in order of arrival.
    rejectOnRateLimit: ({ method, route, timeToReset, retryAfter }) =>
      (["POST", "PATCH"].includes(method) && route.startsWith("/channels/:id/")) ||
      Math.max(timeToReset, retryAfter) > maxRateLimitWaitMs,
  }).setToken(options.token);
  const interactions = new REST({
    ...common,
    rejectOnRateLimit: ({ method, timeToReset, retryAfter }) =>
      method === "PATCH" || Math.max(timeToReset, retryAfter) > maxRateLimitWaitMs,
  });
  const open = { auth: false } as const;
  for (const one of [rest, interactions]) warnOfRefusals(one, log);
  const acknowledgements = new Map<string, Promise<unknown>>();
  const directNotes = createSlidingWindowLimiter({ ...directLimit, now: () => clock.monotonic() });
  let directPausedUntil = Number.NEGATIVE_INFINITY;

  async function send<T>(action: string, request: () => Promise<unknown>): Promise<T> {
    try {
      return (await request()) as T;
    } catch (error) {
      throw toParleyError(error, action);
    }
  }

  /** Sends requests that may be repeated: reads, and posts with a nonce. */
  function retrying<T>(
    action: string,
    request: (attempt: number) => Promise<unknown>,
    { signal, forMs }: { readonly signal?: AbortSignal | undefined; readonly forMs?: number } = {},
  ): Promise<T> {
    return retry((attempt) => send<T>(action, () => request(attempt)), {
      signal,
      clock,
      ...(forMs === undefined ? {} : { deadline: clock.monotonic() + forMs }),
      delayMs: (error, attempt) =>
        isParleyError(error, "platform-unreachable") &&
        error.retryAfterMs === undefined &&
        (forMs !== undefined || attempt <= maxRetries)
          ? backoffMs(attempt, retryBackoff)
          : undefined,
    });
  }

  /** Sends a request that shows nothing, and that may be repeated. */
  const ask = <T>(
    method: string,
    action: string,
    request: () => Promise<unknown>,
    isPatient?: boolean,
  ): Promise<T> => sending.ask(method, () => retrying<T>(action, request), isPatient);

  /** Returns the lane of edits to an old message, which comes before all others. */
  const oldLane = (messageId: string, id: string): string[] =>
    isOldMessage(messageId, options.now()) ? [lanes.oldEdits(id)] : [];

  const post = (
    channelId: string,
    body: RESTPostAPIChannelMessageJSONBody,
    given: PostOptions,
  ): Promise<APIMessage> =>
    sending.show("post", [lanes.posts(channelId), lanes.global], given, () =>
      retrying(
        "post a message",
        () => rest.post(Routes.channelMessages(channelId), { body, ...toRequest(given) }),
        { signal: given.signal },
      ),
    );

  const api: DiscordApi = {
    scheduler,
    async createMessage(channelId, body, given = {}) {
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
    editMessage: (channelId, messageId, body, given = {}) =>
      sending.show(
        "edit",
        [...oldLane(messageId, channelId), lanes.edits(channelId), lanes.global],
        given,
        () =>
          send("edit a message", () =>
            rest.patch(Routes.channelMessage(channelId, messageId), { body, ...toRequest(given) }),
          ),
      ),
    startTyping: (channelId, given) =>
      sending.show(
        "typing",
        [lanes.typing(channelId), lanes.allTyping, lanes.global],
        { urgency: "preview", ...given },
        () => send("start typing", () => rest.post(Routes.channelTyping(channelId), toRequest(given))),
      ),
    deleteMessage: (channelId, messageId) =>
      ask("delete", "delete a message", () => rest.delete(Routes.channelMessage(channelId, messageId))),
    getMessage: (channelId, messageId) =>
      ask("read", "read a message", () => rest.get(Routes.channelMessage(channelId, messageId))),
    listMessages: (channelId, { isPatient, ...query }) =>
      ask(
        "read",
        "read messages",
        () => rest.get(Routes.channelMessages(channelId), { query: makeURLSearchParams(query) }),
        isPatient,
      ),
    getChannel: (channelId) => ask("read", "read a channel", () => rest.get(Routes.channel(channelId))),
    listGuilds: (query) =>
      ask("read", "list the servers", () =>
        rest.get(Routes.userGuilds(), { query: makeURLSearchParams(query) }),
      ),
    async getMember(guildId, userId) {
      try {
        return await ask("read", "read a member", () => rest.get(Routes.guildMember(guildId, userId)));
      } catch (error) {
        if (notAMember.has(discordCode(error) ?? 0)) return undefined;
        throw error;
      }
    },
    startThread: (channelId, messageId, { name, archiveMinutes = usualArchiveMinutes, type }, given = {}) =>
      sending.show("thread", [lanes.threads(channelId), lanes.global], given, () =>
        retrying(
          "open a thread",
          () =>
            rest.post(Routes.threads(channelId, messageId), {
              // A thread from a message is public anyway, and the field does not exist for it.
              body: {
                name,
                auto_archive_duration: archiveMinutes,
                ...(messageId === undefined ? { type } : {}),
              },
              ...toRequest(given),
            }),
          { signal: given.signal },
        ),
      ),
    unarchiveThread: (threadId) =>
      ask("thread", "unarchive a thread", () =>
        rest.patch(Routes.channel(threadId), { body: { archived: false } }),
      ),
    addToThread: (threadId, userId) =>
      ask("thread", "add to a thread", () => rest.put(Routes.threadMembers(threadId, userId))),
    async openDirectChannel(userId) {
      const pausedMs = Math.ceil(directPausedUntil - clock.monotonic());
      if (pausedMs > 0) throw tooFast(pausedMs);
      try {
        return await ask("open", "open a direct message", () =>
          rest.post(Routes.userChannels(), { body: { recipient_id: userId } }),
        );
      } catch (error) {
        if (discordCode(error) !== errorCodes.openingTooFast) throw error;
        directPausedUntil = clock.monotonic() + directPauseMs;
        throw tooFast(directPauseMs);
      }
    },
    async tellDirectly(userId, body) {
      if (!directNotes.tryTake()) return false;
      const direct = await api.openDirectChannel(userId);
      await api.createMessage(direct.id, body);
      return true;
    },
    putCommands: (applicationId, commands) =>
      retrying("register the commands", () =>
        rest.put(Routes.applicationCommands(applicationId), { body: commands }),
      ),
    respond: (interactionId, token, body) =>
      retrying(
        "answer an interaction",
        async (attempt) => {
          try {
            await interactions.post(Routes.interactionCallback(interactionId, token), { ...open, body });
          } catch (error) {
            // Perhaps only a response was lost. This attempt is then rejected, because the one before was
            // taken.
            if (attempt === 1 || discordCode(error) !== errorCodes.alreadyAcknowledged) throw error;
          }
        },
        { forMs: respondForMs },
      ),
    expect(token, acknowledgement) {
      const settled = Promise.allSettled([acknowledgement]).then(() => acknowledgements.delete(token));
      acknowledgements.set(token, settled);
    },
    // A follow-up has no nonce. Repeating a POST whose response was lost would post the message twice.
    async followUp({ applicationId, token }, body, given = {}) {
      await acknowledgements.get(token);
      return sending.show("follow-up", [lanes.interaction(token)], given, () =>
        send("follow up on an interaction", () =>
          interactions.post(Routes.webhook(applicationId, token), {
            ...open,
            query: new URLSearchParams({ wait: "true" }),
            body,
            ...toRequest(given),
          }),
        ),
      );
    },
    async editFollowUp({ applicationId, token }, messageId, body, given = {}) {
      await acknowledgements.get(token);
      const its = [...oldLane(messageId, messageId), lanes.interaction(token)];
      return sending.show("follow-up edit", its, given, () =>
        send("edit an interaction's message", () =>
          interactions.patch(Routes.webhookMessage(applicationId, token, messageId), {
            ...open,
            body,
            ...toRequest(given),
          }),
        ),
      );
    },
    async getFollowUp({ applicationId, token }, messageId) {
      await acknowledgements.get(token);
      return send("read an interaction's message", () =>
        interactions.get(Routes.webhookMessage(applicationId, token, messageId), open),
      );
    },
    async deleteFollowUp({ applicationId, token }, messageId) {
      await acknowledgements.get(token);
      await sending.show("follow-up deletion", [lanes.interaction(token)], {}, () =>
        send("delete an interaction's message", () =>
          interactions.delete(Routes.webhookMessage(applicationId, token, messageId), open),
        ),
      );
    },
  };
  return api;
}

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
