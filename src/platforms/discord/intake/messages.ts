import type { GatewayMessageCreateDispatchData } from "discord.js";
import { isAnswered, type AnswerRule, type SaidBefore } from "../../../core/addressee.ts";
import type { Clock } from "../../../core/clock.ts";
import { acceptingNotice, toNotice } from "../../../core/error-messages.ts";
import type { ParleyError } from "../../../core/errors.ts";
import { isParleyError, isRefusal } from "../../../core/errors.ts";
import type { Receiver } from "../../../core/receiver.ts";
import type { Log } from "../../../core/telemetry.ts";
import { createKeyedQueue } from "../../../support/queues.ts";
import { translate, inLanguage } from "../../../words/translate.ts";
import type { Language } from "../../../words/languages.ts";
import {
  createNotAcceptedLog,
  createRefusalSchedule,
  isOutage,
  receivePatiently,
} from "../../delivery/receive-patiently.ts";
import { isDirectType, isThreadType, toConversationId } from "../address.ts";
import type { DiscordApi } from "../transport/api.ts";
import type { Directory } from "../transport/directory.ts";
import { toReplyOnce, toSentence } from "../reply/content.ts";
import { mentionsBot, type Names } from "./incoming.ts";
import { isFromPerson, toSpoken, type MessageEvents } from "./message-events.ts";
import { createRecent } from "../../../support/recent.ts";

