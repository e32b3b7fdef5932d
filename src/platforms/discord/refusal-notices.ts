import type { Clock } from "../../core/clock.ts";
import { toNotice } from "../../core/error-messages.ts";
import { isParleyError, type ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import { createSlidingWindowLimiter } from "../../support/sliding-window-limiter.ts";
import { createRefusalSchedule } from "../delivery/refusal-schedule.ts";
import type { DiscordApi } from "./api.ts";
import { toSentence } from "./content.ts";
import { translate } from "../../words/translate.ts";

/** How often a person is told in direct messages that the rules refuse what they wrote in one server. */
const accessInServerMs = 24 * 60 * 60_000;
/** The same for what they wrote in direct messages. */
const accessInDirectMs = 10 * 60_000;
/** Discord suspects bots that open many direct messages. */
const directLimit = { max: 20, windowMs: 10 * 60_000, reserved: 0 };

/** A refused message. */
export interface RefusedMessage {
  readonly id: string;
  readonly channel_id: string;
  /** Absent in direct messages. */
  readonly guild_id?: string;
  readonly author: { readonly id: string };
}

/** Tells people that their messages are refused. */
export interface RefusalNotices {
  /** Answers in direct messages, and nowhere else; not again for a while. Contract: must not throw. */
  tell(message: RefusedMessage, error: ParleyError): Promise<void>;
}

/**
 * What others wrote in a channel is no place for a refusal, and Discord has private answers to interactions only: so
 * the person gets a direct message. Where they take none, nothing is said.
 */
export function createRefusalNotices(
  api: Pick<DiscordApi, "openDirectChannel" | "createMessage">,
  log: Log,
  clock: Clock,
): RefusalNotices {
  const schedule = createRefusalSchedule(() => clock.monotonic());
  const opened = createSlidingWindowLimiter({ ...directLimit, now: () => clock.monotonic() });

  return {
    async tell(message, error) {
      const { id, author, channel_id: channelId, guild_id: guildId } = message;
      const intervalMs = guildId === undefined ? accessInDirectMs : accessInServerMs;
      const who = `${author.id} ${guildId ?? ""}`;
      if (!schedule.isDue(error, who, intervalMs)) return;
      const notice = toNotice(error);
      try {
        if (guildId === undefined) {
          await api.createMessage(channelId, {
            ...toSentence(notice),
            message_reference: { message_id: id, fail_if_not_exists: false },
            nonce: id,
            enforce_nonce: true,
          });
          return;
        }
        if (!opened.tryTake()) {
          schedule.untold(error, who);
          return log.info({ message: id }, "refused without a notice: too many of them");
        }
        const direct = await api.openDirectChannel(author.id);
        // Every instance that has the message tells it, and Discord takes one message with this nonce.
        const where = `https://discord.com/channels/${guildId}/${channelId}/${id}`;
        await api.createMessage(direct.id, {
          ...toSentence(`${notice}\n${translate("discord.about", { address: where })}`),
          nonce: id,
          enforce_nonce: true,
        });
      } catch (tellError) {
        // Somebody who takes no direct messages is not asked again.
        if (isParleyError(tellError, "platform-unreachable")) schedule.untold(error, who);
        log.debug({ message: id, err: tellError }, "refusal notice not delivered");
      }
    },
  };
}
