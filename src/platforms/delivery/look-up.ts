import { randomUUID } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import { isParleyError } from "../../core/errors.ts";
import type { Records } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { backoffMs, backoffs, retry } from "../../support/retry.ts";

/** A mark that is older says that something may have been missed. */
const missedAfterMs = 90_000;
/** So much before the mark is read too, because clocks differ, and what was heard may not be accepted. */
export const marginMs = 60_000;
/** Older messages are not looked for. */
const maxMissedMs = 24 * 60 * 60_000;
/** Older messages are not asked but named. */
const maxAskedMs = 60 * 60_000;
/** So many conversations are told of older messages. */
const maxTold = 50;
/** A look-up ends after this time. Only one that the platform lets read very slowly takes so long. */
const maxLookUpMs = 10 * 60_000;
/** A look-up of a process that says nothing for so long is another's. */
const leaseMs = 90_000;
/** That a conversation was told of a message is remembered for so long. */
const toldMs = 2 * maxMissedMs;

/** A message that may have been missed. */
export interface MissedMessage {
  /** The key of its event. */
  readonly key: string;
  /** Unix milliseconds. */
  readonly sentAt: number;
  /** Whether it was heard, and only its edit was missed, which is taken however old the message is. */
  readonly isKnown?: boolean;
  /** Passes it on as a live one, and resolves when it is accepted or not for the bot. */
  take(): Promise<void>;
  /** Returns its conversation if it is a question of the bot that is not known yet. */
  askedIn(): Promise<string | undefined>;
}

/** A part of the platform whose messages are read at once. */
export interface MissedPlace<M extends MissedMessage> {
  readonly id: string;
  /** The channel whose live messages bring it forward. */
  readonly channel: string;
  /** Reads the messages since a time, oldest first. `ask` makes each call, and repeats it patiently. */
  read(since: number, ask: Ask): Promise<readonly M[]>;
}

/** Repeats what the store or the platform cannot do now, and pauses between calls of the platform. */
export type Ask = <T>(call: () => Promise<T>) => Promise<T>;