/** The options of {@link createMessageIntake}. */
interface MessageOptions {
  readonly api: DiscordApi;
  readonly receiver: Receiver;
  readonly channels: Directory;
  readonly names: (guildId: string | undefined) => Names;
  readonly events: MessageEvents;
  /** Returns the language in which the author of a message is told something. */
  readonly languageOf: (message: GatewayMessageCreateDispatchData) => Language;
  /** Looks for this message and later ones once the store is available. */
  readonly lookUpLater: (
    message: Pick<GatewayMessageCreateDispatchData, "channel_id" | "guild_id" | "id">,
  ) => void;
  /** Makes a look-up that waited for the store. Returns whether it did, and so took the earlier messages. */
  readonly lookUpFirst: (channelId: string) => Promise<boolean>;
  /** Aborts when the platform stops. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
}

/** Handles MESSAGE_CREATE events, those of one channel one after another. */
interface MessageIntake {
  /**
   * Takes a message. `isMissed` means that it was sent while the bot was offline, or earlier. The access
   * rules refuse it silently, since the person may have been told before. Contract: must not throw.
   */
  take(message: GatewayMessageCreateDispatchData, options?: { readonly isMissed?: boolean }): void;
  /** Whether a message in a channel was seen here and is not for the bot, so that nothing of it is stored. */
  wasAside(messageId: string): boolean;
  /** Resolves when the receiver has all messages of the channel that were taken before. */
  caughtUp(channelId: string): Promise<void>;
  /** Resolves when the receiver has all messages taken so far. */
  idle(): Promise<void>;
}

/** How long accepting a message is tried before its author is told. Discord has no deadline for it. */
const acceptForMs = 5000;
/** How long Discord is asked who wrote a message and where. Later messages of the channel wait. */
const askDiscordForMs = 60_000;
/** So many messages are known not to be for the bot. */
const maxAsides = 5000;

export function createMessageIntake(options: MessageOptions): MessageIntake {
  const { api, receiver, channels, events, clock, log } = options;
  const refusals = createRefusalNotices(api, log, clock);
  const logNotAccepted = createNotAcceptedLog(log, clock);
  /** A person who sends very many messages is told once in a while that the bot is busy. */
  const busyNotices = createRefusalSchedule(() => clock.monotonic());
  const queue = createKeyedQueue();
  const asides = createRecent(maxAsides);
  let enqueued = 0;
  /** The position in the queue at which missed messages of a channel were looked up. */
  const lookedUpAt = createRecent<number>(1000);
  /** The position at which a channel was left to another look-up, which takes all later messages too. */
  const leftAt = createRecent<number>(1000);

  async function handle(
    given: GatewayMessageCreateDispatchData,
    isMissed: boolean,
    position: number,
  ): Promise<void> {
    const message = isMissed ? await withServer(given) : given;
    const names = options.names(message.guild_id);
    const known = { isEvent: false };
    try {
      await receivePatiently(
        async () => {
          if (isMissed || (await isInOrder(message.channel_id, position)))
            return await accept(message, names, known);
          enqueue(message, isMissed);
          return "duplicate";
        },
        { forMs: acceptForMs, whileUnreachableForMs: askDiscordForMs, signal: options.signal, clock },
      );
    } catch (error) {
      if (isRefusal(error)) return await tellPrivately(message, error, isMissed);
      // Whoever hears the shard next looks it up.
      if (isParleyError(error, "stopping") || options.signal.aborted)
        return log.info({ message: message.id }, "message left for the next look-up");
      logNotAccepted("message", { message: message.id }, error);
      const isTransient = isOutage(error);
      // Its author may have been told or answered long ago.
      if (isTransient && isMissed) {
        // Later ones of this look-up are left to the next one too, so that their order stays.
        leftAt.set(message.channel_id, enqueued);
        return options.lookUpLater(message);
      }
      // While Discord is unreachable too, that cannot be known.
      const isForBot = known.isEvent || (await isCertainlyForBot(message, names).catch(() => undefined));
      // Perhaps the message belongs to a conversation that only the store knows.
      if (isForBot === undefined && isTransient) options.lookUpLater(message);
      if (isForBot !== true) return;
      // The look-up finds it when the store responds again.
      if (isTransient) options.lookUpLater(message);
      // Discord does not deliver it again, so that the person must be told.
      await tell(message, error);
    }
  }

  /** Adds the server to a message that was read later and so does not name it, where it is known. */
  async function withServer(
    message: GatewayMessageCreateDispatchData,
  ): Promise<GatewayMessageCreateDispatchData> {
    if (message.guild_id !== undefined) return message;
    const guildId = (await channels.channelIfReadable(message.channel_id))?.guildId;
    return guildId === undefined ? message : { ...message, guild_id: guildId };
  }

  /**
   * Whether a live message comes after the missed ones of its channel. Before each attempt to accept it they
   * may have been queued behind it.
   */
  async function isInOrder(channelId: string, position: number): Promise<boolean> {
    if (await options.lookUpFirst(channelId)) noteLookUp(channelId);
    return position >= (lookedUpAt.get(channelId) ?? 0);
  }

  /** Notes that missed messages may be queued by now. Live ones before them have to go behind. */
  function noteLookUp(channelId: string): void {
    lookedUpAt.set(channelId, (enqueued += 1));
  }

  function enqueue(message: GatewayMessageCreateDispatchData, isMissed: boolean): void {
    const position = (enqueued += 1);
    const handleInOrder = async (): Promise<void> => {
      const isLeft = isMissed && position <= (leftAt.get(message.channel_id) ?? 0);
      if (isLeft) return;
      await inLanguage(options.languageOf(message), () => handle(message, isMissed, position));
    };
    void queue
      .run(message.channel_id, handleInOrder)
      .catch((error: unknown) => log.error({ message: message.id, err: error }, "message handling failed"));
  }

  async function accept(
    message: GatewayMessageCreateDispatchData,
    names: Names,
    known: { isEvent: boolean },
  ): Promise<"accepted" | "duplicate"> {
    const event = await events.toEvent(message, names);
    if (event === undefined) {
      const type = await channels.typeOf(message);
      if (!isThreadType(type) && !isDirectType(type)) asides.set(message.id, true);
      return "duplicate";
    }
    asides.delete(message.id);
    known.isEvent = true;
    const result = await receiver.receive(event);
    if (event.inRoom !== true) channels.open(event.conversationId);
    return result;
  }

  /** Tells the person that the message is not taken, or not yet: in a reply, once. */
  async function tell(message: GatewayMessageCreateDispatchData, error: unknown): Promise<void> {
    const who = `${message.channel_id} ${message.author.id}`;
    if (isParleyError(error, "busy") && !busyNotices.isDue(error, who, 0)) return;
    const words = isParleyError(error, "store-unavailable") ? acceptingNotice() : toNotice(error);
    await api.createMessage(message.channel_id, toReplyOnce(message.id, words));
  }

  async function tellPrivately(
    message: GatewayMessageCreateDispatchData,
    error: ParleyError,
    isMissed: boolean,
  ): Promise<void> {
    log.info({ message: message.id, code: error.code }, "message refused");
    // The rules refuse it at each look-up, so that its author may know. All other refusals come once.
    if (isMissed && isParleyError(error, "access-denied")) return;
    // Who did not speak to the bot is told nothing.
    const isAddressed = (await isCertainlyForBot(message, options.names(message.guild_id))) !== false;
    if (isAddressed) await refusals.tell(message, error);
  }

  /**
   * Whether it is for the bot, as far as is known without the store. `undefined`: in people's thread, or to
   * others.
   */
  async function isCertainlyForBot(
    message: GatewayMessageCreateDispatchData,
    names: Names,
  ): Promise<boolean | undefined> {
    if (!isFromPerson(message)) return false;
    const channelId = message.channel_id;
    if (mentionsBot(message, names)) return true;
    const type = await channels.typeOf(message);
    const isForBot = isAnswered(toSpoken(message, names, isDirectType(type)), inOwnThread, oneWriter);
    if (isThreadType(type) && !isForBot) return undefined;
    if (channels.isOpen(toConversationId(channelId))) return true;
    if (!isThreadType(type)) return isDirectType(type);
    return (await events.isOwnThread(channelId)) ? true : undefined;
  }

  return {
    take(message, { isMissed = false } = {}) {
      if (isMissed) noteLookUp(message.channel_id);
      enqueue(message, isMissed);
    },
    wasAside: (messageId) => asides.has(messageId),
    caughtUp: (channelId) => queue.run(channelId, () => Promise.resolve()),
    idle: () => queue.idle(),
  };
}

/** While the store is away, whoever writes in a thread of the bot's is taken for the only one there. */
const inOwnThread: AnswerRule = { answerTo: "addressed", isPeoples: false };
const oneWriter: SaidBefore = { isAlone: true, isNext: true, names: [] };

/** How often a person is told in direct messages that the rules refuse what they wrote in one server. */
const accessInServerMs = 24 * 60 * 60_000;
/** How often a person is told so about what they wrote in direct messages. */
const accessInDirectMs = 10 * 60_000;

/** A refused message. */
interface RefusedMessage {
  readonly id: string;
  readonly channel_id: string;
  /** This is absent in direct messages. */
  readonly guild_id?: string;
  readonly author: { readonly id: string };
}

/** Tells people that their messages are refused. */
interface RefusalNotices {
  /** Answers only in direct messages, and not again for a while. Contract: must not throw. */
  tell(message: RefusedMessage, error: ParleyError): Promise<void>;
}

/**
 * Creates the notices. A channel is no place for a refusal, and Discord has private answers only to
 * interactions. So the person gets a direct message. Where they take none, nothing is said.
 */
function createRefusalNotices(
  api: Pick<DiscordApi, "createMessage" | "tellDirectly">,
  log: Log,
  clock: Clock,
): RefusalNotices {
  const schedule = createRefusalSchedule(() => clock.monotonic());

  return {
    async tell(message, error) {
      const { id, author, channel_id: channelId, guild_id: guildId } = message;
      const intervalMs = guildId === undefined ? accessInDirectMs : accessInServerMs;
      const who = `${author.id} ${guildId ?? ""}`;
      if (!schedule.isDue(error, who, intervalMs)) return;
      const notice = toNotice(error);
      try {
        if (guildId === undefined) {
          await api.createMessage(channelId, toReplyOnce(id, notice));
          return;
        }
        // While a shard changes hands two instances tell it, and Discord takes one with this nonce.
        const where = `https://discord.com/channels/${guildId}/${channelId}/${id}`;
        const isSent = await api.tellDirectly(author.id, {
          ...toSentence(`${notice}\n${translate("discord.about", { address: where })}`),
          nonce: id,
          enforce_nonce: true,
        });
        if (isSent) return;
        schedule.untold(error, who);
        log.info({ message: id }, "refused without a notice: too many of them");
      } catch (tellError) {
        // Somebody who takes no direct messages is not asked again.
        if (isParleyError(tellError, "platform-unreachable")) schedule.untold(error, who);
        log.debug({ message: id, err: tellError }, "refusal notice not delivered");
      }
    },
  };
}
