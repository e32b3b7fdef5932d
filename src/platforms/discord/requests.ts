import { createSlidingWindowLimiter } from "../../support/rate-limiter.ts";
import type { Clock } from "../../core/clock.ts";
import type { Log, Meter } from "../../core/telemetry.ts";
import { createRecent } from "../../support/recent.ts";
import type { DeliveryScheduler, SuspensionWatch } from "../delivery/delivery-scheduler.ts";
import { discordCode, errorCodes } from "./errors.ts";
import {
  createAcknowledgements,
  createFreshTokens,
  type FreshTokens,
  withAcknowledgements,
  type Acknowledgements,
} from "./press/acknowledgements.ts";
import { type DiscordApi, createDiscordApi, publicApiUrl } from "./transport/api.ts";
import { createDiscordScheduler, createLimitReader, withDelivery } from "./transport/delivery.ts";
import {
  createDiscordClock,
  createInvalidRequestGuard,
  type DiscordClock,
  type RequestGuard,
} from "./transport/make-request.ts";

/** Discord suspects bots that open many direct messages. */
const directLimit = { max: 20, windowMs: 10 * 60_000, reserved: 0 };

/** Opens direct messages to tell people something. */
export interface DirectNotes {
  /** Resolves to false where too many were opened lately. @throws ParleyError where they take none */
  send(userId: string, content: Parameters<DiscordApi["createMessage"]>[1]): Promise<boolean>;
}

function createDirectNotes(
  api: Pick<DiscordApi, "openDirectChannel" | "createMessage">,
  clock: Clock,
): DirectNotes {
  const opened = createSlidingWindowLimiter({ ...directLimit, now: () => clock.monotonic() });
  return {
    async send(userId, content) {
      if (!opened.tryTake()) return false;
      const direct = await api.openDirectChannel(userId);
      await api.createMessage(direct.id, content);
      return true;
    },
  };
}

/** How this process asks Discord: one API under all limits, and what goes with it. */
interface DiscordRequests {
  readonly api: DiscordApi;
  readonly apiUrl: string;
  readonly acknowledgements: Acknowledgements;
  readonly freshTokens: FreshTokens;
  readonly scheduler: DeliveryScheduler;
  readonly directNotes: DirectNotes;
  /** Wraps the requests of the gateway's client too. */
  readonly guard: RequestGuard;
  readonly onResponse: DiscordClock["observe"];
  /** Returns Discord's time, in Unix milliseconds. */
  readonly now: () => number;
}

export function createDiscordRequests(options: {
  readonly token: string;
  readonly apiUrl?: string;
  readonly requestsPerSecond?: number;
  readonly meter?: Meter;
  readonly now?: () => number;
  readonly suspensions: Pick<SuspensionWatch, "waitMs">;
  readonly clock: Clock;
  readonly log: Log;
}): DiscordRequests {
  const { clock, log } = options;
  const apiUrl = (options.apiUrl ?? publicApiUrl).replace(/(?<!\/)\/+$/, "");
  const discordClock = createDiscordClock(clock);
  const now = options.now ?? (() => discordClock.now());
  const onResponse = discordClock.observe;
  const scheduler = createDiscordScheduler(options);
  const onLimits = createLimitReader(scheduler, apiUrl === publicApiUrl ? 50 : 0);
  const guard = createInvalidRequestGuard({ log, clock });
  const plainApi = createDiscordApi({ ...options, apiUrl, onResponse, onLimits, guard });
  const acknowledgements = createAcknowledgements(plainApi, log, clock);
  const acknowledged = withAcknowledgements(plainApi, acknowledgements);
  const api = withPlainReplies(withDelivery(acknowledged, scheduler, now, clock), log);
  const freshTokens = createFreshTokens(now);
  const directNotes = createDirectNotes(api, clock);
  return { api, apiUrl, acknowledgements, freshTokens, scheduler, directNotes, guard, onResponse, now };
}

/** How many channels have their missing permission logged once. */
const maxLogged = 1000;

/**
 * Posts replies as ordinary messages where Discord refuses them, because a reply needs the permission Read
 * Message History. That is logged once for each channel.
 */
function withPlainReplies(api: DiscordApi, log: Log): DiscordApi {
  const logged = createRecent(maxLogged);
  return {
    ...api,
    async createMessage(channelId, body, options) {
      try {
        return await api.createMessage(channelId, body, options);
      } catch (error) {
        if (discordCode(error) !== errorCodes.noHistoryToReply || body.message_reference === undefined)
          throw error;
        if (!logged.has(channelId))
          log.warn(
            { channel: channelId, permission: "Read Message History" },
            "permission missing: answers here are not shown as replies, so that nobody can go on by replying",
          );
        logged.set(channelId, true);
        return await api.createMessage(channelId, { ...body, message_reference: undefined }, options);
      }
    },
  };
}
