import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";
import { expiringBy } from "../../support/lru-time.ts";
import { inLookupTime } from "./lookup-time.ts";
import type { SlackUserInfo } from "./web-api.ts";
import { toLanguage, type Language } from "../../words/languages.ts";

/** What {@link createPeople} needs. */
export interface PeopleOptions {
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
  /** `undefined`: Slack does not return it in time. Never throws. */
  find(userId: string): Promise<SlackUserInfo | undefined>;
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

  async function find(userId: string): Promise<SlackUserInfo | undefined> {
    const known = cache.get(userId);
    if (known !== undefined) return known;
    if (inFlight >= maxLookUps) return undefined;
    return await inLookupTime(cached(userId), maxWaitMs, clock);
  }

  return { find, nameOf: async (userId) => (await find(userId))?.name ?? userId };
}

/** The language to speak to a person in: English where Slack does not return their locale in time. Never throws. */
export async function languageOf(people: Pick<People, "find">, userId: string): Promise<Language> {
  return toLanguage((await people.find(userId))?.locale);
}
