import type { Clock } from "../../core/clock.ts";
import { toNotice } from "../../core/error-messages.ts";
import { isRefusal, type ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";
import { createRefusalSchedule } from "../delivery/refusal-schedule.ts";
import { isDirectMessages } from "./address.ts";
import { escapeText } from "./markdown.ts";
import { toPlainSection } from "./message-blocks.ts";
import type { SlackApi } from "./web-api.ts";

/** How often a person is told in one place that the rules refuse them. */
const accessMs = 10 * 60_000;

/** A message, or a press of Stop, that is refused. */
export interface Refused {
  readonly channel: string;
  readonly user: string;
  /** Of a message; absent for Stop. */
  readonly ts?: string;
  /** A thread that has replies. */
  readonly thread: string | undefined;
}

/** Tells people that they are refused. */
export interface RefusalNotices {
  /** Shows it to the person alone, in a direct message as an answer; not again for a while. Never throws. */
  tell(refused: Refused, error: ParleyError): Promise<void>;
}

/** @see {@link RefusalNotices} */
export function createRefusalNotices(
  api: Pick<SlackApi, "post" | "postEphemeral">,
  log: Log,
  clock: Clock = systemClock,
): RefusalNotices {
  const schedule = createRefusalSchedule(() => clock.monotonic());

  return {
    async tell({ channel, thread, ts, user }, error) {
      // Of other errors each message is told: others of the same person are answered.
      if (isRefusal(error) && !schedule.isDue(error, `${channel} ${user}`, accessMs)) return;
      const notice = toNotice(error);
      const content = { text: escapeText(notice), blocks: [toPlainSection(notice)] };
      try {
        // A refusal stays readable in direct messages; what passes, like an outage, need not.
        if (isRefusal(error) && isDirectMessages(channel))
          await api.post(channel, thread ?? ts, content, { mark: `refusal/${ts ?? thread}` });
        else await api.postEphemeral(channel, thread, user, content);
      } catch (tellError) {
        log.warn({ err: tellError }, "refusal notice failed");
      }
    },
  };
}
