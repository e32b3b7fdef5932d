import {
  REST,
  RESTEvents,
  RateLimitError,
  Routes,
  type APIChannel,
  type APIApplicationCommand,
  type APIGuildMember,
  type APIMessage,
  type APIRequest,
  type APIThreadChannel,
  type RawFile,
  type ResponseLike,
  type RESTPatchAPIChannelMessageJSONBody,
  type RESTPostAPIChannelMessageJSONBody,
  type RESTPostAPIWebhookWithTokenJSONBody,
  type RESTPutAPIApplicationCommandsJSONBody,
} from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import { ParleyError, isParleyError } from "../../../core/errors.ts";
import { systemClock } from "../../../support/clock.ts";
import { backoffMs, retry } from "../../../support/retry.ts";
import type { Urgency, Reservation } from "../../delivery/delivery-scheduler.ts";
import { discordCode, errorCodes, toParleyError } from "../errors.ts";
import { createMakeRequest, type DiscordClock, type RequestGuard } from "./make-request.ts";
import { withLocalizations } from "../intake/locales.ts";
import { createRecent } from "../../../support/recent.ts";

/** The default of `DISCORD_API_URL`. */
export const publicApiUrl = "https://discord.com/api";

/** Longer rate limits are errors for the caller. The client waits out shorter ones. */
const maxRateLimitWaitMs = 10_000;

/** The global limit does not apply to these requests, or is counted elsewhere. */
const unlimited = 10_000;

/** How long a caller waits after the clock was set back. The usual windows last at most five seconds. */
const afterStepMs = 1000;

const notAMember: ReadonlySet<number> = new Set([
  errorCodes.unknownGuild,
  errorCodes.unknownMember,
  errorCodes.unknownUser,
  errorCodes.missingAccess,
]);

/** Used where a channel has no default for its threads, in minutes. */
const usualArchiveMinutes = 1440;

const maxRetries = 3;
/** The pauses let a process that was suspended notice that it has lost its lease. */
const retryBackoff = { baseMs: 100, maxMs: 1000 };

/** Authorizes requests about one interaction's messages. */
export interface InteractionToken {
  readonly applicationId: string;
  readonly token: string;
}

/** How a request that shows something is sent. After `signal` has aborted, nothing is sent. */
export interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** Only {@link withDelivery} orders requests by this. Default "final". */
  readonly urgency?: Urgency;
  /** By when it must be sent, by {@link Clock.monotonic}. The default depends on the urgency. */
  readonly deadline?: number;
  /** Capacity that was reserved for this request. */
  readonly reservation?: Reservation | undefined;
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

/** Is told of a request and the response to it. */
export type ResponseObserver = (
  request: Pick<APIRequest, "method" | "path">,
  response: Pick<ResponseLike, "headers">,
) => void;

