import { LRUCache } from "lru-cache";
import type { Actor } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import type { Author, Origin } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock, expiringBy } from "../../support/clock.ts";
import { createRecent } from "../../support/recent.ts";
import { currentLocale } from "../../words/translate.ts";
import { toLanguage, type Language } from "../../words/languages.ts";
import {
  isDirectMessages,
  toChannelPlace,
  toAuthorId,
  toChannelTerm,
  toTeamTerm,
  toUserTerm,
} from "./address.ts";
import { inLookupTime } from "./errors.ts";
import type { SlackUserInfo } from "./transport/web-api.ts";

interface PeopleOptions {
  readonly lookUp: (userId: string) => Promise<SlackUserInfo>;
  /** Returns the name of a public channel. */
  readonly lookUpChannel: (channelId: string) => Promise<string | undefined>;
  readonly log: Log;
  readonly clock?: Clock | undefined;
  /** An event may wait so many milliseconds for a lookup. The default is 800. */
  readonly maxWaitMs?: number;
}

export type People = ReturnType<typeof createPeople>;

export type Names = Pick<People, "nameOf" | "channelNameOf">;

/** So many people of each workspace are remembered. */
const maxPeople = 1000;
/** Somebody who is no admin any more counts as one for so long. */
const ttlMs = 15 * 60_000;

/** So many lookups may be in flight, since messages can mention thousands who do not exist. */
const maxLookUps = 100;

/** Looks people up and caches them for 15 minutes. Nothing here throws. */
export function createPeople(options: PeopleOptions) {
  const { lookUp, log, maxWaitMs = 800, clock = systemClock } = options;
  const channels = createRecent<Promise<string | undefined>>(maxPeople, ttlMs, () => clock.monotonic());
  let inFlight = 0;
  const cache = new LRUCache<string, SlackUserInfo>({
    max: maxPeople,
    ttl: ttlMs,
    async fetchMethod(userId) {
      inFlight += 1;
      return await lookUp(userId).finally(() => (inFlight -= 1));
    },
    ...expiringBy(clock),
  });

  async function cached(userId: string): Promise<SlackUserInfo | undefined> {
    try {
      return await cache.fetch(userId);
    } catch (error) {
      log.debug({ err: error }, "user lookup failed");
      return undefined;
    }
  }

  /**
   * @param maxMs how long the lookup is waited for, in milliseconds. Default: as long as an event may wait
   */
  async function find(userId: string, maxMs = maxWaitMs): Promise<SlackUserInfo | undefined> {
    const known = cache.get(userId);
    if (known !== undefined || inFlight >= maxLookUps) return known;
    return await inLookupTime(cached(userId), maxMs, clock);
  }

  return {
    find,
    /** Resolves to the person's display name, or in time to their id. */
    nameOf: async (userId: string): Promise<string> => (await find(userId))?.name ?? userId,
    /** Resolves to the name of a public channel, where it is known in time. */
    async channelNameOf(channelId: string): Promise<string | undefined> {
      const known = channels.get(channelId);
      const looking = known ?? options.lookUpChannel(channelId).catch(() => undefined);
      if (known === undefined) channels.set(channelId, looking);
      return await inLookupTime(looking, maxWaitMs, clock);
    },
    /** The same with the other names by which people call them. */
    async namesOf(userId: string): Promise<Pick<Author, "alsoCalled" | "name">> {
      const { name = userId, names = [] } = (await find(userId)) ?? {};
      const alsoCalled = names.filter((other) => other.toLowerCase() !== name.toLowerCase());
      return { name, ...(alsoCalled.length === 0 ? {} : { alsoCalled }) };
    },
    /** The language to speak to a person in: English where Slack does not return their locale in time. */
    languageOf: async (userId: string, maxMs?: number): Promise<Language> =>
      toLanguage((await find(userId, maxMs))?.locale),
  };
}

/** This is who did something, as Slack's payload names them. */
interface SlackActor {
  readonly user: string;
  /** The channel is empty outside of channels and conversations. */
  readonly channel: string;
  /** This is the workspace of the user, where the payload names it. */
  readonly team: string | undefined;
}

/** This says who asks and from where, in the terms of the access rules. */
export type Origins = ReturnType<typeof createOrigins>;

export interface OriginOptions {
  /** In channels, strangers count as members, though not of the workspace. The default is false. */
  readonly admitsStrangers?: boolean | undefined;
}

export function createOrigins(
  people: Pick<People, "find" | "nameOf">,
  teamId: string,
  { admitsStrangers = false }: OriginOptions = {},
) {
  /**
   * Resolves to the origin of a person. Somebody of another workspace, in a shared channel, is a stranger;
   * guests are members. Where Slack does not describe the user in time, the payload decides, and a person
   * without a workspace there is a stranger. It never throws.
   */
  async function originOf({ user, channel, team }: SlackActor): Promise<Origin> {
    const info = await people.find(user);
    const isMember = info === undefined ? team === teamId : isInTeam(info, teamId);
    const home = info?.teamId ?? team;
    const isInChannel = channel !== "" && !isDirectMessages(channel);
    return {
      user: toUserTerm(user),
      server: toTeamTerm(teamId),
      ...(isMember || home === undefined ? {} : { home: toTeamTerm(home) }),
      ...(isInChannel
        ? { channel: toChannelTerm(channel), channelPlace: toChannelPlace(teamId, channel) }
        : {}),
      isMember: isMember || (admitsStrangers && isInChannel),
      isManager: isMember && info?.isAdmin === true,
    };
  }

  return {
    originOf,
    /** Resolves to the same with the name, for buttons. It never throws. */
    async actorOf(actor: SlackActor): Promise<Actor> {
      const [origin, name] = await Promise.all([originOf(actor), people.nameOf(actor.user)]);
      return {
        platform: "slack",
        author: { id: toAuthorId(teamId, actor.user), name, ...currentLocale() },
        origin,
      };
    },
  };
}

/** Returns whether a person is in the workspace, maybe as a member of another one of the organisation. */
function isInTeam({ teamId: home, teams, isStranger }: SlackUserInfo, teamId: string): boolean {
  return !isStranger && (home === undefined || home === teamId || teams.includes(teamId));
}
