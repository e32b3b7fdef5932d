import { LRUCache } from "lru-cache";
import type { Actor } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import type { Origin } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock, expiringBy } from "../../support/clock.ts";
import { toLanguage, type Language } from "../../words/languages.ts";
import { currentLocale } from "../../words/translate.ts";
import {
  isDirectMessages,
  toChannelPlace,
  toAuthorId,
  toChannelTerm,
  toTeamTerm,
  toUserTerm,
} from "./address.ts";
import { inLookupTime } from "./errors.ts";
import type { SlackUserInfo } from "./web-api.ts";

/** What {@link createPeople} needs. */
interface PeopleOptions {
  readonly lookUp: (userId: string) => Promise<SlackUserInfo>;
  readonly log: Log;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
  /** How long an event may wait for a lookup, in milliseconds: it must be acknowledged within 3 s. Default 800. */
  readonly maxWaitMs?: number;
  /** How many people are remembered. Default 5,000. */
  readonly maxPeople?: number | undefined;
}

/** Display names of people. */
export interface Names {
  /** The person's display name, or their id if Slack does not return it in time. Never throws. */
  nameOf(userId: string): Promise<string>;
}

/** What Slack says of people. */
export interface People extends Names {
  /**
   * `undefined`: Slack does not return it in time. Never throws.
   * @param maxMs how long the lookup is waited for, in milliseconds. Default: as long as an event may wait
   */
  find(userId: string, maxMs?: number): Promise<SlackUserInfo | undefined>;
}

const defaultMaxPeople = 5000;
/** Somebody who is no admin any more counts as one for so long. */
const ttlMs = 15 * 60_000;

/** Lookups in flight; past them people keep their id. A message can mention thousands who do not exist. */
const maxLookUps = 100;

/** Looks people up and caches them for 15 minutes. */
export function createPeople({
  lookUp,
  log,
  maxWaitMs = 800,
  maxPeople = defaultMaxPeople,
  clock = systemClock,
}: PeopleOptions): People {
  let inFlight = 0;
  const fetchMethod = async (userId: string): Promise<SlackUserInfo> => {
    inFlight += 1;
    try {
      return await lookUp(userId);
    } finally {
      inFlight -= 1;
    }
  };
  const cache = new LRUCache<string, SlackUserInfo>({
    max: maxPeople,
    ttl: ttlMs,
    fetchMethod,
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

  async function find(userId: string, maxMs = maxWaitMs): Promise<SlackUserInfo | undefined> {
    const known = cache.get(userId);
    if (known !== undefined) return known;
    if (inFlight >= maxLookUps) return undefined;
    return await inLookupTime(cached(userId), maxMs, clock);
  }

  return { find, nameOf: async (userId) => (await find(userId))?.name ?? userId };
}

/** The language to speak to a person in: English where Slack does not return their locale in time. Never throws. */
export async function languageOf(
  people: Pick<People, "find">,
  userId: string,
  maxMs?: number,
): Promise<Language> {
  return toLanguage((await people.find(userId, maxMs))?.locale);
}

/** Who did something, as Slack's payload has it. */
interface SlackActor {
  readonly user: string;
  /** Empty: outside of channels and conversations. */
  readonly channel: string;
  /** The workspace of the user, where the payload has it. */
  readonly team: string | undefined;
}

/** Who asks and from where, in the terms of the access rules. */
export interface Origins {
  /**
   * Somebody of another workspace, in a shared channel, is a stranger; guests are members. Where Slack does not describe
   * the user in time, the payload decides, and without a workspace there it is a stranger. Never throws.
   */
  originOf(actor: SlackActor): Promise<Origin>;
  /** The same with the name, for buttons. Never throws. */
  actorOf(actor: SlackActor): Promise<Actor>;
}

/** What may differ from one deployment to another. */
export interface OriginOptions {
  /** In channels, strangers count as members, though not as members of the workspace. Default false. */
  readonly admitsStrangers?: boolean | undefined;
}

/** For the workspace with this id. @see {@link Origins} */
export function createOrigins(
  people: People,
  teamId: string,
  { admitsStrangers = false }: OriginOptions = {},
): Origins {
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
    async actorOf(actor) {
      const [origin, name] = await Promise.all([originOf(actor), people.nameOf(actor.user)]);
      return {
        platform: "slack",
        author: { id: toAuthorId(teamId, actor.user), name, ...currentLocale() },
        origin,
      };
    },
  };
}

/** Also somebody of another workspace of the same organisation who is in this one. */
function isInTeam({ teamId: home, teams, isStranger }: SlackUserInfo, teamId: string): boolean {
  return !isStranger && (home === undefined || home === teamId || teams.includes(teamId));
}