/** The requests that Parley makes. They reject with ParleyErrors without tokens and user text. */
export interface DiscordApi {
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
  listCommands(applicationId: string): Promise<APIApplicationCommand[]>;
  putCommands(applicationId: string, commands: RESTPutAPIApplicationCommandsJSONBody): Promise<void>;
  /** Sends the response of an interaction. It must arrive within 3 s of the interaction's creation. */
  respond(interactionId: string, token: string, body: unknown): Promise<void>;
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
 * `destroy`. Interactions have a REST instance of their own, because Discord exempts them from the global
 * rate limit and the library does not. Requests that show something have one too. It never queues a request,
 * and rejects at once when rate limited.
 */
export function createDiscordApi(options: {
  readonly token: string;
  readonly apiUrl: string;
  /** How many requests Discord allows in total. Default 50. */
  readonly requestsPerSecond?: number;
  readonly onResponse?: DiscordClock["observe"];
  /** Wraps all requests. */
  readonly guard?: RequestGuard;
  /** Is told the limits that responses to requests with urgency name. */
  readonly onLimits?: ResponseObserver;
  /** The default is the time of this process. */
  readonly clock?: Clock | undefined;
}): DiscordApi {
  const { clock = systemClock } = options;
  const common = {
    version: "10",
    api: options.apiUrl,
    offset: options.apiUrl === publicApiUrl ? 50 : 0,
    // The library would also retry what a process that was suspended must not send any more. See `retrying`.
    retries: 0,
    makeRequest: createMakeRequest(options.guard),
  };
  const rest = new REST({
    ...common,
    globalRequestsPerSecond: options.requestsPerSecond ?? 50,
    rejectOnRateLimit: ({ timeToReset, retryAfter }) =>
      Math.max(timeToReset, retryAfter) > maxRateLimitWaitMs,
  }).setToken(options.token);
  // Requests that show something wait elsewhere, by urgency. Here they would wait in order of arrival.
  const shown = new REST({
    ...common,
    globalRequestsPerSecond: unlimited,
    rejectOnRateLimit: () => true,
  }).setToken(options.token);
  const interactions = new REST({
    ...common,
    globalRequestsPerSecond: unlimited,
    rejectOnRateLimit: ({ method, timeToReset, retryAfter }) =>
      method === "PATCH" || Math.max(timeToReset, retryAfter) > maxRateLimitWaitMs,
  });
  const open = { auth: false } as const;
  const all = [rest, shown, interactions];
  for (const one of all) one.on(RESTEvents.Response, (_, response) => options.onResponse?.(response));
  shown.on(RESTEvents.Response, (...observed) => options.onLimits?.(...observed));
  const resets = all.map((one) => createRateLimitReset(one));
  /** Returns how often the clock was set back so far. */
  const countSteps = (): number => resets.reduce((sum, reset) => sum + reset(), 0);

  async function send<T>(action: string, request: () => Promise<unknown>): Promise<T> {
    const stepsBefore = countSteps();
    try {
      return (await request()) as T;
    } catch (error) {
      const isWrongTime = error instanceof RateLimitError && countSteps() > stepsBefore;
      throw isWrongTime ? stepped(action) : toParleyError(error, action);
    }
  }

  /** Sends requests that may be repeated: reads, and posts with a nonce. */
  function retrying<T>(action: string, request: () => Promise<unknown>, signal?: AbortSignal): Promise<T> {
    return retry(() => send<T>(action, request), {
      signal,
      clock,
      delayMs: (error, attempt) =>
        isParleyError(error, "platform-unreachable") &&
        error.retryAfterMs === undefined &&
        attempt <= maxRetries
          ? backoffMs(attempt, retryBackoff)
          : undefined,
    });
  }

  return {
    createMessage: (channelId, body, given) =>
      retrying(
        "post a message",
        () => shown.post(Routes.channelMessages(channelId), { body, ...toRequest(given) }),
        given?.signal,
      ),
    editMessage: (channelId, messageId, body, given) =>
      send("edit a message", () =>
        shown.patch(Routes.channelMessage(channelId, messageId), { body, ...toRequest(given) }),
      ),
    async startTyping(channelId, given) {
      await send("start typing", () => shown.post(Routes.channelTyping(channelId), toRequest(given)));
    },
    async deleteMessage(channelId, messageId) {
      await retrying("delete a message", () => rest.delete(Routes.channelMessage(channelId, messageId)));
    },
    getMessage: (channelId, messageId) =>
      retrying("read a message", () => rest.get(Routes.channelMessage(channelId, messageId))),
    listMessages: (channelId, { after, before, limit }) =>
      retrying("read messages", () =>
        rest.get(Routes.channelMessages(channelId), {
          query: new URLSearchParams({
            ...(after === undefined ? {} : { after }),
            ...(before === undefined ? {} : { before }),
            limit: `${limit}`,
          }),
        }),
      ),
    getChannel: (channelId) => retrying("read a channel", () => rest.get(Routes.channel(channelId))),
    listGuilds: ({ after, limit }) =>
      retrying("list the servers", () =>
        rest.get(Routes.userGuilds(), {
          query: new URLSearchParams({ ...(after === undefined ? {} : { after }), limit: `${limit}` }),
        }),
      ),
    async getMember(guildId, userId) {
      try {
        return await retrying("read a member", () => rest.get(Routes.guildMember(guildId, userId)));
      } catch (error) {
        if (notAMember.has(discordCode(error) ?? 0)) return undefined;
        throw error;
      }
    },
    startThread: (channelId, messageId, { name, archiveMinutes = usualArchiveMinutes, type }, given) =>
      retrying(
        "open a thread",
        () =>
          shown.post(Routes.threads(channelId, messageId), {
            // A thread from a message is public anyway, and the field does not exist for it.
            body: {
              name,
              auto_archive_duration: archiveMinutes,
              ...(messageId === undefined ? { type } : {}),
            },
            ...toRequest(given),
          }),
        given?.signal,
      ),
    async unarchiveThread(threadId) {
      await retrying("unarchive a thread", () =>
        rest.patch(Routes.channel(threadId), { body: { archived: false } }),
      );
    },
    async addToThread(threadId, userId) {
      await retrying("add to a thread", () => rest.put(Routes.threadMembers(threadId, userId)));
    },
    openDirectChannel: createDirectChannels(
      (userId) =>
        retrying("open a direct message", () =>
          rest.post(Routes.userChannels(), { body: { recipient_id: userId } }),
        ),
      clock,
    ),
    listCommands: (applicationId) =>
      retrying("read the commands", () =>
        rest.get(Routes.applicationCommands(applicationId), { query: withLocalizations }),
      ),
    putCommands: (applicationId, commands) =>
      retrying("register the commands", () =>
        rest.put(Routes.applicationCommands(applicationId), { body: commands }),
      ),
    async respond(interactionId, token, body) {
      const post = (): Promise<void> =>
        send("answer an interaction", () =>
          interactions.post(Routes.interactionCallback(interactionId, token), { ...open, body }),
        );
      // Perhaps only a response was lost. The next attempt is then rejected, because ours was taken.
      const isOurs = (error: unknown, attempt: number): boolean =>
        attempt > 1 && discordCode(error) === errorCodes.alreadyAcknowledged;
      await retry(
        (attempt) =>
          post().catch((error: unknown) => {
            if (!isOurs(error, attempt)) throw error;
          }),
        {
          clock,
          delayMs: (error, attempt) =>
            isParleyError(error, "platform-unreachable") && attempt <= maxRetries
              ? backoffMs(attempt, retryBackoff)
              : undefined,
        },
      );
    },
    // A follow-up has no nonce. Repeating a POST whose response was lost would post the message twice.
    followUp: ({ applicationId, token }, body, given) =>
      send("follow up on an interaction", () =>
        interactions.post(Routes.webhook(applicationId, token), {
          ...open,
          query: new URLSearchParams({ wait: "true" }),
          body,
          ...toRequest(given),
        }),
      ),
    editFollowUp: ({ applicationId, token }, messageId, body, given) =>
      send("edit an interaction's message", () =>
        interactions.patch(Routes.webhookMessage(applicationId, token, messageId), {
          ...open,
          body,
          ...toRequest(given),
        }),
      ),
    getFollowUp: ({ applicationId, token }, messageId) =>
      send("read an interaction's message", () =>
        interactions.get(Routes.webhookMessage(applicationId, token, messageId), open),
      ),
    deleteFollowUp: ({ applicationId, token }, messageId) =>
      send("delete an interaction's message", () =>
        interactions.delete(Routes.webhookMessage(applicationId, token, messageId), open),
      ),
  };
}

/** Makes the error of a request that was rejected for a rate limit computed before the clock was set back. */
function stepped(action: string): ParleyError {
  return new ParleyError("platform-unreachable", `rate limited by Discord: ${action}`, {
    retryAfterMs: afterStepMs,
  });
}

function toRequest({ files = [], signal }: PostOptions = {}): { files?: RawFile[]; signal?: AbortSignal } {
  return {
    ...(files.length === 0 ? {} : { files: [...files] }),
    // The library leaves its listeners on the signal that it is given.
    ...(signal === undefined ? {} : { signal: AbortSignal.any([signal]) }),
  };
}

const maxEntries = 1000;
/** Discord does not say how long it refuses to open more. The pause doubles with each refusal in a row. */
const firstPauseMs = 30_000;
const maxPauseMs = 10 * 60_000;

/**
 * Opens direct messages with few requests. The channel of a person stays the same, so it is remembered. After
 * Discord has refused to open more (40003), nothing is asked for half a minute. Further refusals lengthen the
 * pause, to at most ten minutes.
 * @returns a function that opens the channel of one person
 * @throws ParleyError `platform-unreachable` with `retryAfterMs` where it cannot be opened now
 */
function createDirectChannels(
  request: (userId: string) => Promise<APIChannel>,
  clock: Clock,
): (userId: string) => Promise<APIChannel> {
  const channels = createRecent<APIChannel>(maxEntries);
  let refusals = 0;
  let pausedUntil = Number.NEGATIVE_INFINITY;

  function pauseMs(): number {
    return Math.ceil(pausedUntil - clock.monotonic());
  }

  return async (userId) => {
    const known = channels.get(userId);
    if (known !== undefined) return known;
    if (pauseMs() > 0) throw tooFast(pauseMs());
    try {
      const channel = await request(userId);
      refusals = 0;
      channels.set(userId, channel);
      return channel;
    } catch (error) {
      if (discordCode(error) !== errorCodes.openingTooFast) throw error;
      const waitMs = Math.min(firstPauseMs * 2 ** refusals, maxPauseMs);
      // Requests that were in flight together count as one refusal.
      if (pauseMs() <= 0) refusals += 1;
      pausedUntil = Math.max(pausedUntil, clock.monotonic() + waitMs);
      throw tooFast(waitMs);
    }
  };
}

function tooFast(retryAfterMs: number): ParleyError {
  return new ParleyError("platform-unreachable", "direct messages are opened too fast for Discord", {
    retryAfterMs,
    detail: { discordCode: errorCodes.openingTooFast },
  });
}

/** Smaller changes are ordinary corrections of the clock. */
const toleranceMs = 1000;

/**
 * Makes the library forget its rate limits after the clock was set back. The library keeps their ends as wall
 * time. After a step back by a day, a bucket without remaining requests would stay closed for a day.
 * Discord's responses name the limits again. The returned function checks for a step and returns the number
 * of steps so far.
 */
function createRateLimitReset(rest: REST): () => number {
  let lastMs = Date.now() - performance.now();
  let steps = 0;
  return () => {
    const foundMs = Date.now() - performance.now();
    if (lastMs - foundMs > toleranceMs) {
      steps += 1;
      rest.handlers.clear();
      rest.globalDelay = null;
      rest.globalReset = -1;
    }
    lastMs = foundMs;
    return steps;
  };
}