/** The options of {@link createLookUp}. */
interface LookUpOptions<M extends MissedMessage> {
  /** Names the mark, such as `slack T1`. */
  readonly name: string;
  readonly records: Pick<Records, "get" | "set" | "update">;
  /** Returns where messages may have been missed since a time, in the order of reading. */
  places(since: number, ask: Ask): Promise<readonly MissedPlace<M>[]>;
  /** Says in a conversation that these messages, oldest first, are not answered. */
  tellOld(conversationId: string, messages: readonly M[]): Promise<void>;
  /** The pause before each call, which leaves room under the platform's limit. */
  readonly pauseMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Finds what people wrote while nobody heard it. */
export interface LookUp {
  /**
   * Is called every half minute while this process hears the platform. It notes in the store that all was
   * heard until now, or begins a look-up where nobody has noted that for long. It never throws.
   */
  heard(): Promise<void>;
  /** Whether earlier messages of a channel may still be found. They are then looked for next. */
  mayFindIn(channel: string): boolean;
}

/**
 * Creates a look-up. The mark is the time until which all was heard; it is written by whoever hears the
 * platform and can write to the store, so that it is old after an outage of any of them. Without a mark
 * nothing was missed.
 */
export function createLookUp<M extends MissedMessage>(options: LookUpOptions<M>): LookUp {
  const { name, records, clock, log, signal } = options;
  const markKey = `${name} heard`;
  const self = randomUUID();
  let heardUntil = 0;
  let running: Promise<void> | undefined;
  let isBeginning = false;
  /** What is not read yet, in the order of reading. `undefined`: it is not known yet. */
  let waiting: readonly MissedPlace<M>[] | undefined = [];
  /** The channels in which somebody writes before it is known. */
  const wanted = new Set<string>();

  /** Takes or renews the right to look. Only one process does at a time. */
  async function mayLook(): Promise<boolean> {
    let holder: unknown;
    await records.update(
      `${name} look-up`,
      (before) => {
        holder = before ?? self;
        return holder === self ? self : undefined;
      },
      leaseMs,
    );
    return holder === self;
  }

  const giveBack = (): Promise<void> =>
    records.update(`${name} look-up`, (before) => (before === self ? null : undefined), leaseMs);

  /** Repeats what the store or the platform cannot do now. @throws what is no outage, or lasts too long */
  const patiently = <T>(work: () => Promise<T>, deadline: number): Promise<T> =>
    retry(work, {
      signal,
      clock,
      deadline,
      delayMs(error, attempt) {
        if (!isParleyError(error)) return undefined;
        if (error.retryAfterMs !== undefined) return Math.max(1000, error.retryAfterMs);
        return error.code === "store-unavailable" || error.code === "platform-unreachable"
          ? backoffMs(attempt, backoffs.outage)
          : undefined;
      },
    });

  /** Makes calls of the platform. */
  const askUntil =
    (deadline: number): Ask =>
    async (call) => {
      await clock.sleep(options.pauseMs, signal);
      return await patiently(call, deadline);
    };

  async function readPlace(
    place: MissedPlace<M>,
    since: number,
    deadline: number,
  ): Promise<ReadonlyMap<string, readonly M[]>> {
    const old = new Map<string, M[]>();
    const messages = await place.read(since, askUntil(deadline));
    const askedSince = clock.now() - maxAskedMs;
    for (const message of messages) {
      try {
        if (message.isKnown === true || message.sentAt >= askedSince)
          await patiently(() => message.take(), deadline);
        else {
          const asked = await patiently(() => message.askedIn(), deadline);
          if (asked !== undefined) old.set(asked, [...(old.get(asked) ?? []), message]);
        }
      } catch (error) {
        signal.throwIfAborted();
        if (isOutage(error)) throw error;
        log.warn({ message: message.key, err: error }, "missed message not taken");
      }
    }
    return old;
  }

  /** Tells a conversation once of its last old message, also where a look-up is repeated. */
  async function tell(conversationId: string, messages: readonly M[], deadline: number): Promise<void> {
    const told = `${name} told ${conversationId}`;
    const last = messages.at(-1)?.key ?? "";
    if ((await records.get(told)) === last) return;
    await patiently(() => options.tellOld(conversationId, messages), deadline);
    await records.set(told, last, toldMs);
  }

  async function lookUp(since: number): Promise<void> {
    const deadline = clock.monotonic() + maxLookUpMs;
    let told = 0;
    waiting = undefined;
    const places = await options.places(since, askUntil(deadline));
    waiting = places.toSorted((a, b) => Number(wanted.has(b.channel)) - Number(wanted.has(a.channel)));
    wanted.clear();
    for (let place = waiting[0]; place !== undefined; place = waiting[0]) {
      if (clock.monotonic() >= deadline) {
        log.warn({ places: places.length, left: waiting.length }, "missed messages not all looked up");
        return;
      }
      const current = place;
      try {
        for (const [conversationId, messages] of await readPlace(current, since, deadline)) {
          if (told++ < maxTold) await tell(conversationId, messages, deadline);
          else
            log.warn({ conversation: conversationId, messages: messages.length }, "too old to be answered");
        }
      } catch (error) {
        signal.throwIfAborted();
        if (isOutage(error)) throw error;
        // Mostly the channel was deleted or closed to the bot, so there is nothing to answer.
        log.info({ place: current.id, err: error }, "missed messages not readable");
      }
      waiting = waiting.filter((one) => one !== current);
    }
    log.info({ places: places.length, since: new Date(since).toISOString() }, "missed messages looked up");
  }

  async function run(mark: number): Promise<void> {
    const now = clock.now();
    heardUntil = now;
    try {
      await lookUp(Math.max(mark - marginMs, now - maxMissedMs));
      await records.set(markKey, heardUntil);
      await giveBack();
    } catch (error) {
      // The mark stays, so that it is begun again. A right that cannot be given back ends by itself.
      if (signal.aborted) await giveBack().catch(() => undefined);
      else log.warn({ err: error }, "missed messages not looked up yet");
    } finally {
      waiting = [];
      running = undefined;
    }
  }

  async function note(): Promise<void> {
    const now = clock.now();
    if (running !== undefined) {
      // What is missed during a look-up is looked up after it.
      if (now - heardUntil <= missedAfterMs) heardUntil = now;
      return void (await mayLook());
    }
    const mark = await records.get(markKey);
    if (typeof mark !== "number" || now - mark <= missedAfterMs) return await records.set(markKey, now);
    if (await mayLook()) running ??= run(mark);
  }

  return {
    async heard() {
      if (isBeginning || signal.aborted) return;
      isBeginning = true;
      try {
        await note();
      } catch (error) {
        log.debug({ err: error }, "what was heard is not noted");
      } finally {
        isBeginning = false;
      }
    },
    mayFindIn(channel) {
      if (waiting === undefined) wanted.add(channel);
      if (waiting === undefined) return true;
      const its = waiting.filter((place) => place.channel === channel);
      if (its.length === 0) return false;
      const [current] = waiting;
      const others = waiting.filter((place) => place.channel !== channel && place !== current);
      waiting = [...(current === undefined || its.includes(current) ? [] : [current]), ...its, ...others];
      return true;
    },
  };
}

/** Whether the store or the platform is away, or this process stops, so that the rest is looked up later. */
function isOutage(error: unknown): boolean {
  if (isParleyError(error, "platform-unreachable")) return error.retryAfterMs === undefined;
  return isParleyError(error, "store-unavailable") || isParleyError(error, "stopping");
}
